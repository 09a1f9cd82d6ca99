//! Tests the pages of the documentation.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it stands"
)]

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tidegate_docs::{LLMS, Page, not_found, pages};

fn description() -> Value {
    json!({
        "info": {"description": "An example."},
        "tags": [{"name": "notes", "description": "Short *texts*."}],
        "paths": {"/notes/{id}": {
            "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}}],
            "post": {
                "operationId": "changeNote",
                "tags": ["notes"],
                "summary": "Change a note",
                "security": [{"bearer": []}],
                "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Note"}}}},
                "responses": {"204": {"description": "Changed."}, "404": {"$ref": "#/components/responses/Missing"}}
            }
        }},
        "components": {
            "responses": {"Missing": {"description": "There is no such note."}},
            "schemas": {"Note": {
                "type": "object",
                "required": ["body"],
                "properties": {
                    "body": {"type": ["string", "null"], "description": "Its <text>."},
                    "tags": {"type": "array", "items": {"type": "object", "properties": {"name": {"enum": ["a", "b"]}}}}
                }
            }}
        }
    })
}

fn text(page: &Page) -> &str {
    str::from_utf8(&page.bytes).unwrap()
}

fn by_path(pages: &[Page]) -> BTreeMap<&str, &Page> {
    let map: BTreeMap<_, _> = pages
        .iter()
        .map(|page| (page.path.as_str(), page))
        .collect();
    assert_eq!(map.len(), pages.len(), "a path has one page");
    map
}

/// The values of an attribute in the tags of a page. The search finds no text, because `<` is
/// escaped in text.
fn values<'p>(html: &'p str, attribute: &str) -> Vec<&'p str> {
    let start = format!(" {attribute}=\"");
    let tags = html
        .split('<')
        .skip(1)
        .filter_map(|rest| rest.split('>').next());
    tags.filter_map(|tag| tag.split_once(start.as_str())?.1.split('"').next())
        .collect()
}

#[test]
fn no_link_inside_the_pages_is_broken() {
    let pages = pages("/db", &description());
    let known = by_path(&pages);
    let html = |page: &&Page| page.media_type.starts_with("text/html");
    let mut seen = 0;
    for page in pages.iter().filter(html) {
        let text = text(page);
        for link in values(text, "href").into_iter().chain(values(text, "src")) {
            let here = format!("{}: {link}", page.path);
            let (path, fragment) = link.split_once('#').unwrap_or((link, ""));
            let target = match path.strip_prefix("/db/docs") {
                Some(path) => known.get(path.trim_start_matches('/')).copied(),
                None if path.is_empty() => Some(page),
                None => {
                    let is_outside = link.contains("://")
                        || [
                            "/db/",
                            "/db/favicon.ico",
                            "/db/llms.txt",
                            "/db/api/v4/openapi.json",
                        ]
                        .contains(&path);
                    assert!(is_outside, "{here} leads out of the documentation");
                    continue;
                }
            };
            let target = target.unwrap_or_else(|| panic!("{here} is not there"));
            if !fragment.is_empty() {
                let ids = values(self::text(target), "id");
                assert!(ids.contains(&fragment), "{here} has no such anchor");
            }
            seen += 1;
        }
    }
    assert!(seen > 2_000, "only {seen} links were found");
}

#[test]
fn anchors_of_a_page_are_unique() {
    for page in pages("", &description()) {
        if page.media_type.starts_with("text/html") {
            let ids = values(text(&page), "id");
            let unique: BTreeSet<_> = ids.iter().collect();
            assert_eq!(unique.len(), ids.len(), "{}", page.path);
        }
    }
}

#[test]
fn pages_need_nothing_that_the_policy_refuses() {
    for page in pages("", &description()) {
        if page.media_type.starts_with("text/html") {
            let html = text(&page);
            assert!(values(html, "style").is_empty(), "{}", page.path);
            assert!(
                !html.contains("<style") && !html.contains("<script>"),
                "{}",
                page.path
            );
            let sources = values(html, "src");
            assert!(
                sources.iter().all(|source| source.starts_with("/docs/")),
                "{sources:?}"
            );
        }
    }
}

#[test]
fn every_chapter_is_a_page_and_a_markdown_file() {
    let pages = pages("", &description());
    let known = by_path(&pages);
    for (html, markdown) in [
        ("start/up", "start/up.md"),
        ("adr", "adr/README.md"),
        ("interface", "API.md"),
    ] {
        assert!(text(known[html]).contains("<article><h1 id="), "{html}");
        assert!(text(known[markdown]).contains("\n# ") || text(known[markdown]).starts_with("# "));
        assert_eq!(known[markdown].media_type, "text/markdown; charset=utf-8");
    }
    // The links of llms.txt are relative to the root, in which `docs` contains the linked files.
    let linked = LLMS
        .split("](")
        .skip(1)
        .map(|rest| rest.split(')').next().unwrap());
    for path in linked {
        let path = path.strip_prefix("docs/").unwrap();
        assert!(known.contains_key(path), "llms.txt: {path}");
    }
}

#[test]
fn the_search_index_has_every_section() {
    let pages = pages("", &description());
    let known = by_path(&pages);
    let index: Value = serde_json::from_slice(&known["search.json"].bytes).unwrap();
    let chapters = index.as_array().unwrap();
    assert!(chapters.len() > 50, "{}", chapters.len());
    for chapter in chapters {
        let page = text(known[chapter[0].as_str().unwrap()]);
        let ids = values(page, "id");
        for section in chapter[2].as_array().unwrap() {
            assert!(ids.contains(&section[0].as_str().unwrap()), "{section}");
        }
    }
    let found = |words: &str| {
        chapters
            .iter()
            .any(|chapter| chapter.to_string().contains(words))
    };
    assert!(found("row level security"));
}

#[test]
fn the_openapi_description_becomes_a_page() {
    let pages = pages("", &description());
    let html = text(by_path(&pages)["api"]);
    for expected in [
        "id=\"changeNote\"",
        "Change a note",
        "Short <em>texts</em>.",
        "An access token.",
        "<code>id</code> <small>required</small>",
        "There is no such note.",
        "<a href=\"#schema-note\">Note</a>",
        "string or null",
        "Its &lt;text&gt;.",
        "<code>tags[].name</code>",
    ] {
        assert!(html.contains(expected), "{expected}\n{html}");
    }
    assert!(!html.contains("<text>"));
}

#[test]
fn a_page_that_is_not_there_leads_to_the_others() {
    let html = not_found("/db");
    assert!(html.contains("There is no such page") && html.contains("href=\"/db/docs/start/up\""));
}
