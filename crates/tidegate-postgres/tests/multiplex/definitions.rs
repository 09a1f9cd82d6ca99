//! Tests definitions that change while reads are multiplexed.

use std::time::{Duration, Instant};

use futures_util::future::join_all;

use super::multiplexed_fixture;
use crate::fixture::Sql;

#[tokio::test]
async fn definitions_that_change_meanwhile_count() {
    let fixture = multiplexed_fixture("multiplex_definition").await;
    let owner = fixture.owner();
    let text = "select * from items where id = 5";
    for round in 0..10 {
        let value = |row: &[String]| row.last().cloned();
        let rows = |count: usize| {
            let (fixture, owner) = (&fixture, &owner);
            join_all((0..count).map(move |_| Sql::new(text).run(fixture, owner)))
        };
        for _ in 0..10 {
            for response in rows(20).await {
                let response = response.unwrap();
                assert_eq!(response.columns.len(), 2 + round);
            }
        }
        fixture
            .admin
            .batch_execute(&format!(
                "ALTER TABLE items ADD COLUMN c{round} int DEFAULT {round}"
            ))
            .await
            .unwrap();
        for response in rows(40).await {
            let response = response.unwrap();
            assert_eq!(response.columns.len(), 3 + round);
            assert_eq!(value(&response.values[0]), Some(round.to_string()));
        }
    }
}

#[tokio::test]
async fn a_type_that_another_client_changed_is_never_misread() {
    let fixture = multiplexed_fixture("multiplex_retyped").await;
    let owner = fixture.owner();
    fixture
        .admin
        .batch_execute("ALTER TABLE items ADD v int8 DEFAULT 5")
        .await
        .unwrap();
    for round in 0..30 {
        let (kind, name) = [("float8", "w"), ("int8", "v")][round % 2];
        let old = ["v", "w"][round % 2];
        let (types, stars) = (
            "select v from items where id = 1",
            "select * from items where id = 1",
        );
        let read = |text: &'static str, count: usize| {
            let (fixture, owner) = (&fixture, &owner);
            join_all((0..count).map(move |_| Sql::new(text).run(fixture, owner)))
        };
        read(types, 10).await;
        read(stars, 10).await;
        let change =
            format!("ALTER TABLE items ALTER v TYPE {kind}; ALTER TABLE items ADD {name} int8");
        let drop = if round == 0 {
            String::new()
        } else {
            format!("; ALTER TABLE items DROP {old}2")
        };
        let change = change.replace(&format!("ADD {name} "), &format!("ADD {name}2 ")) + &drop;
        fixture.admin.batch_execute(&change).await.unwrap();
        // The next multiplexed connection starts without prepared statements.
        fixture.users.pool().close(&owner.database);
        for _ in 0..5 {
            for response in read(types, 40).await {
                let response = response.unwrap();
                assert_eq!(
                    response.columns[0].r#type.to_string(),
                    kind,
                    "round {round}"
                );
                assert!(
                    matches!(&*response.values[0][0], "5" | "5.0"),
                    "{:?}",
                    response.values
                );
            }
            for response in read(stars, 40).await {
                let response = response.unwrap();
                assert_eq!(response.columns.len(), 4);
                assert_eq!(&*response.columns[3].name, format!("{name}2"));
            }
        }
    }
}

#[tokio::test]
async fn code_of_the_databases_own_is_never_shared() {
    let fixture = multiplexed_fixture("multiplex_code").await;
    let owner = fixture.owner();
    fixture
        .admin
        .batch_execute(
            "CREATE VIEW seen AS SELECT id, name FROM items; GRANT SELECT ON seen TO PUBLIC",
        )
        .await
        .unwrap();
    let view = |id: usize| Sql::new("select name from seen where id = :id").set([&id.to_string()]);
    let before = fixture.users.multiplexed_requests();
    let deadline = Instant::now() + Duration::from_secs(20);
    while fixture.users.multiplexed_requests() == before {
        assert!(Instant::now() < deadline, "a harmless view is never shared");
        join_all((1..=20).map(|id| view(id).value(&fixture, &owner))).await;
    }
    // From the next statement on, the read is impure.
    Sql::new(
        "create function leave(text) returns text language plpgsql as \
         $$ begin perform set_config('tidegate.left', 'poison', false); return $1; end $$",
    )
    .run(&fixture, &owner)
    .await
    .unwrap();
    fixture
        .admin
        .batch_execute("CREATE OR REPLACE VIEW seen AS SELECT id, leave(name) AS name FROM items")
        .await
        .unwrap();
    // A change outside of this node takes effect after a second.
    let recovered = Instant::now() + Duration::from_millis(1500);
    while Instant::now() < recovered {
        join_all((1..=20).map(|id| view(id).value(&fixture, &owner))).await;
    }
    for _ in 0..20 {
        let before = fixture.users.multiplexed_requests();
        join_all((1..=20).map(|id| view(id).value(&fixture, &owner))).await;
        assert_eq!(fixture.users.multiplexed_requests(), before);
        let left = "select coalesce(current_setting('tidegate.left', true), '')";
        for left in join_all((0..20).map(|_| Sql::new(left).value(&fixture, &owner))).await {
            assert_eq!(left, "\"\"", "a session kept what a view left");
        }
    }
}
