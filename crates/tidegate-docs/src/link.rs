//! The addresses of chapters, and the targets of links.

use crate::embedded::{ASSETS, CHAPTERS};

/// The path of a chapter below `/docs/`, given the path of its file.
pub(crate) fn address(path: &str) -> String {
    match path {
        // The path `/docs/api` belongs to the page of the OpenAPI description.
        "API.md" => "interface".to_owned(),
        _ => path
            .trim_end_matches(".md")
            .trim_end_matches("/README")
            .to_lowercase(),
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The link leads to this URL.
    Url(String),
    /// The link leads to a file that is in the repository, but is not served.
    NotServed,
}

impl Target {
    /// The target of a link in the file `from`. `base` is the path prefix of the service.
    pub(crate) fn of(base: &str, from: &str, link: &str) -> Self {
        if link.contains("://") || link.starts_with("mailto:") || link.starts_with('#') {
            return Self::Url(link.to_owned());
        }
        let (file, fragment) = match link.split_once('#') {
            Some((file, fragment)) => (file, format!("#{fragment}")),
            None => (link, String::new()),
        };
        let path = resolve(from, file);
        let folder = format!("{path}/README.md");
        let chapter = CHAPTERS
            .iter()
            .find(|chapter| chapter.path == path || chapter.path == folder);
        if let Some(chapter) = chapter {
            let address = address(chapter.path);
            return Self::Url(format!("{base}/docs/{address}{fragment}"));
        }
        if ASSETS.iter().any(|asset| asset.path == path) {
            return Self::Url(format!("{base}/docs/{path}"));
        }
        Self::NotServed
    }
}

/// Resolves the path `link`, which is relative to the file `from`.
fn resolve(from: &str, link: &str) -> String {
    let mut path: Vec<_> = from.split('/').collect();
    path.pop();
    for step in link.split('/') {
        match step {
            ".." if path.is_empty() => return String::new(),
            ".." => {
                path.pop();
            }
            "." | "" => {}
            name => path.push(name),
        }
    }
    path.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chapter_has_its_name_in_lower_case() {
        let addresses = [
            ("start/up.md", "start/up"),
            ("OPERATIONS.md", "operations"),
            ("API.md", "interface"),
            ("adr/README.md", "adr"),
        ];
        for (path, expected) in addresses {
            assert_eq!(address(path), expected);
        }
    }

    #[test]
    fn a_link_leads_to_a_served_page_or_nowhere() {
        let cases = [
            ("up.md#the-steps", Some("/db/docs/start/up#the-steps")),
            ("../API.md", Some("/db/docs/interface")),
            ("../adr", Some("/db/docs/adr")),
            (
                "../prometheus/alerts.yml",
                Some("/db/docs/prometheus/alerts.yml"),
            ),
            ("#here", Some("#here")),
            ("https://example.com/a.md", Some("https://example.com/a.md")),
            ("../../console/README.md", None),
            ("nothing.md", None),
        ];
        for (link, expected) in cases {
            let target = Target::of("/db", "start/first-minutes.md", link);
            let expected = expected.map_or(Target::NotServed, |url| Target::Url(url.to_owned()));
            assert_eq!(target, expected, "{link}");
        }
    }
}
