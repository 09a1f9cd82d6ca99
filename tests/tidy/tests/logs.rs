//! Tests that `docs/LOGS.md` lists exactly the messages that the code logs at the levels `error`,
//! `warn` and `info`.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The string literals in a macro call, up to the closing parenthesis.
fn literals(call: &str) -> Vec<String> {
    let (mut depth, mut literals) = (1, Vec::new());
    let mut rest = call.chars();
    while depth > 0 {
        match rest.next().unwrap() {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            '"' => {
                let mut literal = String::new();
                loop {
                    match rest.next().unwrap() {
                        '"' => break,
                        // A line break after a backslash, with the indentation of the next line, is
                        // not part of the text.
                        '\\' => match rest.next().unwrap() {
                            '\n' => rest = rest.as_str().trim_start().chars(),
                            escaped => literal.push(escaped),
                        },
                        c => literal.push(c),
                    }
                }
                literals.push(literal);
            }
            _ => {}
        }
    }
    literals
}

/// The messages of all calls of log macros in the code. The message is the last literal of a call.
fn logged(code: &str) -> BTreeSet<String> {
    let mut messages = BTreeSet::new();
    for level in ["error!(", "warn!(", "info!(", "$level!("] {
        for (at, _) in code.match_indices(level) {
            let call = literals(&code[at + level.len()..]);
            let is_other = |c: char| c.is_alphanumeric() || c == '_';
            if !code[..at].ends_with(is_other) {
                messages.extend(call.into_iter().next_back());
            }
        }
    }
    messages
}

/// The messages in the document: the code spans in the second cell of each table row. In a message,
/// `…` stands for any text.
fn documented() -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("docs/LOGS.md")).unwrap();
    let rows = text.lines().filter_map(|line| line.split(" | ").nth(1));
    let cells = rows.filter(|cell| cell.contains('`'));
    let spans = cells.flat_map(|cell| match cell.strip_prefix("``") {
        Some(span) => vec![span.trim_end_matches('`').trim().to_owned()],
        None => cell
            .split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect(),
    });
    spans.collect()
}

fn matches(documented: &str, message: &str) -> bool {
    match documented.split_once('…') {
        Some((start, _)) => message.starts_with(start),
        None => documented == message,
    }
}

#[test]
fn every_log_message_is_documented() {
    let mut files = Vec::new();
    for folder in ["crates", "bins"] {
        for package in fs::read_dir(root().join(folder)).unwrap() {
            rust_files(&package.unwrap().path().join("src"), &mut files);
        }
    }
    let code = files.iter().map(|path| fs::read_to_string(path).unwrap());
    let logged: BTreeSet<_> = code.flat_map(|code| logged(&code)).collect();
    let documented = documented();
    assert!(logged.len() > 50, "{logged:?}");
    let missing: Vec<_> = logged
        .iter()
        .filter(|message| !documented.iter().any(|known| matches(known, message)))
        .collect();
    assert!(missing.is_empty(), "not in docs/LOGS.md: {missing:#?}");
    let stale: Vec<_> = documented
        .iter()
        .filter(|known| !logged.iter().any(|message| matches(known, message)))
        .collect();
    assert!(stale.is_empty(), "only in docs/LOGS.md: {stale:#?}");
}

#[test]
fn messages_are_found() {
    let code = "warn!(path = %f(\"(\"), \"two \\\n   words\"); tracing::info!(\"a \\\"b\\\"\")";
    let expected = ["a \"b\"", "two words"].map(str::to_owned);
    assert_eq!(logged(code), BTreeSet::from(expected));
}
