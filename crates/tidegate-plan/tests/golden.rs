//! Compares the statements of operations with `golden/statements.txt`.

use std::fmt::Write as _;

use crate::MUSIC;
use crate::fixture::Fixture;

const GOLDEN: &str = include_str!("golden/statements.txt");

/// Each operation follows `> `, its statements are in the lines after it. If the file differs, the
/// new one is written next to it.
#[tokio::test]
async fn statements_are_those_of_the_golden_file() {
    let fixture = Fixture::new("plan_golden", MUSIC).await;
    let mut written = String::new();
    for operation in GOLDEN.lines().filter_map(|line| line.strip_prefix("> ")) {
        let answer = fixture.run(operation).await.unwrap();
        let _ = writeln!(written, "> {operation}");
        for text in answer.texts {
            let _ = writeln!(written, "{text}");
        }
        written.push('\n');
    }
    if written != GOLDEN {
        let path = concat!(env!("CARGO_TARGET_TMPDIR"), "/statements.txt");
        std::fs::write(path, written).unwrap();
        panic!("golden/statements.txt differs from {path}");
    }
}
