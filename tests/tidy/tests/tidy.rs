//! Tests the architecture: layers, dependencies that only certain crates may have, sizes of files,
//! and the documents of each crate.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it stands"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The crates besides the server itself that may speak HTTP (I2 in docs/ARCHITECTURE.md).
const SPEAKS_HTTP: [&str; 3] = ["tidegate-http", "tidegate-pages", "tidegate-socket"];

/// Dependencies that only these crates may have (I3 in docs/ARCHITECTURE.md).
const HOMES: &[(&str, &[&str])] = &[
    ("hyper", &["tidegate-server", "tidegate-socket"]),
    ("hyper-util", &["tidegate-server", "tidegate-socket"]),
    ("tower", &["tidegate-server"]),
    ("tokio-tungstenite", &["tidegate-socket"]),
    ("juniper", &["tidegate-graphql"]),
    (
        "tokio-postgres",
        &["tidegate-service", "tidegate-capture", "tidegate-admin"],
    ),
    ("deadpool-postgres", &["tidegate-service"]),
    (
        "postgres-protocol",
        &[
            "tidegate-wire",
            "tidegate-postgres",
            "tidegate-capture",
            "tidegate-admin",
        ],
    ),
    ("hmac", &["tidegate-postgres"]),
    (
        "sha2",
        &[
            "tidegate-wire",
            "tidegate-postgres",
            "tidegate-capture",
            "tidegate-download",
        ],
    ),
    (
        "postgres-types",
        &[
            "tidegate-values",
            "tidegate-sql",
            "tidegate-service",
            "tidegate-postgres",
        ],
    ),
    (
        "ring",
        &[
            "tidegate-identity",
            "tidegate-oauth",
            "tidegate-oidc",
            "tidegate-issuers",
        ],
    ),
    ("oauth2", &["tidegate-oidc"]),
    ("lettre", &["tidegate-mail"]),
    (
        "reqwest",
        &["tidegate-oidc", "tidegate-download", "tidegate-issuers"],
    ),
    ("argon2", &["tidegate-identity"]),
    ("data-encoding", &["tidegate-identity"]),
    ("maud", &["tidegate-pages", "tidegate-docs"]),
    ("pulldown-cmark", &["tidegate-docs"]),
    ("qrcode", &["tidegate-pages"]),
    ("rustls", &["tidegate-server", "tidegate-wire", "tidegate"]),
    ("clap", &["tidegate", "tidegate-bench"]),
    ("tracing-subscriber", &["tidegate"]),
    ("mimalloc", &["tidegate"]),
];

/// Crates without I/O and without a runtime (I5 in docs/ARCHITECTURE.md).
const WITHOUT_TOKIO: &[&str] = &[
    "tidegate-values",
    "tidegate-sql",
    "tidegate-changelog",
    "tidegate-catalog",
    "tidegate-methods",
    "tidegate-filter",
    "tidegate-plan",
    "tidegate-rpc",
];

const MAX_LINES: usize = 400;

/// The limit for test files is higher, because they are tables of cases.
const MAX_TEST_LINES: usize = 500;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// A crate in the block `layers` of docs/ARCHITECTURE.md (I1).
struct Layer {
    number: u8,
    /// The crates that this crate may depend on.
    below: Vec<String>,
}

/// The full name of a package: `sql` in the document is the crate `tidegate-sql`, `tidegate` is the
/// binary.
fn full_name(short: &str) -> String {
    if short == "tidegate" {
        return short.to_owned();
    }
    format!("tidegate-{short}")
}

/// The layers, by the full names of their crates.
fn layers() -> BTreeMap<String, Layer> {
    let document = fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    let (_, block) = document.split_once("```text layers\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let read = |line: &str| {
        let (head, below) = line.split_once("->").unwrap_or((line, ""));
        let (number, name) = head.trim().split_once(' ').unwrap();
        let number = number.trim_start_matches('L').parse().unwrap();
        let below = below.split_whitespace().map(full_name).collect();
        (full_name(name.trim()), Layer { number, below })
    };
    block.lines().map(read).collect()
}

struct Package {
    name: String,
    dir: PathBuf,
    /// The names of the package's normal and build dependencies.
    dependencies: Vec<String>,
}

