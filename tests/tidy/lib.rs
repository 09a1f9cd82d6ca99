//! Reads the packages of the workspace and their files, for the tests of the architecture in
//! `tests/`.

#![expect(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "the code of a test may panic"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// A package of the workspace.
#[derive(Debug)]
pub struct Package {
    /// The name, such as `tidegate-sql`.
    pub name: String,
    /// The folder with the manifest.
    pub dir: PathBuf,
    /// The names of the package's normal and build dependencies.
    pub dependencies: Vec<String>,
}

/// The packages of the workspace.
pub fn packages() -> Vec<Package> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version=1", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(package)
        .collect()
}

fn package(package: &Value) -> Package {
    let manifest = PathBuf::from(package["manifest_path"].as_str().unwrap());
    Package {
        name: package["name"].as_str().unwrap().to_owned(),
        dir: manifest.parent().unwrap().to_owned(),
        dependencies: package["dependencies"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|dependency| dependency["kind"] != "dev")
            .map(|dependency| dependency["name"].as_str().unwrap().to_owned())
            .collect(),
    }
}

/// The packages under `crates` and `bins`, which are shipped.
pub fn shipped() -> Vec<Package> {
    let root = root();
    packages()
        .into_iter()
        .filter(|package| {
            ["crates", "bins"]
                .iter()
                .any(|folder| package.dir.starts_with(root.join(folder)))
        })
        .collect()
}

/// The Rust files below a folder.
pub fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files
}
