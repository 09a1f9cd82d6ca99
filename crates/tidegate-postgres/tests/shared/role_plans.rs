//! Statements under row level security, which PostgreSQL plans for one role at a time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_sql::Login;

use super::{ours, tenant, user};
use crate::fixture::{Fixture, Sql};

/// How often the connection has prepared the statements on notes.
const PREPARED: &str = "select count(*)::int4 from pg_prepared_statements \
    where statement like '%from notes%' and statement not like '%count(%'";

const OWN: &str = "select id, owner from notes";

async fn notes(name: &str) -> Arc<Fixture> {
    let (fixture, _) = tenant(name, 3).await;
    let owner = fixture.owner();
    for statement in [
        "create table notes (id int, owner text, code int default 7)".to_owned(),
        format!("insert into notes select i, '{name}/u' || i from generate_series(1, 3) i"),
        format!("grant select on notes to \"{name}/all\""),
        "alter table notes enable row level security".to_owned(),
        "create policy own on notes using (owner = current_user)".to_owned(),
    ] {
        Sql::new(&statement).run(&fixture, &owner).await.unwrap();
    }
    fixture
}

/// Reads as each of the users until the connection has prepared the statement `count` times.
async fn read_until_prepared(fixture: &Fixture, users: &[Login], count: usize) {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        for login in users {
            let rows = ours(OWN).run(fixture, login).await.unwrap();
            assert_eq!(rows.values.len(), 1);
            assert_eq!(rows.values[0][1], format!("\"{}\"", login.role));
            fixture.rest().await;
        }
        let found = ours(PREPARED).value(fixture, &users[0]).await;
        fixture.rest().await;
        if found == count.to_string() {
            return;
        }
        assert!(Instant::now() < deadline, "prepared {found} times");
    }
}

#[tokio::test]
async fn a_role_that_comes_back_has_a_plan_of_its_own() {
    let fixture = notes("shared_role_plans").await;
    let users = [1, 2].map(|number| user(&fixture, number));
    read_until_prepared(&fixture, &users, 3).await;
    // The first use of a role makes no plan.
    let third = user(&fixture, 3);
    let rows = ours(OWN).run(&fixture, &third).await.unwrap();
    assert_eq!(rows.values[0][0], "3");
    fixture.rest().await;
    assert_eq!(ours(PREPARED).value(&fixture, &third).await, "3");
}

/// Reads other columns and codes as each of the users, often enough that each user gets plans.
async fn read_columns_and_codes(fixture: &Fixture, users: &[Login], columns: usize, code: &str) {
    for login in users.iter().cycle().take(4 * users.len()) {
        let all = ours("select * from notes")
            .run(fixture, login)
            .await
            .unwrap();
        assert_eq!((all.columns.len(), all.values.len()), (columns, 1));
        fixture.rest().await;
        let coded = ours("select id from notes where code = :code").set([code]);
        assert_eq!(coded.run(fixture, login).await.unwrap().values.len(), 1);
        fixture.rest().await;
    }
}

#[tokio::test]
async fn definitions_count_for_the_plans_of_all_roles() {
    let fixture = notes("shared_role_plans_definitions").await;
    let owner = fixture.owner();
    let users = [1, 2].map(|number| user(&fixture, number));
    read_until_prepared(&fixture, &users, 3).await;
    read_columns_and_codes(&fixture, &users, 3, "7").await;
    assert_eq!(ours(PREPARED).value(&fixture, &users[0]).await, "9");
    // No column of the result shows that the type of a parameter has changed.
    let retype = "alter table notes alter code type text";
    Sql::new(retype).run(&fixture, &owner).await.unwrap();
    read_columns_and_codes(&fixture, &users, 3, "\"7\"").await;
    let add = "alter table notes add late int";
    fixture.admin.batch_execute(add).await.unwrap();
    read_columns_and_codes(&fixture, &users, 4, "\"7\"").await;
}

#[tokio::test]
async fn a_policy_that_changes_counts_at_once() {
    let fixture = notes("shared_role_plans_policy").await;
    let users = [1, 2].map(|number| user(&fixture, number));
    read_until_prepared(&fixture, &users, 3).await;
    let change = "alter policy own on notes using (owner <> current_user)";
    fixture.admin.batch_execute(change).await.unwrap();
    for (login, others) in users.iter().zip([["2", "3"], ["1", "3"]]) {
        let rows = ours(OWN).run(&fixture, login).await.unwrap();
        let ids: Vec<_> = rows.values.iter().map(|row| row[0].as_str()).collect();
        assert_eq!(ids, others);
    }
}
