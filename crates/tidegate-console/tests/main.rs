//! Tests the console's files, and that they were built from the present source.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it stands"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use tidegate_console::{FILES, page};

/// The files that the build reads besides the folder `src`.
const OTHER_SOURCES: [&str; 4] = [
    "build.mjs",
    "package-lock.json",
    "package.json",
    "tsconfig.json",
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../console")
}

/// The folder of the built console.
fn dist() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("dist")
}

fn sources() -> Vec<PathBuf> {
    let mut files: Vec<_> = OTHER_SOURCES.iter().map(PathBuf::from).collect();
    let mut folders = vec![PathBuf::from("src")];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(folder().join(&next)).unwrap() {
            let entry = entry.unwrap();
            let path = next.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files
}

fn hash(path: &Path) -> String {
    let mut text = String::new();
    for byte in Sha256::digest(fs::read(path).unwrap()) {
        write!(text, "{byte:02x}").unwrap();
    }
    text
}

#[test]
fn the_console_was_built_from_its_present_source() {
    let recorded = fs::read_to_string(dist().join("SOURCE.txt")).unwrap();
    let recorded: BTreeMap<_, _> = recorded
        .lines()
        .map(|line| line.split_once("  ").unwrap())
        .map(|(hash, path)| (path.to_owned(), hash.to_owned()))
        .collect();
    let present: BTreeMap<_, _> = sources()
        .iter()
        .map(|path| {
            let name = path.to_str().unwrap().replace('\\', "/");
            (name, hash(&folder().join(path)))
        })
        .collect();
    let changed: Vec<_> = recorded
        .keys()
        .chain(present.keys())
        .filter(|name| recorded.get(*name) != present.get(*name))
        .collect();
    assert!(
        changed.is_empty(),
        "changed since dist was built: {changed:?}; run `npm ci && npm run build` in \
         console/"
    );
}

#[test]
fn every_built_file_is_embedded() {
    let mut built: Vec<_> = fs::read_dir(dist())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "SOURCE.txt" && name != "index.html")
        .collect();
    built.sort();
    let mut embedded: Vec<_> = FILES.iter().map(|file| file.name.to_owned()).collect();
    embedded.sort();
    assert_eq!(built, embedded);
    for built in FILES {
        let content = fs::read(dist().join(built.name)).unwrap();
        assert_eq!(content, built.bytes, "{}", built.name);
    }
}

#[test]
fn the_page_refers_to_embedded_files_below_the_path_of_the_service() {
    for base in ["", "/db"] {
        let page = page(base);
        assert!(!page.contains("{{"), "{page}");
        let start = format!("\"{base}/console/");
        let referred: Vec<_> = page
            .split(&start)
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap())
            .collect();
        assert_eq!(referred, ["console.css", "console.js"]);
        for name in referred {
            assert!(FILES.iter().any(|file| file.name == name), "{name}");
        }
    }
}

/// What the page loads before the editor must stay below 300 KiB compressed. The files compress to
/// about a quarter, so the test compares their size with four times the limit and needs no
/// compressor.
#[test]
fn the_first_load_is_small() {
    let first = ["console.js", "console.css"].map(|name| {
        let file = FILES.iter().find(|file| file.name == name).unwrap();
        file.bytes.len()
    });
    assert!(first.iter().sum::<usize>() < 4 * 300 * 1024, "{first:?}");
}
