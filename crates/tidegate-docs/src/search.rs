//! The search index: the text of all chapters by section, as JSON.

use serde_json::{Value, json};

use crate::embedded::Embedded;
use crate::link::address;
use crate::markdown::{Rendered, Section};
use crate::summary::Summary;

/// The index as JSON: `[[path, title, [[anchor, heading, text], …]], …]`, in the order of the table
/// of contents.
pub(crate) fn index(summary: &Summary, chapters: &[(&Embedded, Rendered)]) -> String {
    let entries = summary.chapters().filter_map(|chapter| {
        let (_, rendered) = chapters
            .iter()
            .find(|(file, _)| address(file.path) == chapter.address)?;
        let sections: Vec<_> = rendered.sections.iter().map(section).collect();
        Some(json!([chapter.address, chapter.title, sections]))
    });
    Value::Array(entries.collect()).to_string()
}

fn section(section: &Section) -> Value {
    let words: Vec<_> = section.text.split_whitespace().collect();
    json!([section.id, section.heading, words.join(" ")])
}
