//! Service connections.

mod ddl_notifications;
mod limits;
mod lock_table;
mod outage;
mod registration;

use std::sync::Arc;
use std::time::Duration;

use tidegate_embedded::Cluster;
use tidegate_service::{Notification, ServiceConnections};
use tidegate_sql::{
    DatabaseName, Error, Executor as _, Login, Mode, Principal, QueryOptions, Result, RoleName,
    RoleUse,
};
use tidegate_testkit::{
    CollectedRows, Rows, Sql, config, connect, service_connections, soon, wait_for_running,
};
use tidegate_values::WireFormat;
use tidegate_wire::{Backend, BackendTerminator as _, Config, TerminateOutcome};
use tokio_postgres::Client;

/// A control database of its own for a test.
struct TestDatabase {
    control: Arc<ServiceConnections>,
    database: DatabaseName,
    beside: Client,
}

impl TestDatabase {
    async fn new(name: &str) -> Self {
        tidegate_testkit::database(name, "").await;
        Self::on(tidegate_embedded::testing::cluster(), name).await
    }

    async fn on(cluster: &Cluster, name: &str) -> Self {
        Self::of(cluster, name, config(&cluster.url("postgres"), name)).await
    }

    /// With the administrator of this configuration.
    async fn of(cluster: &Cluster, name: &str, config: Config) -> Self {
        Self {
            control: Arc::new(service_connections(config)),
            database: DatabaseName::new(name),
            beside: connect(&cluster.url(name)).await,
        }
    }

    async fn run(&self, who: &Principal, sql: Sql) -> Result<Rows> {
        let sql = sql.with_a_set();
        let mut gathered = CollectedRows::default();
        let done = self
            .control
            .query(who, &sql.bound, sql.options(), &mut gathered)
            .await?;
        Ok(gathered.rows(done))
    }

    async fn control(&self, text: &str) -> Result<Rows> {
        self.run(&Principal::Control, Sql::new(text)).await
    }

    fn catalog(&self) -> Principal {
        Principal::Catalog(self.database.clone())
    }

    async fn wait_for_running(&self, mark: &str, count: i64) {
        wait_for_running(&self.beside, mark, count).await;
    }
}

