//! The examples of the README and of docs/API.md, run as printed against the demo.
//!
//! A block marked `sh` is run by bash; a block marked `json` or `text` right behind it is what it
//! must print, where `…` stands for anything. Variables live on from block to block of a document.

use std::process::Command;

use crate::service::{Service, demo_folder};

/// One example: what to run and, where the document shows it, what comes out.
#[derive(Debug)]
struct Example {
    line: usize,
    script: String,
    output: Option<String>,
}

fn examples(text: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut block: Option<(usize, String, String)> = None;
    let mut follows = false;
    for (number, line) in text.lines().enumerate() {
        match (&mut block, line.strip_prefix("```")) {
            (None, Some(kind)) => block = Some((number + 1, kind.to_owned(), String::new())),
            (Some(_), Some("")) => {
                let (line, kind, body) = block.take().unwrap();
                match kind.as_str() {
                    "sh" => examples.push(Example {
                        line,
                        script: body,
                        output: None,
                    }),
                    "json" | "text" if follows => {
                        examples.last_mut().unwrap().output = Some(body);
                    }
                    _ => {}
                }
                follows = kind == "sh";
            }
            (Some((_, _, body)), _) => {
                body.push_str(line);
                body.push('\n');
            }
            (None, None) => {
                // Only blank lines may stand between a command and its output.
                follows = follows && line.trim().is_empty();
            }
        }
    }
    examples
}

/// Whether the text has the parts of the pattern in order, `…` standing for anything.
fn matches(pattern: &str, text: &str) -> bool {
    let mut rest = text.trim_end();
    let parts: Vec<_> = pattern.trim_end().split('…').collect();
    let last = parts.len() - 1;
    for (place, part) in parts.iter().enumerate() {
        let found = match place {
            0 => rest.starts_with(part).then_some(0),
            _ if place == last => rest.ends_with(part).then(|| rest.len() - part.len()),
            _ => rest.find(part),
        };
        let Some(found) = found else { return false };
        rest = &rest[found + part.len()..];
    }
    rest.is_empty()
}

fn run(document: &str, keep: impl Fn(&str) -> bool) -> usize {
    let path = format!("{}/../../{document}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap();
    let examples: Vec<_> = examples(&text)
        .into_iter()
        .filter(|example| keep(&example.script))
        .collect();
    let mark = "=== end of example ";
    // A demo as people start it.
    let folder = demo_folder();
    let demo = Service::start(folder.path().to_str().unwrap(), &[]);
    let mut script = String::from("set -u\n");
    for example in &examples {
        let local = example.script.replace("http://127.0.0.1:8080", &demo.url);
        script.push_str(&local);
        script.extend(["printf '\\n%s%s\\n' '", mark, "' $?\n"]);
    }
    let output = Command::new("bash").args(["-c", &script]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let printed = String::from_utf8(output.stdout).unwrap();
    let printed = printed.replace(&demo.url, "http://127.0.0.1:8080");
    let mut rest = &*printed;
    for example in &examples {
        // What ends the shell ends every example behind it, with or without an output.
        let place = format!("{document}:{}\n{}", example.line, example.script);
        let (got, behind) = rest.split_once(mark).expect(&place);
        let (code, behind) = behind.split_once('\n').expect(&place);
        assert_eq!(code, "0", "{place}\nfailed\n{got}\n{errors}");
        rest = behind;
        let got = got.trim_end_matches('\n');
        match &example.output {
            Some(expected) => assert!(
                matches(expected, got),
                "{place}\nprinted\n{got}\ninstead of\n{expected}\n{errors}"
            ),
            // curl calls a refusal a success.
            None => assert!(!got.contains("\"error"), "{place}\nprinted\n{got}"),
        }
    }
    examples.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_examples_of_the_api_document_run_as_printed() {
    let count = tokio::task::spawn_blocking(|| run("docs/API.md", |_| true))
        .await
        .unwrap();
    assert!(count > 10, "only {count} examples were found");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_examples_of_the_readme_run_as_printed() {
    // The commands that build and start everything are what the test run itself uses.
    let keep = |script: &str| !script.contains("cargo ");
    let count = tokio::task::spawn_blocking(move || run("README.md", keep))
        .await
        .unwrap();
    assert!(count > 2, "only {count} examples were found");
}

#[test]
fn a_pattern_matches_around_what_it_leaves_out() {
    assert!(matches(
        "{\"a\":\"…\",\"b\":1}",
        "{\"a\":\"xyz\",\"b\":1}\n"
    ));
    assert!(!matches("{\"a\":\"…\",\"b\":1}", "{\"a\":\"xyz\",\"b\":2}"));
    assert!(matches("a", "a"));
    assert!(!matches("a", "ab"));
}
