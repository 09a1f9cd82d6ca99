//! Pipelines of several statements on multiplexed connections.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;

use super::{fill, roomy};
use crate::pipeline::Plan;
use crate::stage::{Sql, Stage};

/// Two statements with the same text, which a connection prepares once.
fn two(a: usize, b: usize) -> Plan {
    let read = |id: usize| super::read(id).by(tidegate_sql::Author::Service);
    Plan::new([read(a), read(b)]).ours().snapshot()
}

async fn stage(name: &str) -> Arc<Stage> {
    let stage = Arc::new(Stage::on(tidegate_embedded::testing::cluster(), name, roomy()).await);
    fill(&stage).await;
    stage
}

/// Runs rounds of pipelines until so many were multiplexed.
async fn until_multiplexed<F: Future<Output = ()>>(
    stage: &Stage,
    count: u64,
    one: impl Fn(usize) -> F,
) {
    let wanted = stage.roles.shared_reads() + count;
    let deadline = Instant::now() + Duration::from_mins(1);
    while stage.roles.shared_reads() < wanted {
        assert!(Instant::now() < deadline, "few pipelines are multiplexed");
        join_all((1..=40).map(&one)).await;
    }
}

#[tokio::test]
async fn each_pipeline_gets_the_rows_of_its_own_statements() {
    let stage = stage("multiplex_pipelines").await;
    let owner = stage.owner();
    until_multiplexed(&stage, 400, async |id: usize| {
        let rows = two(id, id + 1).run(&stage, &owner).await.unwrap();
        assert_eq!(rows[0].values, [[format!("\"item {id}\"")]]);
        assert_eq!(rows[1].values, [[format!("\"item {}\"", id + 1)]]);
    })
    .await;
}

#[tokio::test]
async fn the_statements_of_a_pipeline_share_a_snapshot() {
    let stage = stage("multiplex_snapshot").await;
    let owner = stage.owner();
    let writer = {
        let admin = crate::stage::connect(&stage.url()).await;
        tokio::spawn(async move {
            for number in 0.. {
                let both = format!("UPDATE items SET name = 'round {number}' WHERE id IN (1, 2)");
                admin.batch_execute(&both).await.unwrap();
            }
        })
    };
    until_multiplexed(&stage, 1_000, async |_: usize| {
        let rows = two(1, 2).run(&stage, &owner).await.unwrap();
        assert_eq!(rows[0].values, rows[1].values, "two snapshots");
    })
    .await;
    assert!(!writer.is_finished(), "nothing was written meanwhile");
    writer.abort();
}

#[tokio::test]
async fn an_error_names_its_statement_and_bans_none() {
    let stage = stage("multiplex_step_error").await;
    let owner = stage.owner();
    let divide = |divisor: usize| {
        let text = "select 100 / :divisor::int4 from items where id = 1";
        Sql::new(text).set([&divisor.to_string()])
    };
    let one = async |nth: usize| {
        let plan = Plan::new([super::read(1), divide(nth % 8), super::read(2)]);
        let ran = plan.ours().snapshot().run(&stage, &owner).await;
        match (nth % 8, ran) {
            (0, Err(failed)) => {
                assert_eq!(failed.step, Some(1));
                assert_eq!(failed.error.sqlstate(), Some("22012"));
            }
            (0, Ok(_)) => panic!("divided by zero"),
            (divisor, ran) => {
                let rows = ran.unwrap();
                assert_eq!(rows[1].values, [[(100 / divisor).to_string()]]);
                assert_eq!(rows[2].values, [["\"item 2\""]]);
            }
        }
    };
    until_multiplexed(&stage, 100, one).await;
    // One in eight fails in every round; the others go on.
    for _ in 0..5 {
        let began = Instant::now();
        until_multiplexed(&stage, 50, one).await;
        assert!(began.elapsed() < Duration::from_secs(20));
    }
}