#[tokio::test]
async fn rows_come_as_postgresql_sends_them() {
    let database = TestDatabase::new("control_rows").await;
    database
        .control("CREATE TABLE public.things (id int PRIMARY KEY, tags text[])")
        .await
        .unwrap();
    let insert = Sql::new("INSERT INTO public.things VALUES (:id, :tags)")
        .set(["1", r#"["a","ü \" b"]"#])
        .set(["2", "null"]);
    let inserted = database.run(&Principal::Control, insert).await.unwrap();
    assert_eq!(inserted.affected, Some(2));
    let rows = database
        .control("SELECT * FROM public.things ORDER BY id")
        .await
        .unwrap();
    assert_eq!(rows.values, [["1", r#"["a","ü \" b"]"#], ["2", "null"]]);
    assert_eq!(rows.affected, None);
    let names: Vec<_> = rows
        .columns
        .iter()
        .map(|column| column.name.as_str())
        .collect();
    assert_eq!(names, ["id", "tags"]);
    assert!(
        rows.columns
            .iter()
            .all(|column| column.format == WireFormat::Binary)
    );
    assert_eq!(rows.columns[1].origin.map(|(_, number)| number), Some(2));
}

#[tokio::test]
async fn all_sets_of_a_statement_count_or_none() {
    let database = TestDatabase::new("control_sets").await;
    database
        .control("CREATE TABLE public.things (id int PRIMARY KEY)")
        .await
        .unwrap();
    let insert = Sql::new("INSERT INTO public.things VALUES (:id)")
        .set(["1"])
        .set(["1"]);
    let error = database.run(&Principal::Control, insert).await.unwrap_err();
    assert_eq!(error.sqlstate(), Some("23505"));
    let rows = database
        .control("SELECT count(*)::int FROM public.things")
        .await
        .unwrap();
    assert_eq!(rows.values, [["0"]]);
}

#[tokio::test]
async fn a_refusal_tells_what_postgresql_said_and_where() {
    let database = TestDatabase::new("control_refusal").await;
    let error = database.control("SELECT 1, nothing").await.unwrap_err();
    let Error::Rejected(rejection) = &error else {
        panic!("{error:?}")
    };
    assert_eq!(
        (rejection.sqlstate.as_str(), rejection.position),
        ("42703", Some(11))
    );
    database
        .control("CREATE TABLE public.things (id int CONSTRAINT small CHECK (id < 9))")
        .await
        .unwrap();
    let error = database
        .control("INSERT INTO public.things VALUES (10)")
        .await
        .unwrap_err();
    let Error::Rejected(rejection) = &error else {
        panic!("{error:?}")
    };
    assert_eq!(rejection.constraint.as_deref(), Some("small"));
    assert_eq!(rejection.table.as_deref(), Some("things"));
}

#[tokio::test]
async fn a_changed_table_is_read_again() {
    let database = TestDatabase::new("control_stale").await;
    database
        .control("CREATE TABLE public.things AS SELECT 1 AS id")
        .await
        .unwrap();
    let read = "SELECT * FROM public.things";
    for _ in 0..8 {
        assert_eq!(database.control(read).await.unwrap().values, [["1"]]);
    }
    database
        .beside
        .batch_execute("ALTER TABLE public.things ADD COLUMN more text DEFAULT 'x'")
        .await
        .unwrap();
    for _ in 0..8 {
        assert_eq!(
            database.control(read).await.unwrap().values,
            [["1", "\"x\""]]
        );
    }
}

#[tokio::test]
async fn a_catalog_is_read_only_and_finds_nothing_by_a_short_name() {
    let database = TestDatabase::new("control_catalog").await;
    database
        .beside
        .batch_execute("CREATE TABLE public.things (id int)")
        .await
        .unwrap();
    let catalog = database.catalog();
    let path = database
        .run(&catalog, Sql::new("SHOW search_path"))
        .await
        .unwrap();
    assert_eq!(path.values, [["\"\""]]);
    let error = database
        .run(&catalog, Sql::new("SELECT * FROM things"))
        .await
        .unwrap_err();
    assert_eq!(error.sqlstate(), Some("42P01"));
    let write = Sql::new("INSERT INTO public.things VALUES (1)");
    let error = database.run(&catalog, write).await.unwrap_err();
    assert_eq!(error.sqlstate(), Some("25006"));
    let classes = "SELECT count(*)::int FROM pg_class WHERE relname = :name";
    let rows = database
        .run(&catalog, Sql::new(classes).set(["\"things\""]))
        .await
        .unwrap();
    assert_eq!(rows.values, [["1"]]);
}

#[tokio::test]
async fn a_database_that_is_not_there_is_named_so_and_a_dropped_one_can_go() {
    let database = TestDatabase::new("control_databases").await;
    let nowhere = Principal::Catalog(DatabaseName::new("no such database"));
    let error = database
        .run(&nowhere, Sql::new("SELECT 1"))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::NoDatabase), "{error:?}");
    database
        .beside
        .batch_execute("CREATE DATABASE control_dropped")
        .await
        .unwrap();
    let gone = DatabaseName::new("control_dropped");
    let catalog = Principal::Catalog(gone.clone());
    database.run(&catalog, Sql::new("SELECT 1")).await.unwrap();
    database.control.close(&gone);
    soon(async {
        // PostgreSQL notices with a delay that the connection is closed.
        while database
            .beside
            .batch_execute("DROP DATABASE control_dropped")
            .await
            .is_err()
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn statements_of_users_are_refused() {
    let database = TestDatabase::new("control_users").await;
    let who = Principal::Role(Login {
        database: database.database.clone(),
        role: RoleName::new("anybody"),
        role_use: RoleUse::User(1),
    });
    let error = database.run(&who, Sql::new("SELECT 1")).await.unwrap_err();
    assert!(matches!(error, Error::Internal(_)), "{error:?}");
}

#[tokio::test]
async fn a_transaction_is_committed_or_was_never_there() {
    let database = TestDatabase::new("control_transaction").await;
    database
        .control("CREATE TABLE public.things (id int PRIMARY KEY)")
        .await
        .unwrap();
    for (id, commit) in [("1", true), ("2", false)] {
        let options = QueryOptions::default();
        let begun = database
            .control
            .begin(&Principal::Control, Mode::ReadWrite, &options)
            .await;
        let mut transaction = begun.unwrap();
        let insert = Sql::new("INSERT INTO public.things VALUES (:id)").set([id]);
        transaction
            .query(&insert.bound, &mut CollectedRows::default())
            .await
            .unwrap();
        if commit {
            transaction.commit().await.unwrap();
        }
    }
    let read = "SELECT array_agg(id) FROM public.things";
    assert_eq!(database.control(read).await.unwrap().values, [["[1]"]]);
    let begun = database
        .control
        .begin(
            &Principal::Control,
            Mode::Snapshot,
            &QueryOptions::default(),
        )
        .await;
    let mut transaction = begun.unwrap();
    let insert = Sql::new("INSERT INTO public.things VALUES (3)").set([]);
    let error = transaction
        .query(&insert.bound, &mut CollectedRows::default())
        .await
        .unwrap_err();
    assert_eq!(error.sqlstate(), Some("25006"));
    assert!(transaction.commit().await.is_err(), "it has failed");
}

#[tokio::test]
async fn an_abandoned_statement_is_cancelled() {
    let database = TestDatabase::new("control_cancel").await;
    let control = database.control.clone();
    let task = tokio::spawn(async move {
        let sql = Sql::new("SELECT 'nobody waits', pg_sleep(600)").set([]);
        let mut rows = CollectedRows::default();
        control
            .query(&Principal::Control, &sql.bound, sql.options(), &mut rows)
            .await
    });
    database.wait_for_running("nobody waits", 1).await;
    task.abort();
    database.wait_for_running("nobody waits", 0).await;
    assert_eq!(database.control("SELECT 1").await.unwrap().values, [["1"]]);
}

#[tokio::test]
async fn a_deadline_ends_a_statement_and_a_transaction() {
    let database = TestDatabase::new("control_deadline").await;
    let soon = Duration::from_secs(2);
    let sql = Sql::new("SELECT 'too late', pg_sleep(600)").within(soon);
    let error = database.run(&Principal::Control, sql).await.unwrap_err();
    assert!(matches!(error, Error::Deadline), "{error:?}");
    let sql = Sql::new("SELECT 'too late', pg_sleep(600)")
        .set([])
        .within(soon);
    let begun = database
        .control
        .begin(&Principal::Control, Mode::ReadWrite, sql.options())
        .await;
    let mut transaction = begun.unwrap();
    let error = transaction
        .query(&sql.bound, &mut CollectedRows::default())
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Deadline), "{error:?}");
    drop(transaction);
    database.wait_for_running("too late", 0).await;
}

#[tokio::test]
async fn more_work_than_connections_waits_for_one() {
    let database = TestDatabase::new("control_permits").await;
    let tasks: Vec<_> = (0..60)
        .map(|_| {
            let control = database.control.clone();
            tokio::spawn(async move {
                let sql = Sql::new("SELECT pg_sleep(0.01)::text").set([]);
                let mut rows = CollectedRows::default();
                control
                    .query(&Principal::Control, &sql.bound, sql.options(), &mut rows)
                    .await
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_backend_that_does_not_stop_is_terminated() {
    let database = TestDatabase::new("control_terminate").await;
    database
        .beside
        .batch_execute("CREATE ROLE control_stubborn LOGIN PASSWORD 'x'")
        .await
        .unwrap();
    let cluster = tidegate_embedded::testing::cluster();
    let mut config: tokio_postgres::Config = cluster.url("control_terminate").parse().unwrap();
    config.user("control_stubborn").password("x");
    let (client, connection) = config.connect(tokio_postgres::NoTls).await.unwrap();
    let ended = tokio::spawn(connection);
    let query = "SELECT pg_backend_pid()";
    let process_id: i32 = client.query_one(query, &[]).await.unwrap().get(0);
    let sleep = tokio::spawn(async move { client.batch_execute("SELECT pg_sleep(600)").await });
    database.wait_for_running("pg_sleep(600)", 1).await;
    let terminate = async |role: &str, process_id| {
        let role = RoleName::new(role);
        let backend = Backend {
            role,
            process_id,
            secret_key: 0,
        };
        database.control.terminate(backend).await
    };
    assert_eq!(
        terminate("control_other", process_id).await,
        TerminateOutcome::Gone
    );
    assert_eq!(
        terminate("control_stubborn", i32::MAX).await,
        TerminateOutcome::Gone
    );
    assert!(!sleep.is_finished(), "the number may be another backend's");
    assert_eq!(
        terminate("control_stubborn", process_id).await,
        TerminateOutcome::Requested
    );
    assert!(soon(sleep).await.unwrap().is_err());
    drop(soon(ended).await);
}

#[tokio::test]
async fn notifications_arrive_and_a_broken_listener_reports_when_it_is_back() {
    let database = TestDatabase::new("control_notices").await;
    let mut notifications = database.control.notifications();
    soon(async {
        // Listening may have started before this point.
        while !matches!(
            tokio::time::timeout(Duration::from_millis(50), notifications.recv()).await,
            Ok(Ok(Notification::Received(text))) if &*text == "probe"
        ) {
            database
                .beside
                .batch_execute("NOTIFY tidegate, 'probe'")
                .await
                .unwrap();
        }
    })
    .await;
    database
        .control("SELECT pg_notify('tidegate', 'users shop')::text")
        .await
        .unwrap();
    let next = async |notifications: &mut tokio::sync::broadcast::Receiver<Notification>| loop {
        match soon(notifications.recv()).await.unwrap() {
            Notification::Received(text) if &*text == "probe" => {}
            notice => return notice,
        }
    };
    assert_eq!(
        next(&mut notifications).await,
        Notification::Received("users shop".into())
    );
    let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
        WHERE datname = 'control_notices' AND query = 'LISTEN tidegate'";
    let killed = database.beside.query(kill, &[]).await.unwrap();
    assert_eq!(killed.len(), 1);
    assert_eq!(next(&mut notifications).await, Notification::Listening);
    database
        .beside
        .batch_execute("NOTIFY tidegate, 'again'")
        .await
        .unwrap();
    assert_eq!(
        next(&mut notifications).await,
        Notification::Received("again".into())
    );
}
