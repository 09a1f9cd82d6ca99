//! The messages that statements of Tidegate send to PostgreSQL on shared connections.

use super::{tenant_on, user};
use crate::pipeline::{Plan, assert_sent, by_key, watched, write, write_returning};

#[tokio::test]
async fn a_key_is_read_in_one_round_trip_by_each_kind_of_caller() {
    let (fixture, log) = watched("shared_messages_key").await;
    let (fixture, _) = tenant_on(fixture, 1).await;
    let user = user(&fixture, 1);
    for (login, expected) in [
        (fixture.owner(), "BES"),
        (fixture.guest(), "BES"),
        // The first pair is the switch to the user's role.
        (user, "BEBES"),
    ] {
        let plan = Plan::new([by_key(1)]).ours();
        assert_sent(&plan, (&fixture, &log), &login, expected).await;
    }
    let plan = Plan::new([by_key(1)]);
    assert_sent(&plan, (&fixture, &log), &fixture.owner(), "BES").await;
}

#[tokio::test]
async fn a_switch_adds_no_round_trip_and_no_reset() {
    let (fixture, log) = watched("shared_messages").await;
    let (fixture, _) = tenant_on(fixture, 1).await;
    let user = user(&fixture, 1);
    let reads = || [by_key(1), by_key(2), by_key(3)];
    let returning = || [write_returning(1), write_returning(2)];
    for (plan, expected) in [
        (Plan::new(reads()), "BEBEBEBES"),
        // The first pair begins the transaction, and the last pair commits it.
        (Plan::new(reads()).snapshot(), "BEBEBEBEBEBES"),
        (Plan::new([write(1), write(2)]), "BEBEBES"),
        // The commit waits until the sinks have taken the rows.
        (Plan::new(returning()), "BEBEBEH|S"),
        (Plan::new(returning()).together(), "BEBEBES"),
        (Plan::new([write_returning(1)]).together(), "BEBES"),
    ] {
        assert_sent(&plan.ours(), (&fixture, &log), &user, expected).await;
    }
}
