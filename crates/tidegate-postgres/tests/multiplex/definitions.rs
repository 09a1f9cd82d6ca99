//! Definitions that change while reads share a connection.

use std::time::{Duration, Instant};

use futures_util::future::join_all;

use super::crowded;
use crate::stage::Sql;

#[tokio::test]
async fn definitions_that_change_meanwhile_count() {
    let stage = crowded("multiplex_definition").await;
    let owner = stage.owner();
    let text = "select * from items where id = 5";
    for round in 0..10 {
        let value = |row: &[String]| row.last().cloned();
        let rows = |count: usize| {
            let (stage, owner) = (&stage, &owner);
            join_all((0..count).map(move |_| Sql::new(text).run(stage, owner)))
        };
        for _ in 0..10 {
            for answer in rows(20).await {
                let answer = answer.unwrap();
                assert_eq!(answer.columns.len(), 2 + round);
            }
        }
        stage
            .admin
            .batch_execute(&format!(
                "ALTER TABLE items ADD COLUMN c{round} int DEFAULT {round}"
            ))
            .await
            .unwrap();
        for answer in rows(40).await {
            let answer = answer.unwrap();
            assert_eq!(answer.columns.len(), 3 + round);
            assert_eq!(value(&answer.values[0]), Some(round.to_string()));
        }
    }
}

#[tokio::test]
async fn a_type_that_changed_elsewhere_is_never_misread() {
    let stage = crowded("multiplex_retyped").await;
    let owner = stage.owner();
    stage
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
            let (stage, owner) = (&stage, &owner);
            join_all((0..count).map(move |_| Sql::new(text).run(stage, owner)))
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
        stage.admin.batch_execute(&change).await.unwrap();
        // The next one is opened on a connection that knows no statement.
        stage.roles.pool().close(&owner.database);
        for _ in 0..5 {
            for answer in read(types, 40).await {
                let answer = answer.unwrap();
                assert_eq!(answer.columns[0].r#type.to_string(), kind, "round {round}");
                assert!(
                    matches!(&*answer.values[0][0], "5" | "5.0"),
                    "{:?}",
                    answer.values
                );
            }
            for answer in read(stars, 40).await {
                let answer = answer.unwrap();
                assert_eq!(answer.columns.len(), 4);
                assert_eq!(&*answer.columns[3].name, format!("{name}2"));
            }
        }
    }
}

#[tokio::test]
async fn code_of_the_databases_own_is_never_shared() {
    let stage = crowded("multiplex_code").await;
    let owner = stage.owner();
    stage
        .admin
        .batch_execute(
            "CREATE VIEW seen AS SELECT id, name FROM items; GRANT SELECT ON seen TO PUBLIC",
        )
        .await
        .unwrap();
    let view = |id: usize| Sql::new("select name from seen where id = :id").set([&id.to_string()]);
    let before = stage.roles.shared_reads();
    let deadline = Instant::now() + Duration::from_secs(20);
    while stage.roles.shared_reads() == before {
        assert!(Instant::now() < deadline, "a harmless view is never shared");
        join_all((1..=20).map(|id| view(id).value(&stage, &owner))).await;
    }
    // From the next statement on it is not harmless.
    Sql::new(
        "create function leave(text) returns text language plpgsql as \
         $$ begin perform set_config('tidegate.left', 'poison', false); return $1; end $$",
    )
    .run(&stage, &owner)
    .await
    .unwrap();
    stage
        .admin
        .batch_execute("CREATE OR REPLACE VIEW seen AS SELECT id, leave(name) AS name FROM items")
        .await
        .unwrap();
    // What an administrator changes beside us counts a second later.
    let settled = Instant::now() + Duration::from_millis(1500);
    while Instant::now() < settled {
        join_all((1..=20).map(|id| view(id).value(&stage, &owner))).await;
    }
    for _ in 0..20 {
        let before = stage.roles.shared_reads();
        join_all((1..=20).map(|id| view(id).value(&stage, &owner))).await;
        assert_eq!(stage.roles.shared_reads(), before);
        let left = "select coalesce(current_setting('tidegate.left', true), '')";
        for left in join_all((0..20).map(|_| Sql::new(left).value(&stage, &owner))).await {
            assert_eq!(left, "\"\"", "a session kept what a view left");
        }
    }
}
