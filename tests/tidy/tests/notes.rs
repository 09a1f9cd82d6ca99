//! Tests that the notes on the specification name only existing tests.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it stands"
)]

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The words between backticks in the last cell of a row.
fn named(row: &str) -> Vec<&str> {
    let cells: Vec<_> = row.trim_end_matches([' ', '|']).split(" | ").collect();
    cells
        .last()
        .unwrap()
        .split('`')
        .skip(1)
        .step_by(2)
        .collect()
}

/// Whether a file below `folder` contains the text.
fn is_in(folder: &Path, text: &str) -> bool {
    fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return is_in(&path, text);
        }
        let is_rust = path.extension().is_some_and(|extension| extension == "rs");
        is_rust && fs::read_to_string(&path).unwrap().contains(text)
    })
}

/// Whether `module` or `module::function` is a test of the crate.
fn is_in_crate(name: &str, test: &str) -> bool {
    let folder = root().join("crates").join(name);
    match test.rsplit_once("::") {
        Some((_, function)) => {
            is_in(&folder, &format!("fn {function}("))
                || is_in(&folder, &format!("mod {function};"))
        }
        None => is_in(&folder, &format!("mod {test};")),
    }
}

/// Whether `module` or `module::function` is a test of the built binary (`tests/api`).
fn is_in_api(test: &str) -> bool {
    let (module, mark) = match test.split_once("::") {
        Some((module, function)) => (module, format!("fn {function}(")),
        None => (test, "::test".to_owned()),
    };
    let file = root().join(format!("tests/api/{module}.rs"));
    fs::read_to_string(file).unwrap_or_default().contains(&mark)
}

#[test]
fn every_row_of_the_notes_names_a_test_that_is_there() {
    let notes = fs::read_to_string(root().join("docs/SPEC-NOTES.md")).unwrap();
    let mut tests = 0;
    let is_row = |line: &&str| line.starts_with("| ") && !line.ends_with("| test |");
    for row in notes.lines().filter(is_row) {
        let mut crate_named = None;
        for name in named(row) {
            match name.strip_prefix("api::") {
                Some(test) => assert!(is_in_api(test), "{row}\nnames {name}, which is not there"),
                None if name.starts_with("tidegate-") => crate_named = Some(name),
                None if name.contains('/') => assert!(root().join(name).exists(), "{row}"),
                None => {
                    let found =
                        crate_named.is_some_and(|crate_named| is_in_crate(crate_named, name));
                    assert!(found, "{row}\nnames {name}, which is not there");
                }
            }
            tests += 1;
        }
        assert!(
            !named(row).is_empty() || row.ends_with("no code yet |"),
            "{row}\nnames no test"
        );
    }
    assert!(tests > 40, "{tests}");
}
