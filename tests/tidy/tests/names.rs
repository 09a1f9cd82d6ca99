//! Tests that names and prose use the words of `docs/GLOSSARY.md`, and that a type name has one
//! meaning.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Names that every crate may define, because each crate has its own errors, settings and fixtures.
const IN_EVERY_CRATE: &str = "Error Fixture Kind Limits Result Settings State Value";

/// How many crates may define a type of the same name.
const CRATES_OF_A_NAME: usize = 3;

const DEFINES: [&str; 8] = [
    "struct", "enum", "trait", "type", "fn", "mod", "const", "static",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The lines of a block of the glossary.
fn words(block: &str) -> BTreeSet<String> {
    let glossary = fs::read_to_string(root().join("docs/GLOSSARY.md")).unwrap();
    let text = glossary
        .split(&format!("```text {block}\n"))
        .nth(1)
        .unwrap();
    let lines = text.lines().take_while(|line| *line != "```");
    lines.map(str::to_owned).collect()
}

/// The files with this extension below a folder, except generated and installed ones.
fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && !["target", "node_modules"].contains(&name) && !name.starts_with('.') {
            files(&path, extension, found);
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
}

/// The packages by name, with their Rust code.
fn packages() -> BTreeMap<String, String> {
    let mut packages: BTreeMap<String, String> = BTreeMap::new();
    for folder in ["crates", "bins", "benches", "tests"] {
        let mut paths = Vec::new();
        files(&root().join(folder), "rs", &mut paths);
        for path in paths {
            let below = path.strip_prefix(root().join(folder)).unwrap().to_owned();
            let name = match folder {
                "crates" | "bins" => below.iter().next().unwrap().to_str().unwrap(),
                _ => folder,
            };
            // The file with this test names the banned words itself.
            if !below.ends_with("tidy/tests/names.rs") {
                let code = packages.entry(name.to_owned()).or_default();
                code.push_str(&fs::read_to_string(path).unwrap());
                code.push('\n');
            }
        }
    }
    packages
}

/// The definitions in the code: keyword and name.
fn definitions(code: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = code.lines().filter(|line| !line.trim().starts_with("//"));
    lines.flat_map(|line| {
        let name = |c: char| !c.is_alphanumeric() && c != '_';
        let tokens: Vec<_> = line.split_whitespace().collect();
        let pairs = tokens
            .windows(2)
            .map(|pair| (pair[0], pair[1].split(name).next()));
        let pairs = pairs.filter_map(|(keyword, name)| Some((keyword, name?)));
        // An empty name comes from SQL, such as `create type mood as enum ('sad')`.
        let pairs = pairs.filter(|(_, name)| !name.is_empty());
        let defined = pairs.filter(|(keyword, _)| DEFINES.contains(keyword));
        // An associated type has the name that its trait gives it.
        let is_outer = |keyword: &str| keyword != "type" || !line.starts_with(' ');
        let defined = defined.filter(|(keyword, _)| is_outer(keyword));
        defined.collect::<Vec<_>>()
    })
}

/// The parts of a name in `snake_case` or `CamelCase`, in lower case.
fn segments(name: &str) -> Vec<String> {
    let mut segments = vec![String::new()];
    let mut was_upper = true;
    for c in name.chars() {
        let is_upper = c.is_uppercase();
        if c == '_' || (is_upper && !was_upper) {
            segments.push(String::new());
        }
        if c != '_' {
            let last = segments.last_mut().unwrap();
            last.extend(c.to_lowercase());
        }
        was_upper = is_upper;
    }
    segments
}

/// The text outside of code spans and code blocks.
fn prose(markdown: &str) -> String {
    let outside_blocks = markdown.split("```").step_by(2).collect::<String>();
    outside_blocks.split('`').step_by(2).collect()
}

/// The words that occur in the text as whole words.
fn found<'w>(text: &str, words: &'w BTreeSet<String>) -> Vec<&'w str> {
    let plain: String = text
        .chars()
        .map(|c| if c.is_alphanumeric() { c } else { ' ' })
        .collect();
    let tokens: Vec<_> = plain.split_whitespace().map(str::to_lowercase).collect();
    let text = format!(" {} ", tokens.join(" "));
    let words = words.iter().map(String::as_str);
    words
        .filter(|word| text.contains(&format!(" {word} ")))
        .collect()
}

/// The banned words of a package, in names and in comments.
fn banned(code: &str, names: &BTreeSet<String>, in_prose: &BTreeSet<String>) -> Vec<String> {
    let mut banned = Vec::new();
    for (_, name) in definitions(code) {
        if segments(name).iter().any(|segment| names.contains(segment)) {
            banned.push(name.to_owned());
        }
    }
    for line in code.lines() {
        if let Some((_, comment)) = line.split_once("//") {
            let words = found(&prose(comment), in_prose);
            banned.extend(words.iter().map(|word| format!("{word}: {comment}")));
        }
    }
    banned
}

#[test]
fn names_and_comments_use_the_words_of_the_glossary() {
    let (names, in_prose) = (words("banned-names"), words("banned-prose"));
    for (package, code) in packages() {
        let banned = banned(&code, &names, &in_prose);
        assert_eq!(banned, Vec::<String>::new(), "in {package}");
    }
}

