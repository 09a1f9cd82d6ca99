//! The first page, and the page for an unknown path.

use maud::{Markup, html};

use crate::summary::Summary;

/// The content of the first page, which lists the chapters by section. Chapters that are part of
/// another chapter are left out.
pub(crate) fn page(base: &str, summary: &Summary) -> Markup {
    html! {
        h1 { "Documentation" }
        p {
            "New here? Begin with "
            a href={(base) "/docs/start/first-minutes"} { "the first five minutes" }
            ". The API of this server is described at "
            a href={(base) "/docs/api"} { "HTTP API" }
            ", and every chapter is also "
            a href={(base) "/llms.txt"} { "Markdown" }
            "."
        }
        div.cards {
            @for section in &summary.sections {
                section {
                    h2 { (section.title) }
                    ul {
                        @for chapter in section.chapters.iter().filter(|of| !of.is_nested) {
                            li { a href={(base) "/docs/" (chapter.address)} { (chapter.title) } }
                        }
                    }
                }
            }
        }
    }
}

/// The content of the page for an unknown path.
pub(crate) fn not_found(base: &str) -> Markup {
    html! {
        h1 { "There is no such page" }
        p {
            "It may have been renamed. Search for it above, or go to "
            a href={(base) "/docs/"} { "all chapters" }
            "."
        }
    }
}
