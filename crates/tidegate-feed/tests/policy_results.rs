//! Results of policies: under whose limits PostgreSQL evaluates them, and how long they are used.

use std::time::Duration;

use tidegate_pool::Settings;
use tidegate_sql::{Author, Login, Mode, Principal, QueryOptions, RoleUse};

use crate::fixture::{Fixture, Setup, executor_with, node_with};
use crate::member_batches::{create, define, listeners, person};
use crate::members::prepare;

#[tokio::test]
async fn members_who_occupy_their_connections_delay_the_events_of_no_other() {
    let setup = Setup::without_polls();
    let mut fixture = Fixture::with("feed_results_busy", &setup).await;
    prepare(&mut fixture).await;
    define(&fixture).await;
    let settings = Settings {
        // A member may have one connection at a time.
        per_role: 1,
        wait: Duration::from_hours(1),
        ..Settings::default()
    };
    let executor = executor_with(&setup, settings);
    fixture.feed = node_with(&setup, executor.clone());
    // Members share the result of the first policy, and not that of the second.
    for (table, policy) in [
        ("a", "level > 0"),
        ("b", "lower(owner) >= tidegate.user_id()"),
    ] {
        create(&fixture, table, &[("", policy)]).await;
        let mut listeners = listeners(&fixture, table, 9).await;
        let options = QueryOptions {
            author: Author::Service,
            ..QueryOptions::default()
        };
        let mut held = Vec::new();
        for number in 0..8 {
            let member = Principal::Role(Login {
                role_use: RoleUse::Member(person(number).into()),
                ..fixture.login("/group/staff")
            });
            let begun = executor.begin(&member, Mode::ReadWrite, &options).await;
            held.push(begun.unwrap());
        }
        let insert = format!("INSERT INTO {table} VALUES (1, 'm9', 'north', 1)");
        fixture.run(&insert).await;
        for listener in &mut listeners {
            assert_eq!(listener.event().await, "+{\"id\":1}", "{policy}");
        }
        drop(held);
    }
}

#[tokio::test]
async fn a_caller_who_resumes_later_is_judged_again() {
    let fixture = Fixture::with("feed_results_later", &Setup::without_polls()).await;
    fixture
        .run(
            "CREATE TABLE hours (id int); INSERT INTO hours VALUES (1);
             CREATE TABLE t (id int PRIMARY KEY); ALTER TABLE t ENABLE ROW LEVEL SECURITY;
             CREATE POLICY p ON t USING (id > 1 OR EXISTS (SELECT FROM hours));
             GRANT SELECT ON t, hours TO PUBLIC",
        )
        .await;
    let mut live = fixture.all("t", &["id"]).await;
    let mut request = fixture.request("t", &["id"]).await;
    request.after = Some(live.cursor);
    fixture.run("INSERT INTO t VALUES (1)").await;
    assert_eq!(live.event().await, "+{\"id\":1}");
    fixture.run("DELETE FROM hours").await;
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(5)).await;
    tokio::time::resume();
    let mut resumed = fixture.subscribe(request).await.unwrap();
    fixture.run("INSERT INTO t VALUES (2)").await;
    assert_eq!(resumed.event().await, "+{\"id\":2}");
    assert_eq!(live.event().await, "+{\"id\":2}");
}
