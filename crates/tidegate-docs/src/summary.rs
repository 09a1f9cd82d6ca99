//! The table of contents: `docs/SUMMARY.md`, in the form of mdBook.

use crate::link::address;

pub(crate) struct Summary {
    pub sections: Vec<Section>,
}

/// Chapters under one heading.
pub(crate) struct Section {
    pub title: String,
    pub chapters: Vec<Chapter>,
}

/// A chapter of the table of contents.
pub(crate) struct Chapter {
    pub title: String,
    /// The path of the chapter's page below `/docs/`.
    pub address: String,
    /// Whether the chapter is indented, which makes it part of an earlier chapter.
    pub is_nested: bool,
}

impl Summary {
    /// Parses headings `# title` and the items `- [title](path)` below them. Leaves out headings
    /// without items, items before the first heading, and other lines.
    pub(crate) fn parse(text: &str) -> Self {
        let mut sections: Vec<Section> = Vec::new();
        for line in text.lines() {
            let item = line.trim_start();
            if let Some(title) = line.strip_prefix("# ") {
                sections.push(Section {
                    title: title.to_owned(),
                    chapters: Vec::new(),
                });
            } else if let (Some((title, path)), Some(section)) = (link(item), sections.last_mut()) {
                section.chapters.push(Chapter {
                    title: title.to_owned(),
                    address: address(path),
                    is_nested: item.len() < line.len(),
                });
            }
        }
        sections.retain(|section| !section.chapters.is_empty());
        Self { sections }
    }

    /// All chapters in reading order.
    pub(crate) fn chapters(&self) -> impl Iterator<Item = &Chapter> {
        self.sections.iter().flat_map(|section| &section.chapters)
    }
}

fn link(item: &str) -> Option<(&str, &str)> {
    let (title, rest) = item.strip_prefix("- [")?.split_once("](")?;
    Some((title, rest.strip_suffix(')')?))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::embedded::{CHAPTERS, SUMMARY};

    #[test]
    fn every_chapter_of_the_summary_is_embedded() {
        let summary = Summary::parse(SUMMARY);
        let listed: BTreeSet<_> = summary.chapters().map(|of| of.address.clone()).collect();
        let embedded: BTreeSet<_> = CHAPTERS.iter().map(|of| address(of.path)).collect();
        assert_eq!(
            listed, embedded,
            "src/embedded.rs lists what docs/SUMMARY.md lists"
        );
        assert_eq!(
            CHAPTERS.len(),
            embedded.len(),
            "two chapters have one address"
        );
        assert!(
            summary
                .sections
                .iter()
                .any(|section| section.title == "How to")
        );
        assert!(summary.chapters().any(|chapter| chapter.is_nested));
    }
}
