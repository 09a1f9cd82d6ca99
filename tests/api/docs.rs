//! Tests the documentation with the requests of a browser: follows every link from `/docs/` on.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::{Method, Url};

use crate::service::{TextResponse, demo};

async fn get(path: &str) -> TextResponse {
    let asked = demo().request(Method::GET, path);
    TextResponse::of(asked.header("accept", "text/html,*/*;q=0.8")).await
}

/// The values of an attribute in the tags of a page. The search finds no text, because `<` is
/// escaped in text.
fn values(html: &str, attribute: &str) -> Vec<String> {
    let start = format!(" {attribute}=\"");
    let tags = html
        .split('<')
        .skip(1)
        .filter_map(|rest| rest.split('>').next());
    tags.filter_map(|tag| tag.split_once(start.as_str())?.1.split('"').next())
        .map(str::to_owned)
        .collect()
}

/// The paths and fragments of this service that a page links to.
fn links(page: &Url, html: &str) -> Vec<(String, Option<String>)> {
    let found = [values(html, "href"), values(html, "src")].concat();
    let resolved = found.iter().map(|link| page.join(link).unwrap());
    resolved
        .filter(|link| link.origin() == page.origin())
        .map(|link| (link.path().to_owned(), link.fragment().map(str::to_owned)))
        .collect()
}

/// Follows the links from `/docs/`; returns each page by its path.
async fn crawled() -> BTreeMap<String, TextResponse> {
    let base = Url::parse(&demo().url).unwrap();
    let mut pages = BTreeMap::new();
    let mut left = vec!["/docs/".to_owned()];
    while let Some(path) = left.pop() {
        if pages.contains_key(&path) {
            continue;
        }
        let response = get(&path).await;
        let is_page = response.header("content-type").starts_with("text/html");
        if is_page && path.starts_with("/docs") {
            let found = links(&base.join(&path).unwrap(), &response.text);
            left.extend(found.into_iter().map(|(path, _)| path));
        }
        pages.insert(path, response);
    }
    pages
}

#[tokio::test]
async fn every_chapter_is_reachable_and_no_link_is_broken() {
    let pages = crawled().await;
    let base = Url::parse(&demo().url).unwrap();
    for (path, page) in &pages {
        assert_eq!(page.status, 200, "{path}");
        if !path.starts_with("/docs") {
            continue;
        }
        let policy = page.header("content-security-policy");
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self';"),
            "{path}: {policy}"
        );
        for (target, fragment) in links(&base.join(path).unwrap(), &page.text) {
            if let Some(fragment) = fragment {
                let ids = values(&pages[&target].text, "id");
                let is_there = ids.iter().any(|id| {
                    let encoded = base.join(&format!("#{id}")).unwrap();
                    encoded.fragment() == Some(&fragment)
                });
                assert!(is_there, "{path} links to {target}#{fragment}");
            }
        }
    }
    let summary = std::fs::read_to_string("../../docs/SUMMARY.md").unwrap();
    let chapters = summary.matches("](").count();
    let articles = pages
        .values()
        .filter(|page| page.text.contains("<article>"));
    assert_eq!(
        articles.count(),
        chapters,
        "every chapter of SUMMARY.md is a page"
    );
    for path in [
        "/docs/api",
        "/docs/docs.js",
        "/docs/images/console.png",
        "/llms.txt",
    ] {
        assert!(pages.contains_key(path), "no page links to {path}");
    }
}

#[tokio::test]
async fn a_language_model_gets_every_chapter_as_markdown() {
    let list = get("/llms.txt").await;
    let base = Url::parse(&format!("{}/llms.txt", demo().url)).unwrap();
    let mut seen = BTreeSet::new();
    for link in list.text.split("](").skip(1) {
        let url = base.join(link.split(')').next().unwrap()).unwrap();
        let chapter = get(url.path()).await;
        assert_eq!(chapter.status, 200, "{url}");
        assert!(
            chapter.header("content-type").starts_with("text/markdown"),
            "{url}"
        );
        seen.insert(url);
    }
    assert!(seen.len() > 40, "{}", seen.len());
}

#[tokio::test]
async fn the_search_index_leads_to_sections() {
    let index = get("/docs/search.json").await.json();
    let chapter = &index[1];
    let page = get(&format!("/docs/{}", chapter[0].as_str().unwrap())).await;
    let ids = values(&page.text, "id");
    for section in chapter[2].as_array().unwrap() {
        assert!(ids.iter().any(|id| section[0] == **id), "{section}");
    }
}

#[tokio::test]
async fn a_path_that_leads_nowhere_is_not_found() {
    let page = get("/docs/start/nothing").await;
    assert_eq!(page.status, 404);
    assert!(page.text.contains("There is no such page"));
    let response = demo()
        .ask(Method::GET, "/docs/start/nothing", None, None)
        .await;
    assert_eq!(response.error().0, 404);
}
