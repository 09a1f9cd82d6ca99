//! Tests of `tidegate-bench model`: its arithmetic, and its example in the documents.
#![expect(clippy::unwrap_used, reason = "a failed test panics")]

use std::process::Command;

use serde_json::Value;

/// A size whose needs with the constants of `constants.json` are computed by hand.
const SIZE: &str = "--nodes 3 --sockets 3000 --tenants 4 --changes 1000 --events-per-change 6 \
    --requests 3000";

/// Runs `tidegate-bench model`. Returns its output.
fn model(arguments: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_tidegate-bench"))
        .arg("model")
        .args(arguments.split_whitespace())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// The same with round constants.
fn with_round_constants(arguments: &str) -> String {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/constants.json");
    model(&format!("--constants {file} {arguments}"))
}

#[track_caller]
fn assert_number(value: &Value, expected: f64) {
    let number = value.as_f64().unwrap();
    let off = (number - expected).abs();
    assert!(off < 1e-9, "{number} instead of {expected}");
}

#[test]
fn needs_follow_from_the_constants() {
    let report: Value =
        serde_json::from_str(&with_round_constants(&format!("{SIZE} --json"))).unwrap();
    let (bus, without) = (&report["with_bus"], &report["without_bus"]);

    // On each node 1,000 sockets, 1,000 further events and 40 pings, 1,000 requests. Publishing takes 20 us.
    assert_number(
        &without["node"]["cores"],
        0.01 + (1000.0 * 40.0 + 1040.0 * 10.0 + 1000.0 * 15.0) / 1e6,
    );
    assert_number(&bus["node"]["cores"], 0.0754 + 0.02);
    assert_number(&bus["node"]["memory_mib"], 50.0 + 4.0 * 64.0 + 20.0);
    assert_number(&bus["node"]["connections"], 1016.0);

    // A walsender decodes 250 changes, and reads 750 changes of 256 bytes.
    let walsender = 0.01 + 250.0 * 30.0 / 1e6 + 750.0 / 4096.0 * 4.0 / 1e3;
    assert_number(&bus["postgresql"]["decoding_cores"], 4.0 * walsender);
    assert_number(&without["postgresql"]["decoding_cores"], 12.0 * walsender);
    // The second and the third node cost 0.01 each.
    let rest = 0.05 + 2.0 * 0.01 + 0.075 + 0.024;
    assert_number(&bus["postgresql"]["cores"], rest + 4.0 * walsender);
    assert_number(
        &bus["postgresql"]["max_connections"],
        3.0 + 3.0 * (1.4 * 20.0 + 25.0),
    );
    assert_number(&bus["postgresql"]["max_wal_senders"], 4.0);
    assert_number(&without["postgresql"]["max_wal_senders"], 12.0);
    assert_number(&bus["postgresql"]["max_replication_slots"], 4.0);
    assert_number(&without["postgresql"]["max_replication_slots"], 16.0);

    // 1,000 messages with changes, and 5 of each reader.
    assert_number(&bus["nats"]["messages"], 1020.0);
    assert_number(
        &bus["nats"]["cores"],
        (0.03 + 1020.0 * (300.0 + 2.0 * 50.0) / 1e6) / 3.0,
    );
    assert_number(&bus["nats"]["bus_mib"], 600_000.0 * 300.0 / 1_048_576.0);
    assert!(without["nats"].is_null());
}

#[test]
fn the_limit_with_the_largest_share_is_the_first() {
    let first = |arguments: &str| {
        let text = with_round_constants(&format!("{SIZE} {arguments}"));
        let lines: Vec<&str> = text.lines().rev().take(2).collect();
        (lines[1].to_owned(), lines[0].to_owned())
    };
    let (bus, without) = first("");
    assert_eq!(
        bus,
        "first limit with a bus: max_connections: 100, and 162 are needed"
    );
    assert_eq!(
        without,
        "first limit without: max_connections: 100, and 162 are needed"
    );
    let (bus, without) = first("--max-connections 300 --nats-cores 0.14");
    assert_eq!(
        bus,
        "first limit with a bus: cores of a NATS server: 0.14, and 0.15 are needed"
    );
    assert_eq!(
        without,
        "first limit without: max_replication_slots: 10, and 16 are needed"
    );
    let (bus, _) = first("--max-connections 324");
    assert_eq!(
        bus,
        "first limit with a bus: max_connections: 162 of 324; at 2.0 times this size"
    );
}

#[test]
fn the_fewest_nodes_are_chosen_of_which_seven_tenths_are_used() {
    let nodes = |arguments: &str| -> Value {
        let report = with_round_constants(&format!("--json {arguments}"));
        serde_json::from_str::<Value>(&report).unwrap()["nodes"].take()
    };
    assert_eq!(nodes("--sockets 6900"), 1);
    assert_eq!(nodes("--sockets 30000"), 5);
    assert_eq!(nodes("--requests 300000"), 2);
}

#[test]
fn without_changes_nothing_is_decoded() {
    let report = with_round_constants("--json --nodes 1 --changes 0 --sockets 0");
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_number(&report["without_bus"]["node"]["cores"], 0.0);
    assert_number(&report["without_bus"]["postgresql"]["cores"], 0.0);
}

#[test]
fn the_document_shows_the_output() {
    let document = include_str!("../../docs/PERFORMANCE.md");
    let (_, example) = document
        .split_once("tidegate-bench -- model --sockets")
        .unwrap();
    let (arguments, rest) = example.split_once('\n').unwrap();
    let (_, shown) = rest.split_once("```text\n").unwrap();
    let (shown, _) = shown.split_once("```").unwrap();
    assert_eq!(
        shown,
        model(&format!("--sockets {arguments}")),
        "the last measurement gives another output"
    );
}

#[test]
fn a_file_that_holds_no_constants_is_named() {
    let output = Command::new(env!("CARGO_BIN_EXE_tidegate-bench"))
        .args(["model", "--constants", "no-such-file.json"])
        .output()
        .unwrap();
    assert!(!output.status.success());
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("no-such-file.json: "), "{errors}");
}
