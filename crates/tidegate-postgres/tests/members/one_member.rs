//! One member's slow statements beside the requests of another member of its group.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tidegate_sql::{Author, Login};
use tokio::time::timeout;

use super::{ID, member, ours, quoted, tenant};
use crate::fixture::{Fixture, Sql, connect};

const READ: &str = "select id from slow where id = 1";
/// A method that calls a function of the owner's, so that it runs on a connection that is reset.
const METHOD: &str = "select number_of(id) from slow where id = 1";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_member_leaves_connections_for_the_others() {
    let fixture = Arc::new(tenant("members_one", 8).await);
    let tables = "CREATE TABLE slow AS SELECT 1 AS id; \
                  GRANT SELECT ON slow TO \"members_one/group/staff\"; \
                  CREATE FUNCTION number_of(id int) RETURNS int LANGUAGE sql AS 'SELECT id'";
    fixture.admin.batch_execute(tables).await.unwrap();
    let (greedy, other) = (member(&fixture, 1), member(&fixture, 2));
    let most = i64::try_from(fixture.users.pool().settings().of_caller()).unwrap();
    for (text, author) in [(READ, Author::Service), (METHOD, Author::Owner)] {
        let locker = connect(&fixture.url()).await;
        locker
            .batch_execute("BEGIN; LOCK TABLE slow")
            .await
            .unwrap();
        let reads: Vec<_> = (0..20)
            .map(|_| tokio::spawn(read(fixture.clone(), greedy.clone(), text, author)))
            .collect();
        fixture.wait_for_running(text, most).await;
        for _ in 0..10 {
            let response = timeout(Duration::from_secs(2), ours(ID).value(&fixture, &other)).await;
            assert_eq!(response.expect("the other member waits"), quoted(2));
            assert!(fixture.running(text).await <= most, "{text}");
        }
        locker.batch_execute("COMMIT").await.unwrap();
        for value in join_all(reads).await {
            assert_eq!(value.unwrap(), "1");
        }
    }
}

async fn read(fixture: Arc<Fixture>, login: Login, text: &'static str, author: Author) -> String {
    Sql::new(text).by(author).value(&fixture, &login).await
}
