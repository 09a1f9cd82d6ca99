//! How often the untrusted names of a database are read, and where.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tidegate_embedded::testing::cluster;
use tidegate_service::ServiceConnections;
use tidegate_sql::{
    Author, BoundStatement, BoxFuture, Completion, Description, Executor, Mode, Principal,
    QueryOptions, Result, RowSink, Transaction,
};
use tidegate_testkit::{DEADLINE, config, service_connections};
use tokio::time::Instant;

use super::fixture;
use crate::fixture::{Fixture, Sql};

/// A text that the query of the fingerprint contains.
const MARK: &str = "pg_rewrite";

/// Counts the statements that the service runs.
struct CountedService {
    service: ServiceConnections,
    statements: AtomicUsize,
}

impl CountedService {
    fn count(&self) -> usize {
        self.statements.load(Ordering::SeqCst)
    }
}

impl Executor for CountedService {
    fn query<'a>(
        &'a self,
        who: &'a Principal,
        statement: &'a BoundStatement,
        options: &'a QueryOptions,
        sink: &'a mut dyn RowSink,
    ) -> BoxFuture<'a, Result<Completion>> {
        self.statements.fetch_add(1, Ordering::SeqCst);
        self.service.query(who, statement, options, sink)
    }

    fn begin<'a>(
        &'a self,
        who: &'a Principal,
        mode: Mode,
        options: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>>> {
        self.service.begin(who, mode, options)
    }

    fn describe<'a>(
        &'a self,
        who: &'a Principal,
        statement: &'a BoundStatement,
        options: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<Description>> {
        self.service.describe(who, statement, options)
    }
}

async fn counted(name: &str) -> (Fixture, Arc<CountedService>) {
    let mut fixture = fixture(name).await;
    let config = config(&cluster().socket_url("postgres"), name);
    let service = Arc::new(CountedService {
        service: service_connections(config),
        statements: AtomicUsize::new(0),
    });
    fixture.users = fixture.users.clone().with_service(service.clone());
    (fixture, service)
}

/// Reads repeatedly for this time.
async fn read_for(fixture: &Fixture, time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        let read = Sql::new("select 1 as one").by(Author::Service);
        read.run(fixture, &fixture.owner()).await.unwrap();
    }
}

#[tokio::test]
async fn only_a_changed_definition_needs_a_connection_of_the_service() {
    let (fixture, service) = counted("fingerprint_service").await;
    let changed = async |before: usize| {
        let deadline = Instant::now() + DEADLINE;
        while service.count() == before {
            assert!(Instant::now() < deadline, "the definitions are never read");
            read_for(&fixture, Duration::from_millis(1)).await;
        }
    };
    changed(0).await;
    assert_eq!(service.count(), 1);
    // This takes longer than the names are valid.
    read_for(&fixture, Duration::from_millis(1500)).await;
    assert_eq!(service.count(), 1);
    fixture
        .admin
        .batch_execute("create view late as select 1 as one")
        .await
        .unwrap();
    changed(1).await;
    assert_eq!(service.count(), 2);
}

#[tokio::test]
async fn a_database_that_is_seldom_used_is_not_queried() {
    let (fixture, service) = counted("fingerprint_seldom").await;
    for _ in 0..3 {
        read_for(&fixture, Duration::ZERO).await;
        let read = Sql::new("select 1 as one");
        read.run(&fixture, &fixture.owner()).await.unwrap();
    }
    fixture.rest().await;
    assert_eq!(service.count(), 0);
}

#[tokio::test]
async fn callers_cannot_replace_the_query_that_reads_the_fingerprint() {
    let (fixture, service) = counted("fingerprint_prepared").await;
    let owner = fixture.owner();
    let prepared = format!(
        "select count(*) from pg_prepared_statements \
         where strpos(statement, '{MARK}') > 0 and strpos(statement, 'strpos') = 0"
    );
    for author in [Author::Caller, Author::Service] {
        fixture.users.pool().close(&owner.database);
        let before = service.count();
        fixture
            .admin
            .batch_execute("create or replace view changed as select 1 as one")
            .await
            .unwrap();
        let deadline = Instant::now() + DEADLINE;
        let mut most = "0".to_owned();
        while service.count() == before || (author == Author::Service && most == "0") {
            assert!(Instant::now() < deadline, "{author:?}: never prepared");
            let count = Sql::new(&prepared).by(author);
            most = most.max(count.value(&fixture, &owner).await);
        }
        let expected = if author == Author::Caller { "0" } else { "1" };
        assert_eq!(most, expected, "{author:?}");
    }
}
