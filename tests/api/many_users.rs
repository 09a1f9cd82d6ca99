//! Tests two hundred users of one tenant, each with a token, who read one page under row level
//! security.

use std::collections::BTreeSet;

use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};

use crate::service::{Service, demo_folder};
use crate::users::token;

const USERS: usize = 200;
/// The number of concurrent requests.
const PARALLEL: usize = 16;
const PASSWORD: &str = "password-1";
/// The limit on connections: each of 16 concurrent requests may open one for the tenant's
/// authenticator.
const CONNECTIONS: usize = PARALLEL;

#[tokio::test]
async fn two_hundred_users_read_their_rows_over_a_handful_of_connections() {
    let folder = demo_folder();
    let demo = Service::start(folder.path().to_str().unwrap(), &[]);
    page(&demo).await;
    let demo = &demo;
    let tokens = at_once((0..USERS).map(|number| async move {
        sign_up(demo, number).await;
        token(demo, &name(number), PASSWORD).await
    }));
    let tokens = &tokens.await;
    let admin = demo.admin().await;
    at_once((0..USERS).map(|number| read(demo, tokens, number))).await;

    let warm = of_users(&admin).await;
    let before = sessions(&admin).await;
    for _ in 0..3 {
        at_once((0..USERS).map(|number| read(demo, tokens, number))).await;
    }
    let after = of_users(&admin).await;
    assert!(after.len() <= CONNECTIONS, "{after:?}");
    let shared = |(_, role): &(i32, String)| role == "demo/$authenticator1";
    assert!(after.iter().all(shared), "a user logged in: {after:?}");
    let kept = after.intersection(&warm).count();
    assert!(kept > 0, "none of {warm:?} is left in {after:?}");
    // The 600 requests may cause this many logins. The service's own sessions in the database are
    // included.
    let logins = sessions(&admin).await - before;
    assert!(logins <= 16, "{logins} logins");
}

fn name(number: usize) -> String {
    format!("reader-{number}")
}

/// Runs the futures, at most [`PARALLEL`] at a time.
async fn at_once<T, F: Future<Output = T>>(all: impl Iterator<Item = F>) -> Vec<T> {
    stream::iter(all).buffered(PARALLEL).collect().await
}

/// Creates a table in which each user sees three rows of its own and one that all users see.
async fn page(demo: &Service) {
    for statement in [
        "create table reports (id int primary key, reader text, title text not null)",
        "insert into reports select u * 10 + n, 'demo/reader-' || u, 'report ' || n || ' of ' || u \
         from generate_series(0, 199) u, generate_series(1, 3) n",
        "insert into reports values (9, null, 'for all')",
        "alter table reports enable row level security",
        "create policy own on reports using (reader = current_user or reader is null)",
    ] {
        demo.rows("demo", statement, json!({})).await;
    }
}

async fn sign_up(demo: &Service, number: usize) {
    let body = json!({"name": name(number), "password": PASSWORD, "user_group": "readers"});
    let made = demo.rest(Some("demo"), ("POST", "/api/v4/users"), &body);
    assert_eq!(made.await.status, 201);
    if number == 0 {
        // Creating the first member of the group has created the group.
        let grant = "grant select on reports to \"demo/group/readers\"";
        demo.rows("demo", grant, json!({})).await;
    }
}

/// Reads the page as one user, which must see only its own rows.
async fn read(demo: &Service, tokens: &[String], number: usize) {
    let query = json!({"query": "{ getReports(orderBy: {id: \"asc\"}) { id title } }"});
    let path = ("POST", "/api/graphql/schema/public");
    let response = demo.rest_with(Some(&tokens[number]), path, &query).await;
    let own = |n: usize| {
        let id = (number * 10 + n).to_string();
        json!({"id": id, "title": format!("report {n} of {number}")})
    };
    let all = json!({"id": "9", "title": "for all"});
    let mut expected: Vec<Value> = vec![own(1), own(2), own(3)];
    expected.insert(if number == 0 { 3 } else { 0 }, all);
    let found = &response.body["data"]["getReports"];
    assert_eq!(*found, json!(expected), "user {number}: {response:?}");
}

/// The connections to the database by roles of the tenant's users and authenticators.
async fn of_users(admin: &tokio_postgres::Client) -> BTreeSet<(i32, String)> {
    let open = "select pid, usename::text from pg_stat_activity where usename like 'demo/%'";
    let rows = admin.query(open, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// The number of sessions in the database so far; PostgreSQL 13 does not count them.
async fn sessions(admin: &tokio_postgres::Client) -> i64 {
    let count = "select coalesce((to_jsonb(d)->>'sessions')::int8, 0) from pg_stat_database d \
                 where datname = 'demo'";
    admin.query_one(count, &[]).await.unwrap().get(0)
}
