//! Pipelines of statements that the connection has not prepared yet.

use std::time::{Duration, Instant};

use super::proxy::Log;
use super::{Plan, by_key, watched};
use crate::stage::{Sql, Stage};

/// What is sent for two statements that are not known, one of them twice, behind one that is.
async fn sent_for_unknown(stage: &Stage, log: &Log, attempt: usize) -> String {
    let owner = stage.owner();
    by_key(1).run(stage, &owner).await.unwrap();
    stage.rest().await;
    log.take();
    let id = format!("select id as a{attempt} from item where name = :name");
    let id = Sql::new(&id).set(["\"item 5\""]);
    let both = format!("select id as a{attempt}, name from item where id = :id");
    let both = Sql::new(&both).set(["3"]);
    let plan = Plan::new([by_key(2), id.clone(), both, id]).snapshot();
    let rows = plan.run(stage, &owner).await.unwrap();
    let values: Vec<_> = rows.into_iter().map(|rows| rows.values.concat()).collect();
    let expected: [&[&str]; 4] = [&["\"item 2\""], &["5"], &["3", "\"item 3\""], &["5"]];
    assert_eq!(values, expected);
    log.take()
}

#[tokio::test]
async fn unknown_statements_are_described_in_one_round_trip() {
    let (stage, log) = watched("pipeline_unknown").await;
    // On a busy machine a reset may still be on its way, or what is known has become too old.
    let deadline = Instant::now() + Duration::from_secs(20);
    for attempt in 0.. {
        let sent = sent_for_unknown(&stage, &log, attempt).await;
        if sent.starts_with("PDPDS|PP") || sent.starts_with("PDPDS|BEBE") {
            return;
        }
        assert!(Instant::now() < deadline, "{sent}");
    }
}

#[tokio::test]
async fn a_refused_description_leaves_nothing_prepared() {
    let (stage, _) = watched("pipeline_unknown_refused").await;
    let owner = stage.owner();
    let first = Sql::new("select id as leftover from item where id = 1");
    let wrong = Sql::new("select missing from item");
    let last = Sql::new("select id as unreached from item where id = 1");
    for _ in 0..3 {
        let plan = Plan::new([first.clone(), wrong.clone(), last.clone()]).snapshot();
        let failed = plan.run(&stage, &owner).await.unwrap_err();
        assert_eq!(failed.step, Some(1));
        assert_eq!(failed.error.sqlstate(), Some("42703"));
        stage.rest().await;
    }
    // Once by the pipeline in turn, of which the first statement stays.
    let count = "select count(*)::int4 from pg_prepared_statements \
        where statement like '%leftover%' and statement not like '%count(%'";
    by_key(7).run(&stage, &owner).await.unwrap();
    stage.rest().await;
    assert_eq!(Sql::new(count).value(&stage, &owner).await, "1");
}
