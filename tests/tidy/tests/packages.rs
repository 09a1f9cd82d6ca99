//! Tests that container files and packages name only existing files and settings. The packages
//! themselves are not built in tests.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Variables that are not settings of the service.
const NO_SETTINGS: [&str; 1] = ["TIDEGATE_BINARY"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.append(&mut files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// The variables of the settings, read from a table that a test of the binary compares with the
/// code.
fn variables() -> BTreeSet<String> {
    let document = fs::read_to_string(root().join("docs/OPERATIONS.md")).unwrap();
    let rows = document.lines().filter_map(|line| line.strip_prefix("| `"));
    let names = rows.filter_map(|row| row.split_once("` |"));
    let names = names.map(|(name, _)| format!("TIDEGATE_{}", name.to_ascii_uppercase()));
    names.chain(NO_SETTINGS.map(str::to_owned)).collect()
}

/// The words of a text that are names of variables.
fn named(text: &str) -> impl Iterator<Item = &str> {
    let outside = |c: char| !c.is_ascii_uppercase() && !c.is_ascii_digit() && c != '_';
    let words = text.split(outside);
    words.filter(|word| {
        word.strip_prefix("TIDEGATE_")
            .is_some_and(|it| !it.is_empty())
    })
}

#[test]
fn every_variable_of_packages_and_containers_is_a_setting() {
    let variables = variables();
    assert!(variables.contains("TIDEGATE_ADMIN_URL"), "{variables:?}");
    let (mut unknown, mut seen) = (Vec::new(), 0);
    for path in files(&root().join("dist")) {
        let text = fs::read_to_string(&path).unwrap();
        for name in named(&text) {
            seen += 1;
            if !variables.contains(name) {
                unknown.push(format!("{}: {name}", path.display()));
            }
        }
    }
    assert_eq!(unknown, Vec::<String>::new());
    assert!(seen >= 10, "only {seen} variables were found");
}

#[test]
fn what_container_files_copy_and_build_is_there() {
    let mut seen = 0;
    for file in ["dist/Dockerfile", "dist/container/demo.Dockerfile"] {
        let text = fs::read_to_string(root().join(file)).unwrap();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            // Files that an earlier stage of the container build creates are not in the repository.
            if words.next() != Some("COPY") || line.contains("--from=") {
                continue;
            }
            let source = words.next().unwrap();
            assert!(root().join(source).exists(), "{file}: {line}");
            seen += 1;
        }
    }
    let compose = fs::read_to_string(root().join("dist/container/compose.yaml")).unwrap();
    let dockerfile = compose
        .lines()
        .find_map(|line| line.trim().strip_prefix("dockerfile: "));
    assert!(root().join(dockerfile.unwrap()).exists());
    assert!(seen >= 3, "only {seen} files were found");
}

/// The paths of `include_str!` and `include_bytes!` with a literal.
fn included(text: &str) -> Vec<&str> {
    let starts = ["include_str!(\"", "include_bytes!(\""];
    let after = starts.iter().flat_map(|start| text.split(start).skip(1));
    after.filter_map(|rest| rest.split('"').next()).collect()
}

/// A published crate consists of the files below its folder; a symbolic link counts as its target.
#[test]
fn crates_include_only_files_of_their_own() {
    let (mut outside, mut seen) = (Vec::new(), 0);
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let sources = entry.unwrap().path().join("src");
        for path in files(&sources) {
            let text = fs::read_to_string(&path).unwrap();
            let depth = path.strip_prefix(&sources).unwrap().components().count();
            for name in included(&text) {
                seen += 1;
                if name.split('/').take_while(|part| *part == "..").count() > depth {
                    outside.push(format!("{}: {name}", path.display()));
                }
            }
        }
    }
    assert_eq!(outside, Vec::<String>::new());
    assert!(seen >= 20, "only {seen} files are included");
}