fn packages() -> Vec<Package> {
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
fn shipped() -> Vec<Package> {
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

fn rust_files(dir: &Path) -> Vec<PathBuf> {
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

/// The number of lines before a trailing `#[cfg(test)] mod`.
fn production_lines(text: &str) -> usize {
    let lines: Vec<_> = text.lines().collect();
    let tests = lines.windows(2).position(|pair| {
        pair[0].trim() == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{')
    });
    tests.unwrap_or(lines.len())
}

#[test]
fn every_crate_has_a_layer() {
    let (layers, shipped) = (layers(), shipped());
    for package in &shipped {
        assert!(
            layers.contains_key(&package.name),
            "{} has no layer in docs/ARCHITECTURE.md",
            package.name
        );
    }
    assert_eq!(
        layers.len(),
        shipped.len(),
        "docs/ARCHITECTURE.md has layers of crates that do not exist"
    );
}

#[test]
fn dependencies_point_downwards() {
    let layers = layers();
    for (name, layer) in &layers {
        for below in &layer.below {
            let other = layers[below].number;
            assert!(
                other < layer.number,
                "docs/ARCHITECTURE.md: {name} (L{}) depends on {below} (L{other})",
                layer.number
            );
        }
    }
}

#[test]
fn edges_between_crates_are_the_documented_ones() {
    let layers = layers();
    for package in shipped() {
        let is_ours = |name: &&String| name.starts_with("tidegate");
        let mut used: Vec<_> = package.dependencies.iter().filter(is_ours).collect();
        let mut documented: Vec<_> = layers[&package.name].below.iter().collect();
        used.sort();
        documented.sort();
        assert_eq!(
            used, documented,
            "the dependencies of {} differ from docs/ARCHITECTURE.md",
            package.name
        );
    }
}

#[test]
fn foreign_crates_stay_in_their_homes() {
    for package in shipped() {
        for (foreign, homes) in HOMES {
            assert!(
                homes.contains(&package.name.as_str())
                    || !package.dependencies.iter().any(|name| name == foreign),
                "{} names {foreign}, whose home is {homes:?}",
                package.name
            );
        }
    }
}

#[test]
fn pure_crates_never_wait() {
    for package in shipped() {
        if WITHOUT_TOKIO.contains(&package.name.as_str()) {
            assert!(
                !package.dependencies.iter().any(|name| name == "tokio"),
                "{} names tokio",
                package.name
            );
        }
    }
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

#[test]
fn libraries_below_the_server_know_no_status_and_no_header() {
    let layers = layers();
    for package in shipped()
        .iter()
        .filter(|package| layers[&package.name].number < layers["tidegate-server"].number)
        .filter(|package| !SPEAKS_HTTP.contains(&&*package.name))
    {
        assert!(
            !package
                .dependencies
                .iter()
                .any(|name| name == "http" || name == "hyper"),
            "{} knows HTTP",
            package.name
        );
    }
}

#[test]
fn no_statement_changes_its_role() {
    for package in shipped() {
        for path in rust_files(&package.dir.join("src")) {
            let text = fs::read_to_string(&path).unwrap();
            let code: String = text
                .lines()
                .filter(|line| !line.trim_start().starts_with("//"))
                .collect::<Vec<_>>()
                .join("\n")
                .to_lowercase();
            for verb in ["\"set role", "set local role", "; set role"] {
                // The first file recognises the words in statements of callers. The second revokes
                // grants as the grantor, for which PostgreSQL offers no other way within one
                // transaction.
                let may = ["statement/kind.rs", "tidegate-admin/src/revocation.rs"];
                assert!(
                    !code.contains(verb) || may.iter().any(|may| path.ends_with(may)),
                    "{} holds {verb:?}: connections log in as their role (I7)",
                    path.display()
                );
            }
        }
    }
}

#[test]
fn every_workspace_dependency_is_used() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let section = manifest.split("[workspace.dependencies]").nth(1).unwrap();
    let section = section.split("\n[").next().unwrap();
    let manifests: String = packages()
        .iter()
        .map(|package| fs::read_to_string(package.dir.join("Cargo.toml")).unwrap())
        .collect();
    for line in section
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'))
    {
        let Some((name, _)) = line.split_once(" = ") else {
            continue;
        };
        assert!(
            manifests.contains(&format!("\n{name}.workspace"))
                || manifests.contains(&format!("\n{name} = {{ workspace")),
            "{name} is in [workspace.dependencies], and no crate uses it"
        );
    }
}

/// Reads the modules from the first column of the tables in docs/ARCHITECTURE.md, by crate.
#[test]
fn the_modules_of_the_architecture_exist() {
    let text = fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    let mut seen = 0;
    for section in text.split("\n### `tidegate").skip(1) {
        let section = section.split("\n### ").next().unwrap();
        let name = format!("tidegate{}", section.split('`').next().unwrap());
        let folders = [
            format!("crates/{name}"),
            format!("bins/{name}"),
            "tests/testkit".to_owned(),
        ];
        let folders = folders.map(|folder| root().join(folder).join("src"));
        let source = folders.iter().find(|folder| folder.is_dir()).unwrap();
        for row in section.lines().filter(|line| line.starts_with("| `")) {
            let first = row.split('|').nth(1).unwrap();
            for module in first.split('`').skip(1).step_by(2) {
                let path = source.join(module);
                let exists = path.is_dir() || path.with_extension("rs").is_file();
                assert!(exists, "{name} has no module {module}");
                seen += 1;
            }
        }
    }
    assert!(seen > 50, "only {seen} modules were found");
}
