//! Pipelines of statements that are not prepared on the connection.

use std::time::{Duration, Instant};

use super::proxy::Log;
use super::{Plan, by_key, watched};
use crate::fixture::{Fixture, Sql};

/// Runs two unknown statements, one of them twice, after a known one. Returns the messages sent.
async fn sent_for_unknown(fixture: &Fixture, log: &Log, attempt: usize) -> String {
    let owner = fixture.owner();
    by_key(1).run(fixture, &owner).await.unwrap();
    fixture.rest().await;
    log.take();
    let id = format!("select id as a{attempt} from item where name = :name");
    let id = Sql::new(&id).set(["\"item 5\""]);
    let both = format!("select id as a{attempt}, name from item where id = :id");
    let both = Sql::new(&both).set(["3"]);
    let plan = Plan::new([by_key(2), id.clone(), both, id]).snapshot();
    let rows = plan.run(fixture, &owner).await.unwrap();
    let values: Vec<_> = rows.into_iter().map(|rows| rows.values.concat()).collect();
    let expected: [&[&str]; 4] = [&["\"item 2\""], &["5"], &["3", "\"item 3\""], &["5"]];
    assert_eq!(values, expected);
    log.take()
}

#[tokio::test]
async fn unknown_statements_are_described_in_one_round_trip() {
    let (fixture, log) = watched("pipeline_unknown").await;
    // On a busy machine a reset may still be running, or cached data may have expired.
    let deadline = Instant::now() + Duration::from_secs(20);
    for attempt in 0.. {
        let sent = sent_for_unknown(&fixture, &log, attempt).await;
        if sent.starts_with("PDPDS|PP") || sent.starts_with("PDPDS|BEBE") {
            return;
        }
        assert!(Instant::now() < deadline, "{sent}");
    }
}

#[tokio::test]
async fn a_refused_description_leaves_nothing_prepared() {
    let (fixture, _) = watched("pipeline_unknown_refused").await;
    let owner = fixture.owner();
    let first = Sql::new("select id as leftover from item where id = 1");
    let wrong = Sql::new("select missing from item");
    let last = Sql::new("select id as unreached from item where id = 1");
    for _ in 0..3 {
        let plan = Plan::new([first.clone(), wrong.clone(), last.clone()]).snapshot();
        let failed = plan.run(&fixture, &owner).await.unwrap_err();
        assert_eq!(failed.step, Some(1));
        assert_eq!(failed.error.sqlstate(), Some("42703"));
        fixture.rest().await;
    }
    // The pipeline was not sent, and its statements ran one after the other. The first one stays
    // prepared.
    let count = "select count(*)::int4 from pg_prepared_statements \
        where statement like '%leftover%' and statement not like '%count(%'";
    by_key(7).run(&fixture, &owner).await.unwrap();
    fixture.rest().await;
    assert_eq!(Sql::new(count).value(&fixture, &owner).await, "1");
}
