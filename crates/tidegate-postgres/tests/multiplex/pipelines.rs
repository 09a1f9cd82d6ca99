//! Pipelines of several statements on multiplexed connections.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;

use super::{fill, roomy};
use crate::fixture::{Fixture, Sql};
use crate::pipeline::Plan;

/// Two statements with the same text, which a connection prepares once.
fn two(a: usize, b: usize) -> Plan {
    let read = |id: usize| super::read(id).by(tidegate_sql::Author::Service);
    Plan::new([read(a), read(b)]).ours().snapshot()
}

async fn fixture(name: &str) -> Arc<Fixture> {
    let fixture = Arc::new(Fixture::on(tidegate_embedded::testing::cluster(), name, roomy()).await);
    fill(&fixture).await;
    fixture
}

/// Runs rounds of pipelines until `count` of them were multiplexed.
async fn until_multiplexed<F: Future<Output = ()>>(
    fixture: &Fixture,
    count: u64,
    one: impl Fn(usize) -> F,
) {
    let wanted = fixture.users.multiplexed_requests() + count;
    let deadline = Instant::now() + Duration::from_mins(1);
    while fixture.users.multiplexed_requests() < wanted {
        assert!(Instant::now() < deadline, "few pipelines are multiplexed");
        join_all((1..=40).map(&one)).await;
    }
}

#[tokio::test]
async fn each_pipeline_gets_the_rows_of_its_own_statements() {
    let fixture = fixture("multiplex_pipelines").await;
    let owner = fixture.owner();
    until_multiplexed(&fixture, 400, async |id: usize| {
        let rows = two(id, id + 1).run(&fixture, &owner).await.unwrap();
        assert_eq!(rows[0].values, [[format!("\"item {id}\"")]]);
        assert_eq!(rows[1].values, [[format!("\"item {}\"", id + 1)]]);
    })
    .await;
}

#[tokio::test]
async fn the_statements_of_a_pipeline_share_a_snapshot() {
    let fixture = fixture("multiplex_snapshot").await;
    let owner = fixture.owner();
    let admin = crate::fixture::connect(&fixture.url()).await;
    let update_both =
        |number: i32| format!("UPDATE items SET name = 'round {number}' WHERE id IN (1, 2)");
    // The rows differ until the first update is committed.
    admin.batch_execute(&update_both(0)).await.unwrap();
    let writer = tokio::spawn(async move {
        for number in 1.. {
            admin.batch_execute(&update_both(number)).await.unwrap();
        }
    });
    until_multiplexed(&fixture, 1_000, async |_: usize| {
        let rows = two(1, 2).run(&fixture, &owner).await.unwrap();
        assert_eq!(rows[0].values, rows[1].values, "two snapshots");
    })
    .await;
    assert!(!writer.is_finished(), "nothing was written meanwhile");
    writer.abort();
}

#[tokio::test]
async fn an_error_names_its_statement_and_bans_none() {
    let fixture = fixture("multiplex_step_error").await;
    let owner = fixture.owner();
    let divide = |divisor: usize| {
        let text = "select 100 / :divisor::int4 from items where id = 1";
        Sql::new(text).set([&divisor.to_string()])
    };
    let one = async |nth: usize| {
        let plan = Plan::new([super::read(1), divide(nth % 8), super::read(2)]);
        let ran = plan.ours().snapshot().run(&fixture, &owner).await;
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
    until_multiplexed(&fixture, 100, one).await;
    // One pipeline in eight fails in every round; the others succeed.
    for _ in 0..5 {
        let began = Instant::now();
        until_multiplexed(&fixture, 50, one).await;
        assert!(began.elapsed() < Duration::from_secs(20));
    }
}
