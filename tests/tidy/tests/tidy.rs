//! Tests the architecture: layers, and dependencies that only certain crates may have.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it stands"
)]

use std::collections::BTreeMap;
use std::fs;

use tidegate_tidy::{packages, root, rust_files, shipped};

/// The crates besides the server itself that may speak HTTP (I2 in docs/ARCHITECTURE.md).
const SPEAKS_HTTP: [&str; 3] = ["tidegate-http", "tidegate-pages", "tidegate-socket"];

/// External crates, each with the crates of the workspace that may depend on it (I3 in
/// docs/ARCHITECTURE.md).
const HOMES: &[(&str, &[&str])] = &[
    ("async-nats", &["tidegate-bus"]),
    ("hyper", &["tidegate-server", "tidegate-socket"]),
    ("hyper-util", &["tidegate-server", "tidegate-socket"]),
    ("tower", &["tidegate-server"]),
    ("tokio-tungstenite", &["tidegate-socket"]),
    ("webauthn-rs-core", &["tidegate-identity"]),
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
            "tidegate-bus",
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