/// The marks that begin a comment in the files with these extensions.
const COMMENT_MARKS: [(&str, &[&str]); 9] = [
    ("sql", &["--"]),
    ("mjs", &["//", "/*", " * "]),
    ("js", &["//", "/*", " * "]),
    ("ts", &["//", "/*", " * "]),
    ("tsx", &["//", "/*", " * "]),
    ("html", &["//", "<!--"]),
    ("css", &["/*", " * "]),
    ("sh", &["#"]),
    ("toml", &["#"]),
];

/// The text of a line after the first mark of a comment; `None` for a line without a comment.
fn comment<'l>(line: &'l str, marks: &[&str]) -> Option<&'l str> {
    let begin = |mark: &&str| line.find(mark).map(|at| at + mark.len());
    let at = marks.iter().filter_map(begin).min()?;
    line.get(at..)
}

/// The sentences among the string literals of a line: those of at least three words.
fn sentences(line: &str) -> impl Iterator<Item = &str> {
    let literals = line.split('"').skip(1).step_by(2);
    literals.filter(|literal| literal.split_whitespace().count() > 2)
}

#[test]
fn other_files_use_the_words_of_the_glossary() {
    let in_prose = words("banned-prose");
    let mut found_words = Vec::new();
    for (extension, marks) in COMMENT_MARKS {
        let mut paths = Vec::new();
        files(&root(), extension, &mut paths);
        assert!(!paths.is_empty(), "no file ends with {extension}");
        // The built console contains comments of libraries.
        paths.retain(|path| !path.components().any(|part| part.as_os_str() == "dist"));
        for path in paths {
            let text = fs::read_to_string(&path).unwrap();
            for comment in text.lines().filter_map(|line| comment(line, marks)) {
                for word in found(&prose(comment), &in_prose) {
                    found_words.push(format!("{}: {word}: {comment}", path.display()));
                }
            }
        }
    }
    assert_eq!(found_words, Vec::<String>::new());
}

#[test]
fn texts_use_the_words_of_the_glossary() {
    let in_prose = words("banned-prose");
    let mut found_words = Vec::new();
    for folder in ["crates", "bins"] {
        let mut paths = Vec::new();
        files(&root().join(folder), "rs", &mut paths);
        paths.retain(|path| path.components().any(|part| part.as_os_str() == "src"));
        for path in paths {
            let code = fs::read_to_string(&path).unwrap();
            let production = code.split("#[cfg(test)]").next().unwrap();
            let lines = production.lines();
            for line in lines.filter(|line| !line.trim().starts_with("//")) {
                for text in sentences(line) {
                    for word in found(&prose(text), &in_prose) {
                        found_words.push(format!("{}: {word}: {text}", path.display()));
                    }
                }
            }
        }
    }
    assert_eq!(found_words, Vec::<String>::new());
}

#[test]
fn documents_use_the_words_of_the_glossary() {
    let in_prose = words("banned-prose");
    let mut paths = Vec::new();
    files(&root(), "md", &mut paths);
    assert!(paths.len() > 20);
    for path in paths {
        if !path.ends_with("GLOSSARY.md") {
            let text = prose(&fs::read_to_string(&path).unwrap());
            let none: [&str; 0] = [];
            assert_eq!(found(&text, &in_prose), none, "in {}", path.display());
        }
    }
}

#[test]
fn a_type_name_means_one_thing() {
    let mut crates: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (package, code) in packages() {
        for (keyword, name) in definitions(&code) {
            if ["struct", "enum", "trait", "type"].contains(&keyword) {
                let of_name = crates.entry(name.to_owned()).or_default();
                of_name.insert(package.clone());
            }
        }
    }
    for (name, packages) in crates {
        let is_allowed = IN_EVERY_CRATE.split(' ').any(|allowed| allowed == name);
        assert!(
            is_allowed || packages.len() <= CRATES_OF_A_NAME,
            "{name} is defined in {packages:?}"
        );
    }
}

#[test]
fn comments_and_texts_of_other_files_are_found() {
    let marks: &[&str] = &["//", "/*"];
    assert_eq!(comment("a(); // one", marks), Some(" one"));
    assert_eq!(
        comment("a(); /* two // three", marks),
        Some(" two // three")
    );
    assert_eq!(comment("a();", marks), None);
    let line = r#"error("nobody", "asked in vain for it", x)"#;
    assert_eq!(
        sentences(line).collect::<Vec<_>>(),
        ["asked in vain for it"]
    );
}

#[test]
fn banned_words_are_found() {
    let names = ["lane".to_owned()].into();
    let in_prose = ["in vain".to_owned()].into();
    for (code, is_banned) in [
        ("struct LaneQueue;", true),
        ("fn a_lane() {}", true),
        ("fn planes() {}", false),
        ("// Asked in\tvain.", true),
        ("// Not `in vain`.", false),
        ("let lane = 1;", false),
    ] {
        let banned = banned(code, &names, &in_prose);
        assert_eq!(!banned.is_empty(), is_banned, "{code}");
    }
}
