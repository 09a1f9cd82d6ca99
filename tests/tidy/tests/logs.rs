//! Tests that `docs/LOGS.md` lists exactly the messages that the code logs at the levels `error`,
//! `warn` and `info`, with their fields.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::Chars;

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

/// A call of a log macro, or a row of the document for one of its messages.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    message: String,
    /// The fields. In the document, an element may have several names, of which a call has one.
    fields: BTreeSet<BTreeSet<String>>,
}

/// The rest of a string literal, with its closing quote.
fn literal(rest: &mut Chars<'_>) -> String {
    let mut literal = String::new();
    loop {
        match rest.next().unwrap() {
            '"' => return literal + "\"",
            // A line break after a backslash, with the indentation of the next line, is not part of
            // the text.
            '\\' => match rest.next().unwrap() {
                '\n' => *rest = rest.as_str().trim_start().chars(),
                escaped => literal.push(escaped),
            },
            c => literal.push(c),
        }
    }
}

/// The arguments of a macro call, up to the closing parenthesis.
fn arguments(call: &str) -> Vec<String> {
    let (mut depth, mut arguments, mut argument) = (1, Vec::new(), String::new());
    let mut rest = call.chars();
    while depth > 0 {
        let c = rest.next().unwrap();
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 || depth == 1 && c == ',' {
            arguments.push(std::mem::take(&mut argument).trim().to_owned());
        } else {
            argument.push(c);
        }
        if c == '"' {
            argument += &literal(&mut rest);
        }
    }
    arguments
}

/// The name of the field that an argument sets, such as `a` in `%a` and in `a = ?b`; `None` if the
/// argument is not a field.
fn field(argument: &str) -> Option<BTreeSet<String>> {
    let name = argument.split(" = ").next()?.trim_start_matches(['%', '?']);
    let is_name = |c: char| c.is_alphanumeric() || "_.".contains(c);
    (!name.is_empty() && name.chars().all(is_name)).then(|| [name.to_owned()].into())
}

/// The calls of log macros in the code. The message is the last literal of a call.
fn logged(code: &str) -> BTreeSet<Entry> {
    let mut entries = BTreeSet::new();
    for level in ["error!(", "warn!(", "info!(", "$level!("] {
        for (at, _) in code.match_indices(level) {
            let is_other = |c: char| c.is_alphanumeric() || c == '_';
            if code[..at].ends_with(is_other) {
                continue;
            }
            let arguments = arguments(&code[at + level.len()..]);
            let mut texts = arguments.iter().rev();
            let text = texts.find_map(|text| text.strip_prefix('"')?.strip_suffix('"'));
            entries.extend(text.map(|message| Entry {
                message: message.to_owned(),
                fields: arguments.iter().filter_map(|one| field(one)).collect(),
            }));
        }
    }
    entries
}

/// The code spans of a table cell.
fn spans(cell: &str) -> Vec<String> {
    if let Some(span) = cell.strip_prefix("``") {
        return vec![span.trim_end_matches('`').trim().to_owned()];
    }
    let spans = cell.split('`').skip(1).step_by(2);
    spans.map(str::to_owned).collect()
}

/// The log messages that docs/LOGS.md lists. In each table row, the second cell has the message and
/// the third cell its fields. `…` in a message matches any text.
fn documented() -> BTreeSet<Entry> {
    let text = fs::read_to_string(root().join("docs/LOGS.md")).unwrap();
    let mut entries = BTreeSet::new();
    for line in text.lines() {
        let mut cells = line.split("| ").map(str::trim).skip(2);
        let (Some(messages), Some(fields)) = (cells.next(), cells.next()) else {
            continue;
        };
        let fields: BTreeSet<_> = fields.split(", ").map(spans).collect();
        for message in spans(messages) {
            let fields = fields.iter().filter(|names| !names.is_empty());
            entries.insert(Entry {
                message,
                fields: fields
                    .map(|names| names.iter().cloned().collect())
                    .collect(),
            });
        }
    }
    entries
}

/// Whether a row of the document describes the call.
fn matches(documented: &Entry, logged: &Entry) -> bool {
    let same_message = match documented.message.split_once('…') {
        Some((start, _)) => logged.message.starts_with(start),
        None => documented.message == logged.message,
    };
    let is_logged = |names: &BTreeSet<String>| logged.fields.iter().any(|one| one.is_subset(names));
    same_message
        && documented.fields.len() == logged.fields.len()
        && documented.fields.iter().all(is_logged)
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
    let variable: Vec<_> = logged
        .iter()
        .filter(|call| call.message.contains('{'))
        .collect();
    assert!(
        variable.is_empty(),
        "a message with a variable: {variable:#?}"
    );
    let missing: Vec<_> = logged
        .iter()
        .filter(|call| !documented.iter().any(|known| matches(known, call)))
        .collect();
    assert!(missing.is_empty(), "not in docs/LOGS.md: {missing:#?}");
    let stale: Vec<_> = documented
        .iter()
        .filter(|known| !logged.iter().any(|call| matches(known, call)))
        .collect();
    assert!(stale.is_empty(), "only in docs/LOGS.md: {stale:#?}");
}

#[test]
fn messages_and_fields_are_found() {
    let code =
        "warn!(path = %f(\"(\", a), ?b, \"two \\\n   words\"); tracing::info!(\"a \\\"b\\\"\")";
    let entry = |message: &str, fields: &[&str]| Entry {
        message: message.to_owned(),
        fields: fields
            .iter()
            .map(|name| [(*name).to_owned()].into())
            .collect(),
    };
    let (bare, call) = (entry("a \"b\"", &[]), entry("two words", &["path", "b"]));
    assert!(!matches(&entry("two words", &["path"]), &call));
    assert!(!matches(&entry("two words", &["path", "c"]), &call));
    assert!(!matches(&entry("two words", &["path", "b", "c"]), &call));
    let mut either = entry("two …", &["path"]);
    either.fields.insert(["b", "c"].map(str::to_owned).into());
    assert!(matches(&either, &call));
    assert_eq!(logged(code), BTreeSet::from([bare, call]));
}
