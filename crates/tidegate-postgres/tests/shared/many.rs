//! Many users at once over few connections.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;

use super::{ours, tenant, user};
use crate::stage::Stage;

const USERS: usize = 200;
const ROUNDS: usize = 167;

async fn notes(stage: &Stage) {
    let name = &stage.name;
    stage
        .admin
        .batch_execute(&format!(
            "CREATE TABLE notes (id int PRIMARY KEY, owner text, secret text); \
             INSERT INTO notes SELECT i, '{name}/u' || i, 's' || i \
                 FROM generate_series(1, {USERS}) i; \
             GRANT SELECT ON notes TO \"{name}/all\"; \
             ALTER TABLE notes ENABLE ROW LEVEL SECURITY; \
             CREATE POLICY own ON notes USING (owner = current_user); \
             CREATE TABLE salaries (id int, amount int); \
             INSERT INTO salaries VALUES (1, 10); \
             GRANT SELECT (id) ON salaries TO \"{name}/all\""
        ))
        .await
        .unwrap();
    for number in (1..=USERS).step_by(2) {
        let grant = format!("GRANT SELECT (amount) ON salaries TO \"{name}/u{number}\"");
        stage.admin.batch_execute(&grant).await.unwrap();
    }
}

/// What one user may see, again and again.
async fn one_user(stage: Arc<Stage>, number: usize, until: Instant) -> usize {
    let login = user(&stage, number);
    let mut rounds = 0;
    while rounds < ROUNDS && Instant::now() < until {
        let read = ours("select owner, secret from notes").run(&stage, &login);
        let expected = vec![vec![
            format!("\"{}\"", login.role),
            format!("\"s{number}\""),
        ]];
        assert_eq!(read.await.unwrap().values, expected);
        let other = number % USERS + 1;
        let by_key = ours("select secret from notes where id = :id").set([&other.to_string()]);
        assert!(by_key.run(&stage, &login).await.unwrap().values.is_empty());
        let amount = ours("select amount from salaries")
            .run(&stage, &login)
            .await;
        match amount {
            Ok(rows) => assert!(number % 2 == 1 && rows.values == [["10"]], "{number}"),
            Err(error) => {
                assert_eq!(
                    (number % 2, error.sqlstate()),
                    (0, Some("42501")),
                    "{error}"
                );
            }
        }
        rounds += 1;
    }
    rounds
}

/// 200 users, 501 requests each: no row too many and none too few.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_users_see_their_own_rows_and_columns() {
    let (stage, open) = tenant("shared_many", USERS).await;
    notes(&stage).await;
    let until = Instant::now() + Duration::from_mins(4);
    let users = (1..=USERS).map(|number| {
        let one = tokio::spawn(one_user(stage.clone(), number, until));
        async { one.await.unwrap() }
    });
    let rounds: usize = join_all(users).await.into_iter().sum();
    assert_eq!(rounds, USERS * ROUNDS, "slower than four minutes");
    assert_eq!(open.distrusted(), 0);
    // All of it over the authenticator's connections, some of it pipelined.
    let counters = stage.roles.pool().stats().counters;
    assert!(counters.opened <= 40, "{counters:?}");
    assert!(stage.roles.shared_reads() > 0);
    let others = stage
        .value(
            "SELECT count(*)::text FROM pg_stat_activity \
             WHERE datname = 'shared_many' AND usename LIKE 'shared_many/u%'",
        )
        .await;
    assert_eq!(others, "0");
}
