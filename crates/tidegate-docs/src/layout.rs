//! The common parts of all pages: header, search, table of contents.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::markdown::Rendered;
use crate::summary::{Chapter, Summary};

const TITLE_END: &str = "</h1>";

/// Writes the common parts of all pages of one service.
pub(crate) struct Layout<'s> {
    base: &'s str,
    summary: &'s Summary,
}

impl<'s> Layout<'s> {
    /// `base` is the path prefix of the service, which may be empty.
    pub(crate) const fn new(base: &'s str, summary: &'s Summary) -> Self {
        Self { base, summary }
    }

    /// A whole page. `path` is its path below `/docs/`.
    pub(crate) fn page(&self, path: &str, title: &str, content: &Markup) -> String {
        let base = self.base;
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (title) " · Tidegate" }
                    link rel="icon" type="image/svg+xml" href={(base) "/favicon.ico"};
                    link rel="stylesheet" href={(base) "/docs/docs.css"};
                    script type="module" src={(base) "/docs/docs.js"} {}
                }
                body {
                    a.skip href="#content" { "Skip to content" }
                    (self.header())
                    div.columns {
                        nav.contents aria-label="Chapters" {
                            details open {
                                summary { "Contents" }
                                (self.contents(path))
                            }
                        }
                        main #content tabindex="-1" { (content) }
                    }
                }
            }
        }
        .into_string()
    }

    /// A chapter, with links to its sections and to the previous and next chapters.
    pub(crate) fn chapter(&self, path: &str, chapter: &Rendered) -> String {
        let sections: Vec<_> = chapter.sections.iter().filter(|of| of.level == 2).collect();
        // The list of sections is inserted after the title.
        let end = chapter
            .html
            .find(TITLE_END)
            .map_or(0, |at| at + TITLE_END.len());
        let (title, text) = chapter.html.split_at(end);
        let content = html! {
            article {
                (PreEscaped(title))
                @if sections.len() > 2 {
                    nav.sections aria-label="On this page" {
                        p { "On this page" }
                        ul {
                            @for section in sections {
                                li { a href={"#" (section.id)} { (section.heading) } }
                            }
                        }
                    }
                }
                div.text { (PreEscaped(text)) }
            }
            (self.neighbours(path))
        };
        self.page(path, &chapter.title, &content)
    }

    fn header(&self) -> Markup {
        let base = self.base;
        html! {
            header {
                a.brand href={(base) "/docs/"} { "Tidegate" span { " docs" } }
                // The form is hidden until the script shows it, because search does not work
                // without the script.
                form #search role="search" hidden data-docs={(base) "/docs/"} {
                    label {
                        span.hidden-label { "Search the documentation" }
                        input type="search" name="q" placeholder="Search (press /)"
                            autocomplete="off" spellcheck="false" aria-controls="results";
                    }
                    div #results hidden {
                        p role="status" {}
                        ol {}
                    }
                }
                a href={(base) "/docs/api"} { "API" }
                a href={(base) "/"} { "Console" }
            }
        }
    }

    fn contents(&self, path: &str) -> Markup {
        html! {
            @for section in &self.summary.sections {
                h2 { (section.title) }
                ul {
                    @for chapter in &section.chapters {
                        li.nested[chapter.is_nested] {
                            a href=(self.url(chapter))
                                aria-current=[(chapter.address == path).then_some("page")] {
                                (chapter.title)
                            }
                        }
                    }
                }
            }
        }
    }

    fn neighbours(&self, path: &str) -> Markup {
        let chapters: Vec<_> = self.summary.chapters().collect();
        let at = chapters.iter().position(|chapter| chapter.address == path);
        let before = at.and_then(|at| chapters.get(at.checked_sub(1)?));
        let after = at.and_then(|at| chapters.get(at + 1));
        html! {
            nav.neighbours aria-label="Chapters beside this one" {
                @if let Some(chapter) = before {
                    a.before rel="prev" href=(self.url(chapter)) { "← " (chapter.title) }
                }
                @if let Some(chapter) = after {
                    a.after rel="next" href=(self.url(chapter)) { (chapter.title) " →" }
                }
            }
        }
    }

    fn url(&self, chapter: &Chapter) -> String {
        format!("{}/docs/{}", self.base, chapter.address)
    }
}
