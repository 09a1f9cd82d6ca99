//! The statements that operations become, as they stand in `golden/statements.txt`.

use std::fmt::Write as _;

use crate::MUSIC;
use crate::fixture::Stage;

const GOLDEN: &str = include_str!("golden/statements.txt");

/// Each operation stands behind `> `, its statements in the lines below it. Where the file is
/// wrong, the right one is written beside it.
#[tokio::test]
async fn statements_are_those_of_the_golden_file() {
    let stage = Stage::new("plan_golden", MUSIC).await;
    let mut written = String::new();
    for operation in GOLDEN.lines().filter_map(|line| line.strip_prefix("> ")) {
        let answer = stage.run(operation).await.unwrap();
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
