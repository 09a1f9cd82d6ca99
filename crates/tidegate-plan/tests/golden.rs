//! Compares the statements of operations with `golden/statements.txt`.

use std::fmt::Write as _;

use tidegate_testkit::assert_golden;

use crate::MUSIC;
use crate::fixture::Fixture;

const GOLDEN: &str = "tests/golden/statements.txt";

/// In the file, each operation follows `> `, and its statements are in the lines below.
#[tokio::test]
async fn statements_are_those_of_the_golden_file() {
    let fixture = Fixture::new("plan_golden", MUSIC).await;
    let mut written = String::new();
    let golden = std::fs::read_to_string(GOLDEN).unwrap();
    for operation in golden.lines().filter_map(|line| line.strip_prefix("> ")) {
        let response = fixture.run(operation).await.unwrap();
        let _ = writeln!(written, "> {operation}");
        for text in response.texts {
            let _ = writeln!(written, "{text}");
        }
        written.push('\n');
    }
    assert_golden(GOLDEN, &written);
}
