//! Tests that the modules of a crate have no dependency cycles: in each folder, the files and
//! subfolders can be ordered so that each uses only those before it.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The path of a module below `src`, such as `["read", "live"]`. The path of the root is empty.
type Module = Vec<String>;

/// The sources of a crate by module. The file `mod.rs` is the module of its folder.
type Sources = BTreeMap<Module, String>;

fn sources(folder: &Path, module: &Module, found: &mut Sources) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let mut inner = module.clone();
        if !["mod", "lib", "main"].contains(&&*stem) {
            inner.push(stem);
        }
        if path.is_dir() {
            sources(&path, &inner, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(path).unwrap();
            let code = text.lines().filter(|line| !line.trim().starts_with("//"));
            found.insert(inner, code.collect());
        }
    }
}

/// Adds the paths with which `text` begins to `found`, each with the prefix `before`. A list in
/// braces contains several paths. Returns the text after the paths.
fn paths<'t>(mut text: &'t str, before: &Module, found: &mut Vec<Module>) -> &'t str {
    let mut path = before.clone();
    loop {
        text = text.trim_start();
        if let Some(mut list) = text.strip_prefix('{') {
            while !list.is_empty() && !list.starts_with('}') {
                list = paths(list, &path, found).trim_start();
                list = list.strip_prefix(',').unwrap_or(list).trim_start();
            }
            return list.strip_prefix('}').unwrap_or(list);
        }
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
        let (name, rest) = text.split_at(end.unwrap_or(text.len()));
        path.push(name.to_owned());
        let Some(rest) = rest.strip_prefix("::") else {
            found.push(path);
            // Skips text that is not part of a list: `as`, `*`, the code after a path.
            return rest.trim_start_matches(|c| c != ',' && c != '}');
        };
        text = rest;
    }
}

/// Adds the paths that a module names by `super::`, which may be repeated. In the module `tests` of
/// a file, the first `super` is the file's own module.
fn super_paths(module: &Module, text: &str, found: &mut Vec<Module>) {
    let (code, tests) = text.split_once("mod tests {").unwrap_or((text, ""));
    for (text, within) in [(code, 0), (tests, 1)] {
        let mut supers = 0;
        for path in text.split("super::").skip(1) {
            supers += 1;
            if !path.is_empty() {
                let length = (module.len() + within).saturating_sub(supers);
                let parent = module.iter().take(length).cloned().collect();
                paths(path, &parent, found);
                supers = 0;
            }
        }
    }
}

/// The modules that a module names by `crate::` or `super::`. An item that the root re-exports
/// counts as the module from which it comes.
fn uses(module: &Module, text: &str, all: &Sources) -> BTreeSet<Module> {
    let mut named = Vec::new();
    for path in text.split("crate::").skip(1) {
        paths(path, &Module::new(), &mut named);
    }
    super_paths(module, text, &mut named);
    let mut exported = Vec::new();
    let root = all.get(&Module::new()).map_or("", String::as_str);
    for path in root.split("pub use ").skip(1) {
        paths(path, &Module::new(), &mut exported);
    }
    let resolve = |path: &Module| {
        let mut exported = exported.iter();
        let export = exported.find(|export| export.last() == path.first());
        let mut path = export.unwrap_or(path).clone();
        while !all.contains_key(&path) {
            path.pop()?;
        }
        Some(path)
    };
    named.iter().filter_map(resolve).collect()
}

/// A dependency cycle among the modules of a folder; `None` if there is none.
fn circle(all: &Sources) -> Option<Vec<Module>> {
    let mut edges: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for (module, text) in all {
        for used in uses(module, text, all) {
            let same = module.iter().zip(&used).take_while(|(a, b)| a == b).count();
            // A folder's own `mod.rs` does not count as a module of the folder.
            if same < module.len() && same < used.len() {
                let from = edges.entry(module[..=same].to_vec()).or_default();
                from.insert(used[..=same].to_vec());
            }
        }
    }
    // A module that uses only removed modules is in no cycle and is removed too. This is repeated
    // until only modules remain that are in a cycle or use one.
    for _ in 0..edges.len() {
        let kept: BTreeSet<_> = edges.keys().cloned().collect();
        edges.retain(|_, used| !used.is_disjoint(&kept));
    }
    let mut walk = vec![edges.keys().next()?.clone()];
    loop {
        let mut used = edges[walk.last()?].iter();
        let next = used.find(|used| edges.contains_key(*used))?;
        if let Some(at) = walk.iter().position(|module| module == next) {
            return Some(walk.split_off(at));
        }
        walk.push(next.clone());
    }
}

#[test]
fn modules_have_no_circles() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = ["crates", "bins"].map(|folder| fs::read_dir(root.join(folder)).unwrap());
    for package in folders.into_iter().flatten().map(Result::unwrap) {
        let name = package.file_name().into_string().unwrap();
        let mut all = Sources::new();
        sources(&package.path().join("src"), &Module::new(), &mut all);
        assert_eq!(circle(&all), None, "a circle in {name}");
    }
}

#[test]
fn circles_are_found() {
    for (one, other, is_circle) in [
        ("use crate::b::T;", "use crate::a::{self, X};", true),
        ("fn f() { super::b::g() }", "use crate::{z, a::X};", true),
        ("use crate::{T, Y};", "use super::a;", true),
        ("use crate::T;", "use super::Y;", false),
    ] {
        let root = (vec![], "pub use b::{S, T as U};".to_owned());
        let [a, b] =
            [("a", one), ("b", other)].map(|(name, text)| (vec![name.to_owned()], text.to_owned()));
        let found = circle(&[root, a, b].into());
        assert_eq!(found.is_some(), is_circle, "{one} {other}");
    }
}

#[test]
fn each_super_is_one_level() {
    for (module, text, other, is_circle) in [
        ("a::c", "use super::super::b::T;", "b", true),
        ("a::c", "use super::super::b::T;", "a::b", false),
        ("a::c", "use super::b::T;", "a::b", true),
        ("a", "mod tests { use super::b::T; }", "b", false),
        ("a", "mod tests { use super::super::b; }", "b", true),
    ] {
        let path = |path: &str| -> Module { path.split("::").map(str::to_owned).collect() };
        let code = [
            (path(module), text.to_owned()),
            (path(other), format!("use crate::{module};")),
        ];
        let found = circle(&code.into());
        assert_eq!(found.is_some(), is_circle, "{module} {text} {other}");
    }
}
