//! Pipelines of statements that the connection has not prepared yet.

use super::{by_key, watched};
use crate::pipeline::Plan;
use crate::stage::Sql;

#[tokio::test]
async fn unknown_statements_are_described_in_one_round_trip() {
    let (stage, log) = watched("pipeline_unknown").await;
    let owner = stage.owner();
    let name = || Sql::new("select name from item where id = :id").set(["2"]);
    by_key(1).run(&stage, &owner).await.unwrap();
    stage.rest().await;
    log.take();
    let id = Sql::new("select id from item where name = :name").set(["\"item 5\""]);
    let both = Sql::new("select id, name from item where id = :id").set(["3"]);
    // The first is known, and the second stands there twice.
    let plan = Plan::new([name(), id.clone(), both, id]).snapshot();
    let rows = plan.run(&stage, &owner).await.unwrap();
    let values: Vec<_> = rows.into_iter().map(|rows| rows.values.concat()).collect();
    let expected: [&[&str]; 4] = [&["\"item 2\""], &["5"], &["3", "\"item 3\""], &["5"]];
    assert_eq!(values, expected);
    let sent = log.take();
    assert!(sent.starts_with("PDPDS|PP"), "{sent}");
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
