//! The layout of every page.

use maud::{DOCTYPE, Markup, html};

/// A page with a title and one card as its content. `base` is the path of the issuer's URL.
pub(crate) fn layout(base: &str, title: &str, card: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="theme-color" content="#eef3f6" media="(prefers-color-scheme: light)";
                meta name="theme-color" content="#0c161d" media="(prefers-color-scheme: dark)";
                meta name="robots" content="noindex";
                title { (title) " · Tidegate" }
                link rel="icon" type="image/svg+xml" href={ (base) "/favicon.ico" };
                link rel="stylesheet" href={ (base) "/assets/tidegate.css" };
            }
            body {
                main {
                    p.brand { (mark()) span { "Tidegate" } }
                    section.card { (card) }
                }
            }
        }
    }
}

/// The logo: three waves and a gate.
fn mark() -> Markup {
    html! {
        svg viewBox="0 0 32 32" width="28" height="28" aria-hidden="true" focusable="false" {
            rect.gate x="1" y="1" width="30" height="30" rx="8" {}
            path.wave d="M6 12c3.3-3 6.7-3 10 0s6.7 3 10 0M6 17.5c3.3-3 6.7-3 10 0s6.7 3 10 0M6 23c3.3-3 6.7-3 10 0s6.7 3 10 0" {}
        }
    }
}
