//! The form of the book: every document is in its table of contents, every link has a target, and
//! every block is run or marked as not run.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::blocks::Blocks;
use crate::chapters::RUN;
use crate::fixture::root;

/// The folders whose documents have commands that are run.
const CHAPTERS: &[&str] = &[
    "start",
    "tutorials",
    "how-to",
    "from",
    "reference",
    "explanation",
];

/// The blocks that cannot run here: configuration of other programs, and what needs root or Docker.
const MAX_BLOCKS_NOT_RUN: usize = 35;

fn documents(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut found = Vec::new();
    for path in entries {
        if path.is_dir() {
            found.extend(documents(&path));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn chapters() -> Vec<PathBuf> {
    let docs = root().join("docs");
    CHAPTERS
        .iter()
        .flat_map(|folder| documents(&docs.join(folder)))
        .collect()
}

/// The targets of the links of a text, without those in code.
fn links(text: &str) -> Vec<String> {
    let mut code = false;
    let mut found = Vec::new();
    for line in text.lines() {
        code ^= line.starts_with("```");
        let pieces = line.split("](").skip(1).filter(|_| !code);
        found.extend(pieces.filter_map(|piece| Some(piece.split_once(')')?.0.to_owned())));
    }
    found
}

/// The anchor of a heading, as GitHub and mdBook make it.
fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let lower = heading.trim_start_matches('#').trim().to_lowercase();
    lower
        .chars()
        .filter(kept)
        .collect::<String>()
        .replace(' ', "-")
}

fn anchors(text: &str) -> BTreeSet<String> {
    let mut code = false;
    let mut found = BTreeSet::new();
    for line in text.lines() {
        code ^= line.starts_with("```");
        if !code && line.starts_with('#') {
            found.insert(anchor(line));
        }
    }
    found
}

#[test]
fn every_document_is_in_the_table_of_contents() {
    let docs = root().join("docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let listed: BTreeSet<_> = links(&summary).into_iter().collect();
    for path in documents(&docs) {
        let short = path
            .strip_prefix(&docs)
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        let is_listed = listed.contains(&short) || short == "SUMMARY.md";
        assert!(is_listed, "docs/SUMMARY.md does not list {short}");
    }
}

#[test]
fn every_link_between_documents_leads_somewhere() {
    let root = root();
    let mut seen = 0;
    for path in documents(&root.join("docs"))
        .into_iter()
        .chain([root.join("README.md")])
    {
        let text = fs::read_to_string(&path).unwrap();
        for link in links(&text) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            seen += 1;
            let (file, fragment) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() {
                path.clone()
            } else {
                path.parent().unwrap().join(file)
            };
            let place = format!("{}: {link}", path.display());
            assert!(target.exists(), "{place} does not exist");
            if !fragment.is_empty() {
                let found = anchors(&fs::read_to_string(&target).unwrap());
                assert!(found.contains(fragment), "{place} has no such heading");
            }
        }
    }
    assert!(seen > 100, "only {seen} links were found");
}

#[test]
fn every_block_is_run_or_says_that_it_is_not() {
    let mut not_run = 0;
    for path in chapters() {
        let blocks = Blocks::of(&fs::read_to_string(&path).unwrap());
        let short = path
            .strip_prefix(root())
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        assert!(
            blocks.unknown.is_empty(),
            "{short}: what are these? {:?}",
            blocks.unknown
        );
        let is_run = RUN.contains(&short.as_str());
        assert_eq!(
            is_run,
            !blocks.steps.is_empty(),
            "{short} is in the list of chapters.rs?"
        );
        not_run += blocks.norun;
    }
    assert!(
        not_run <= MAX_BLOCKS_NOT_RUN,
        "{not_run} blocks are not run"
    );
}

/// The required content of `llms.txt`: the table of contents, in the form of <https://llmstxt.org>.
fn llms() -> String {
    let docs = root().join("docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let mut text = String::from(
        "# Tidegate\n\n> Runs in front of PostgreSQL and turns every table, statement and change \
         into an API: GraphQL, SQL over HTTP, JSON-RPC, change events and OAuth 2.0. Every request \
         runs as a PostgreSQL role, that of its user or of a group of members; grants and row \
         level security decide.\n",
    );
    for line in summary.lines() {
        if let Some(part) = line.strip_prefix("# ").filter(|part| *part != "Summary") {
            text.extend(["\n## ", part, "\n\n"]);
        } else if let Some((title, file)) = line.split_once("](").filter(|_| line.starts_with('-'))
        {
            text.extend([title, "](docs/", file, "\n"]);
        }
    }
    text
}

#[test]
fn llms_txt_is_the_table_of_contents() {
    let path = root().join("llms.txt");
    let made = llms();
    let new = root().join("target/tmp/llms.txt");
    if fs::read_to_string(&path).unwrap_or_default() != made {
        fs::create_dir_all(new.parent().unwrap()).unwrap();
        fs::write(&new, &made).unwrap();
        panic!("llms.txt differs; the new text is in {}", new.display());
    }
}

/// Whether a word is an error code, and not a location of GraphQL, a variable or a command.
fn is_error_code(word: &str) -> bool {
    const OTHERS: &[&str] = &[
        "TIDEGATE_",
        "CARGO_",
        "PG_",
        "LC_",
        "XDG_",
        "FRAGMENT_",
        "INPUT_OBJECT",
        "INPUT_FIELD",
        "IDENTIFY_SYSTEM",
        "START_REPLICATION",
        "INLINE_",
    ];
    const ENDS: &[&str] = &["_DEFINITION", "NON_NULL", "ENUM_VALUE"];
    let capitals = word.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    let other =
        OTHERS.iter().any(|it| word.starts_with(it)) || ENDS.iter().any(|it| word.ends_with(it));
    capitals && word.len() > 5 && word.contains('_') && !word.starts_with('_') && !other
}

fn rust_sources(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("tests") {
            rust_sources(&path, text);
        } else if path.extension().is_some_and(|it| it == "rs") && !path.ends_with("tests.rs") {
            text.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn the_error_codes_are_those_of_the_program() {
    let root = root();
    let mut source = String::new();
    for entry in fs::read_dir(root.join("crates")).unwrap() {
        rust_sources(&entry.unwrap().path().join("src"), &mut source);
    }
    let codes: BTreeSet<_> = source.split('"').filter(|it| is_error_code(it)).collect();
    assert!(codes.len() > 30, "{codes:?}");
    let document = fs::read_to_string(root.join("docs/reference/errors.md")).unwrap();
    for code in &codes {
        let row = format!("| `{code}` |");
        assert!(
            document.contains(&row),
            "docs/reference/errors.md lacks {code}"
        );
    }
    let rows = document
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    for code in rows {
        let literal = format!("\"{code}\"");
        assert!(
            source.contains(&literal),
            "docs/reference/errors.md has {code}"
        );
    }
}
