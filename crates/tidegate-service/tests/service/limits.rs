//! Service connections to many databases at once.

use std::sync::Arc;

use futures_util::future::{join_all, try_join_all};
use tidegate_service::{DdlNotification, Limits, ListenEnd, ServiceConnections};
use tidegate_sql::{DatabaseName, Executor as _, Principal};
use tidegate_testkit::{CollectedRows, Sql, config, connect, service_connections};
use tokio::sync::mpsc;

use super::soon;

const LIMITS: Limits = Limits {
    control: 6,
    lookups: 3,
    listeners: 2,
};

/// Service connections, and `count` databases whose names start with `prefix`.
async fn service(prefix: &str, count: usize) -> (Arc<ServiceConnections>, Vec<DatabaseName>) {
    let cluster = tidegate_embedded::testing::cluster();
    let root = connect(&cluster.url("postgres")).await;
    let mut names = Vec::new();
    for number in 0..count {
        let name = format!("{prefix}_{number}");
        let create = format!("CREATE DATABASE {name} TEMPLATE template0");
        root.batch_execute(&create).await.unwrap();
        names.push(DatabaseName::new(&name));
    }
    let control = service_connections(config(&cluster.admin_url(), "postgres"));
    control.set_limits(LIMITS);
    (Arc::new(control), names)
}

/// The number of sessions in databases whose names start with `prefix`.
async fn sessions(prefix: &str) -> i64 {
    let cluster = tidegate_embedded::testing::cluster();
    let count = "SELECT count(*) FROM pg_stat_activity WHERE starts_with(datname::text, $1)";
    let root = connect(&cluster.url("postgres")).await;
    root.query_one(count, &[&prefix]).await.unwrap().get(0)
}

async fn look(control: &ServiceConnections, database: &DatabaseName) -> tidegate_sql::Result<()> {
    let sql = Sql::new("SELECT pg_catalog.pg_sleep(0.05)").set([]);
    let who = Principal::Catalog(database.clone());
    let mut rows = CollectedRows::default();
    let done = control.query(&who, &sql.bound, sql.options(), &mut rows);
    done.await.map(drop)
}

#[tokio::test]
async fn catalogs_of_many_databases_are_read_over_few_connections() {
    let (control, databases) = service("looked_into", 8).await;
    for _ in 0..2 {
        let looks = databases.iter().map(|database| look(&control, database));
        try_join_all(looks).await.unwrap();
        for database in &databases {
            look(&control, database).await.unwrap();
        }
    }
    // PostgreSQL ends a session some time after its connection was closed.
    soon(async { while sessions("looked_into").await > 3 {} }).await;
    // An open connection is reused.
    let last = &databases[7];
    look(&control, last).await.unwrap();
    assert!(sessions("looked_into_7").await == 1);
}

#[tokio::test]
async fn no_more_databases_are_listened_to_than_allowed() {
    let (control, databases) = service("listened_to", 4).await;
    let (tell, mut reported) = mpsc::unbounded_channel();
    let listen = |database: DatabaseName| {
        let (control, tell) = (control.clone(), tell.clone());
        tokio::spawn(async move {
            let received = |announcement| tell.send(announcement).unwrap();
            control
                .ddl_notifications(&database, received)
                .await
                .unwrap()
        })
    };
    let first: Vec<_> = databases[..2].iter().cloned().map(listen).collect();
    for _ in 0..2 {
        assert_eq!(
            soon(reported.recv()).await,
            Some(DdlNotification::Listening)
        );
    }
    let others = join_all(databases[2..].iter().cloned().map(listen));
    for silence in soon(others).await {
        assert_eq!(silence.unwrap(), ListenEnd::LimitReached);
    }
    // A permit is free again once a listener stops.
    first[0].abort();
    soon(async {
        loop {
            let waiting = listen(databases[3].clone());
            tokio::select! {
                _ = waiting => {}
                received = reported.recv() => break assert_eq!(received, Some(DdlNotification::Listening)),
            }
        }
    })
    .await;
}

#[tokio::test]
async fn smaller_limits_close_idle_connections_and_end_listeners() {
    let (control, databases) = service("shrunk", 2).await;
    let (tell, mut reported) = mpsc::unbounded_channel();
    let listen = |database: &DatabaseName| {
        let (control, tell, database) = (control.clone(), tell.clone(), database.clone());
        tokio::spawn(async move {
            let received = |notification| tell.send(notification).unwrap();
            control
                .ddl_notifications(&database, received)
                .await
                .unwrap()
        })
    };
    let (mut first, mut second) = (listen(&databases[0]), listen(&databases[1]));
    for _ in 0..2 {
        assert_eq!(
            soon(reported.recv()).await,
            Some(DdlNotification::Listening)
        );
    }
    for database in &databases {
        look(&control, database).await.unwrap();
    }
    assert_eq!(sessions("shrunk").await, 4);
    let smaller = Limits {
        control: 2,
        lookups: 1,
        listeners: 1,
    };
    assert_eq!(control.set_limits(smaller), 1, "a listener has to end");
    let end = soon(async {
        tokio::select! { end = &mut first => end, end = &mut second => end }
    });
    assert_eq!(end.await.unwrap(), ListenEnd::LimitReached);
    soon(async { while sessions("shrunk").await != 2 {} }).await;
    assert_eq!(control.set_limits(smaller), 0);
}

#[tokio::test]
async fn statements_that_wait_in_one_database_leave_connections_to_others() {
    let (control, databases) = service("waited_in", 2).await;
    let cluster = tidegate_embedded::testing::cluster();
    let holder = connect(&cluster.url("waited_in_0")).await;
    holder
        .batch_execute("SELECT pg_advisory_lock(1)")
        .await
        .unwrap();
    let wait = |_| {
        let (control, who) = (control.clone(), Principal::Catalog(databases[0].clone()));
        tokio::spawn(async move {
            let sql = Sql::new("SELECT pg_catalog.pg_advisory_lock_shared(1)").set([]);
            let mut rows = CollectedRows::default();
            let done = control.query(&who, &sql.bound, sql.options(), &mut rows);
            done.await.map(drop)
        })
    };
    let waiting: Vec<_> = (0..4).map(wait).collect();
    let waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted \
                 AND database = (SELECT oid FROM pg_database WHERE datname = 'waited_in_0')";
    let waits = async || -> i64 { holder.query_one(waits, &[]).await.unwrap().get(0) };
    soon(async { while waits().await < 2 {} }).await;
    soon(look(&control, &databases[1])).await.unwrap();
    assert!(waiting.iter().all(|waits| !waits.is_finished()));
}
