#![doc = include_str!("../README.md")]

mod embedded;
mod index;
mod layout;
mod link;
mod markdown;
mod reference;
mod search;
mod summary;

use std::borrow::Cow;

use embedded::{ASSETS, CHAPTERS, Embedded, media_type};
use layout::Layout;
use link::{Target, address};
use markdown::Rendered;
use summary::Summary;

/// The list of all chapters at `/llms.txt`, for language models (<https://llmstxt.org>). Its links
/// are relative to the root of the service.
pub const LLMS: &str = include_str!("../llms.txt");

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &[u8] = include_bytes!("../assets/docs.css");
const SCRIPT: &[u8] = include_bytes!("../assets/docs.js");

/// A page, or a file that a page refers to.
#[derive(Clone, Debug)]
pub struct Page {
    /// The path of the page below `/docs/`; empty for the first page.
    pub path: String,
    /// The value of `Content-Type`.
    pub media_type: &'static str,
    /// The content.
    pub bytes: Cow<'static, [u8]>,
}

/// All pages and files of the documentation. `base` is the path prefix of the service, such as
/// `/db`, and may be empty. `openapi` is the OpenAPI description of the service.
pub fn pages(base: &str, openapi: &serde_json::Value) -> Vec<Page> {
    let summary = Summary::parse(embedded::SUMMARY);
    let layout = Layout::new(base, &summary);
    let chapters: Vec<_> = CHAPTERS
        .iter()
        .map(|file| (file, rendered(base, file)))
        .collect();
    let reference = reference::page(base, openapi);
    let mut pages = vec![
        html(
            "",
            layout.page("", "Documentation", &index::page(base, &summary)),
        ),
        html("api", layout.page("api", "HTTP API", &reference)),
        Page {
            path: "search.json".to_owned(),
            media_type: "application/json",
            bytes: search::index(&summary, &chapters).into_bytes().into(),
        },
        file("docs.css", "text/css; charset=utf-8", STYLE),
        file("docs.js", "text/javascript; charset=utf-8", SCRIPT),
    ];
    for (source, chapter) in chapters {
        let address = address(source.path);
        let page = layout.chapter(&address, &chapter);
        pages.push(html(&address, page));
        pages.push(file(source.path, media_type(source.path), source.bytes));
    }
    pages.extend(
        ASSETS
            .iter()
            .map(|asset| file(asset.path, media_type(asset.path), asset.bytes)),
    );
    pages
}

/// The page for an unknown path.
pub fn not_found(base: &str) -> String {
    let summary = Summary::parse(embedded::SUMMARY);
    let content = index::not_found(base);
    Layout::new(base, &summary).page("", "There is no such page", &content)
}

fn rendered(base: &str, chapter: &Embedded) -> Rendered {
    let text = str::from_utf8(chapter.bytes).unwrap_or_default();
    markdown::render(text, |link| Target::of(base, chapter.path, link))
}

fn html(path: &str, text: String) -> Page {
    Page {
        path: path.to_owned(),
        media_type: HTML,
        bytes: text.into_bytes().into(),
    }
}

fn file(path: &str, media_type: &'static str, bytes: &'static [u8]) -> Page {
    Page {
        path: path.to_owned(),
        media_type,
        bytes: bytes.into(),
    }
}
