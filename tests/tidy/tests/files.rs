//! Tests the sizes and names of files, and the documents of each crate.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use tidegate_tidy::{root, rust_files, shipped};

const MAX_LINES: usize = 400;

/// The limit for test files is higher, because they are tables of cases.
const MAX_TEST_LINES: usize = 500;

/// Modules that the code map need not name.
const IN_EVERY_CRATE: [&str; 4] = ["lib", "main", "error", "settings"];

/// The number of lines before a trailing `#[cfg(test)] mod`.
fn production_lines(text: &str) -> usize {
    let lines: Vec<_> = text.lines().collect();
    let tests = lines.windows(2).position(|pair| {
        pair[0].trim() == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{')
    });
    tests.unwrap_or(lines.len())
}

#[test]
fn files_stay_small() {
    let root = root();
    let mut seen = 0;
    for package in shipped() {
        for path in rust_files(&package.dir.join("src")) {
            let short = path
                .strip_prefix(&root)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            let lines = production_lines(&fs::read_to_string(&path).unwrap());
            seen += 1;
            assert!(
                lines <= MAX_LINES,
                "{short} has {lines} production lines, more than {MAX_LINES}"
            );
        }
    }
    assert!(seen > 50, "only {seen} files were found");
}

#[test]
fn test_files_stay_small() {
    let root = root();
    let shipped = shipped();
    let folders = shipped.iter().map(|package| package.dir.join("tests"));
    let mut seen = 0;
    for folder in folders.chain([root.join("tests")]).filter(|f| f.is_dir()) {
        for path in rust_files(&folder) {
            let lines = fs::read_to_string(&path).unwrap().lines().count();
            let short = path.strip_prefix(&root).unwrap().display();
            seen += 1;
            assert!(
                lines <= MAX_TEST_LINES,
                "{short} has {lines} lines, more than {MAX_TEST_LINES}: split it by subject"
            );
        }
    }
    assert!(seen > 100, "only {seen} files were found");
}

#[test]
fn no_bucket_modules() {
    for package in shipped() {
        for path in rust_files(&package.dir.join("src")) {
            let stem = path.file_stem().unwrap().to_str().unwrap();
            let parent = path
                .parent()
                .unwrap()
                .file_name()
                .unwrap()
                .to_str()
                .unwrap();
            for bucket in [
                "utils", "util", "helpers", "common", "types", "manager", "misc",
            ] {
                assert!(
                    stem != bucket && parent != bucket,
                    "{} is a bucket",
                    path.display()
                );
            }
        }
    }
}

#[test]
fn every_crate_has_a_readme_and_an_example() {
    for package in shipped()
        .iter()
        .filter(|package| package.name != "tidegate")
    {
        let readme = fs::read_to_string(package.dir.join("README.md"))
            .unwrap_or_else(|_| panic!("{} has no README.md", package.name));
        assert!(
            readme.contains("```rust") || readme.contains("```\nuse "),
            "the README of {} shows no example",
            package.name
        );
        let lib = fs::read_to_string(package.dir.join("src/lib.rs")).unwrap();
        assert!(
            lib.contains("#![doc = include_str!(\"../README.md\")]"),
            "the README of {} is not its crate doc",
            package.name
        );
        assert!(
            !rust_files(&package.dir.join("examples")).is_empty(),
            "{} has no example",
            package.name
        );
    }
}

/// The code map of docs/ARCHITECTURE.md: for each crate the folder of its source, and its section.
fn code_map() -> Vec<(PathBuf, String)> {
    let text = fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    let (_, map) = text.split_once("\n## Code map\n").unwrap();
    let (map, _) = map.split_once("\n### Outside of the crates\n").unwrap();
    let sections = map.split("\n### `").skip(1);
    let crates = sections.map(|section| {
        let (name, section) = section.split_once('`').unwrap();
        let folder = match name {
            "bins/tidegate" => name.to_owned(),
            "tidegate-testkit" => "tests/testkit".to_owned(),
            _ => format!("crates/{name}"),
        };
        (root().join(folder).join("src"), section.to_owned())
    });
    crates.collect()
}

/// Reads the modules from the first column of the tables.
#[test]
fn the_modules_of_the_code_map_exist() {
    let mut seen = 0;
    for (source, section) in code_map() {
        for row in section.lines().filter(|line| line.starts_with("| `")) {
            let first = row.split('|').nth(1).unwrap();
            for module in first.split('`').skip(1).step_by(2) {
                let path = source.join(module);
                let exists = path.is_dir() || path.with_extension("rs").is_file();
                assert!(exists, "{} has no module {module}", source.display());
                seen += 1;
            }
        }
    }
    assert!(seen > 200, "only {seen} modules were found");
}

/// A section may name a module in a table or in a sentence.
#[test]
fn the_code_map_names_every_module() {
    let sections: BTreeMap<_, _> = code_map().into_iter().collect();
    for package in shipped() {
        let source = package.dir.join("src");
        let section = sections
            .get(&source)
            .unwrap_or_else(|| panic!("the code map has no {}", package.name));
        let named: BTreeSet<_> = section.split('`').skip(1).step_by(2).collect();
        for entry in fs::read_dir(&source).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() || path.extension().is_some_and(|extension| extension == "rs") {
                let module = path.file_stem().unwrap().to_str().unwrap();
                assert!(
                    named.contains(module) || IN_EVERY_CRATE.contains(&module),
                    "the code map does not name {module} of {}",
                    package.name
                );
            }
        }
    }
}

