//! Tests the licences, sources and bans of all dependencies against `deny.toml`.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it stands"
)]

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The strings in the list that follows `name = [` in `deny.toml`.
fn listed(name: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join("deny.toml")).unwrap();
    let start = format!("\n{name} = [");
    let (_, list) = text.split_once(&start).unwrap();
    let (list, _) = list.split_once(']').unwrap();
    list.split('"')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// The crates with licences of their own in the list `exceptions` of `deny.toml`, which has one line
/// for each, and these licences.
fn exceptions() -> Vec<(String, Vec<String>)> {
    let text = fs::read_to_string(root().join("deny.toml")).unwrap();
    let (_, list) = text.split_once("\nexceptions = [\n").unwrap();
    let (list, _) = list.split_once("\n]").unwrap();
    let exceptions = list.lines().map(|line| {
        let mut quoted = line.split('"').skip(1).step_by(2).map(str::to_owned);
        (quoted.next().unwrap(), quoted.collect())
    });
    exceptions.collect()
}

/// The packages on which the workspace depends, for all platforms and features.
fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--locked"])
        .current_dir(root())
        .output()
        .unwrap();
    let problem = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{problem}");
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

/// Whether an SPDX expression (SPDX 2.3, annex D) requires only allowed licences. `/` is an older
/// notation for `OR`.
fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    let expression = expression.replace('/', " OR ");
    let mut words = expression.replace('(', " ( ").replace(')', " ) ");
    words.push_str(" )");
    let words: Vec<_> = words.split_whitespace().collect();
    let (value, rest) = any_of(&words, allowed);
    value && rest == [")"]
}

fn any_of<'w>(words: &'w [&'w str], allowed: &[String]) -> (bool, &'w [&'w str]) {
    let (mut value, mut rest) = all_of(words, allowed);
    while let ["OR", after @ ..] = rest {
        let (other, next) = all_of(after, allowed);
        (value, rest) = (value || other, next);
    }
    (value, rest)
}

fn all_of<'w>(words: &'w [&'w str], allowed: &[String]) -> (bool, &'w [&'w str]) {
    let (mut value, mut rest) = one(words, allowed);
    while let ["AND", after @ ..] = rest {
        let (other, next) = one(after, allowed);
        (value, rest) = (value && other, next);
    }
    (value, rest)
}

fn one<'w>(words: &'w [&'w str], allowed: &[String]) -> (bool, &'w [&'w str]) {
    match words {
        ["(", rest @ ..] => {
            let (value, rest) = any_of(rest, allowed);
            assert_eq!(rest.first(), Some(&")"));
            (value, &rest[1..])
        }
        [name, "WITH", exception, rest @ ..] => {
            let name = format!("{name} WITH {exception}");
            (allowed.contains(&name), rest)
        }
        [name, rest @ ..] => (allowed.iter().any(|known| known == name), rest),
        [] => (false, words),
    }
}

#[test]
fn every_dependency_has_an_allowed_licence() {
    let allowed = listed("allow");
    assert!(allowed.iter().any(|licence| licence == "MIT"));
    let exceptions = exceptions();
    for package in packages() {
        let licence = package["license"].as_str().unwrap_or("none");
        let name = package["name"].as_str().unwrap();
        let own = exceptions.iter().find(|(excepted, _)| excepted == name);
        let own = own.is_some_and(|(_, own)| is_allowed(licence, own));
        assert!(
            own || is_allowed(licence, &allowed),
            "{name} has the licence {licence}"
        );
    }
}

/// An exception that nothing needs any more would let a later dependency in unnoticed.
#[test]
fn every_exception_of_a_licence_is_needed_and_in_the_readme() {
    let (packages, allowed) = (packages(), listed("allow"));
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    for (name, own) in exceptions() {
        let package = packages.iter().find(|package| package["name"] == *name);
        let licence = package.and_then(|package| package["license"].as_str());
        let licence = licence.unwrap_or_else(|| panic!("{name} is no dependency"));
        assert!(!is_allowed(licence, &allowed), "{name} needs no exception");
        assert!(
            is_allowed(licence, &own),
            "{name} has the licence {licence}"
        );
        assert!(readme.contains(&format!("`{name}`")), "{name} in README.md");
    }
}

#[test]
fn every_dependency_is_of_this_workspace_or_an_allowed_registry() {
    let registries = listed("allow-registry");
    for package in packages() {
        let Some(source) = package["source"].as_str() else {
            continue;
        };
        let known = source.strip_prefix("registry+");
        let known = known.is_some_and(|url| registries.iter().any(|allowed| allowed == url));
        assert!(known, "{} comes from {source}", package["name"]);
    }
}

#[test]
fn nothing_that_is_banned_is_used() {
    let banned = listed("deny");
    assert!(banned.iter().any(|name| name == "openssl-sys"));
    for package in packages() {
        let name = package["name"].as_str().unwrap();
        assert!(
            !banned.iter().any(|other| other == name),
            "{name} is banned"
        );
    }
}

#[test]
fn expressions_of_licences_are_read() {
    let allowed = [
        "MIT".to_owned(),
        "Apache-2.0 WITH LLVM-exception".to_owned(),
    ];
    for (expression, expected) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("GPL-3.0 OR MIT", true),
        ("GPL-3.0/MIT", true),
        ("GPL-3.0 AND MIT", false),
        ("(GPL-3.0 OR MIT) AND MIT", true),
        ("(GPL-3.0 OR MIT) AND GPL-3.0", false),
        ("Apache-2.0 WITH LLVM-exception OR GPL-3.0", true),
        ("Apache-2.0", false),
        ("", false),
    ] {
        assert_eq!(is_allowed(expression, &allowed), expected, "{expression}");
    }
}