/// Reads the files and functions of the tables in "The path of a warm select by key".
#[test]
fn the_functions_of_the_request_path_exist() {
    let text = fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    let (_, section) = text.split_once("### The path of a warm select").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let mut seen = 0;
    for row in section.lines().filter(|line| line.starts_with("| `")) {
        let mut cells = row.split('|').skip(1);
        let file = cells.next().unwrap().trim().trim_matches('`');
        let code = fs::read_to_string(root().join("crates").join(file)).unwrap();
        for function in cells.next().unwrap().split('`').skip(1).step_by(2) {
            let begin = format!("fn {function}");
            let is_there = ["(", "<"]
                .iter()
                .any(|next| code.contains(&format!("{begin}{next}")));
            assert!(is_there, "{file} has no function {function}");
            seen += 1;
        }
    }
    assert!(seen > 20, "only {seen} functions were found");
}

/// The first table is the path of `POST /api/v4/sql`.
#[test]
fn the_request_path_stays_short() {
    let text = fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    let (_, section) = text.split_once("### The path of a warm select").unwrap();
    let table = section.lines().skip_while(|line| !line.starts_with("| `"));
    let rows = table.take_while(|line| line.starts_with('|'));
    let files: BTreeSet<_> = rows.filter_map(|row| row.split('`').nth(1)).collect();
    let number = files.len();
    assert!((20..45).contains(&number), "{number} files to open");
}

/// A decision may have further files, such as a plan, that begin with its number.
#[test]
fn decisions_are_numbered_without_holes_and_listed() {
    let folder = root().join("docs/adr");
    let list = fs::read_to_string(folder.join("README.md")).unwrap();
    let names = fs::read_dir(folder).unwrap().map(|entry| {
        let name = entry.unwrap().file_name();
        name.to_str().unwrap().to_owned()
    });
    let numbers: BTreeSet<String> = names
        .filter(|name| name.starts_with(|first: char| first.is_ascii_digit()))
        .map(|name| name[..4].to_owned())
        .collect();
    for (number, found) in (1..).zip(&numbers) {
        assert_eq!(*found, format!("{number:04}"));
        assert!(list.contains(&format!("| [{found}]({found}-")), "{found}");
    }
    assert!(numbers.len() > 10, "{numbers:?}");
}
