//! Tests that a database notifies the service when a definition changes.

use std::sync::Arc;
use std::time::Duration;

use tidegate_embedded::Cluster;
use tidegate_service::{DdlNotification, ListenEnd, ServiceConnections};
use tidegate_sql::DatabaseName;
use tokio::sync::mpsc;
use tokio::time::timeout;

use tidegate_testkit::{config, connect, service_connections};

const TIMEOUT: Duration = Duration::from_secs(10);

fn cluster() -> &'static Cluster {
    tidegate_embedded::testing::cluster()
}

async fn database(name: &str) -> tokio_postgres::Client {
    let root = connect(&cluster().url("postgres")).await;
    root.batch_execute(&format!("create database {name}"))
        .await
        .unwrap();
    connect(&cluster().url(name)).await
}

fn control(url: &str) -> Arc<ServiceConnections> {
    Arc::new(service_connections(config(url, "postgres")))
}

/// Receives notifications until it is dropped.
fn receive(
    control: Arc<ServiceConnections>,
    name: &str,
) -> mpsc::UnboundedReceiver<DdlNotification> {
    let (sender, receiver) = mpsc::unbounded_channel();
    let database = DatabaseName::new(name);
    tokio::spawn(async move {
        let forward = |notification| {
            // The receiver is gone if the test has ended.
            let _ = sender.send(notification);
        };
        control.ddl_notifications(&database, forward).await
    });
    receiver
}

async fn next(receiver: &mut mpsc::UnboundedReceiver<DdlNotification>) -> Option<DdlNotification> {
    timeout(TIMEOUT, receiver.recv()).await.unwrap()
}

#[tokio::test]
async fn definitions_and_grants_of_all_roles_are_reported() {
    let admin = database("announced").await;
    let sql = "create role announced_owner login; grant create, temp on database announced to announced_owner; \
               create schema own authorization announced_owner; create table a (id int)";
    admin.batch_execute(sql).await.unwrap();
    let control = control(&cluster().admin_url());
    let mut first = receive(control.clone(), "announced");
    assert_eq!(next(&mut first).await, Some(DdlNotification::Listening));
    // A second node finds the trigger that the first one created.
    let mut second = receive(control, "announced");
    assert_eq!(next(&mut second).await, Some(DdlNotification::Listening));
    // The last two statements run with a `search_path` in which no built-in name would be found.
    admin
        .batch_execute(
            "create function own.pg_notify(text, text) returns void language sql as 'select 1/0'",
        )
        .await
        .unwrap();
    for receiver in [&mut first, &mut second] {
        assert_eq!(next(receiver).await, Some(DdlNotification::Changed));
    }
    for sql in [
        "alter table a add b int",
        "grant select on a to announced_owner",
        "revoke select on a from announced_owner",
        "comment on table a is 'x'",
        "alter table a enable row level security",
        "drop table a",
        "set role announced_owner; set search_path = own; create table t (id int)",
        "alter table t rename to u",
    ] {
        admin.batch_execute(sql).await.unwrap();
        assert_eq!(
            next(&mut first).await,
            Some(DdlNotification::Changed),
            "{sql}"
        );
    }
}

/// Creating a user grants privileges to a new role, which affects no other user.
#[tokio::test]
async fn only_what_a_superuser_provisions_is_not_announced() {
    let admin = database("announced_quiet").await;
    admin
        .batch_execute(
            "create role announced_quiet_owner; create role announced_quiet_user; \
             grant create on schema public to announced_quiet_owner",
        )
        .await
        .unwrap();
    let mut receiver = receive(control(&cluster().admin_url()), "announced_quiet");
    assert_eq!(next(&mut receiver).await, Some(DdlNotification::Listening));
    let grant = "grant usage on schema public to announced_quiet_user";
    admin
        .batch_execute(&format!(
            "begin; set local tidegate.provisioning = 'on'; {grant}; commit; \
             notify tidegate_catalog, 'behind'"
        ))
        .await
        .unwrap();
    // This is the notification that the test sent itself.
    assert_eq!(next(&mut receiver).await, Some(DdlNotification::Changed));
    assert!(receiver.try_recv().is_err());
    let sql = "set session authorization announced_quiet_owner; \
               set tidegate.provisioning = 'on'; create table public.own (id int)";
    admin.batch_execute(sql).await.unwrap();
    assert_eq!(next(&mut receiver).await, Some(DdlNotification::Changed));
}

#[tokio::test]
async fn a_dropped_trigger_is_not_made_again() {
    let admin = database("announced_gone").await;
    let mut receiver = receive(control(&cluster().admin_url()), "announced_gone");
    assert_eq!(next(&mut receiver).await, Some(DdlNotification::Listening));
    let sql = "drop schema tidegate_catalog cascade";
    admin.batch_execute(sql).await.unwrap();
    admin
        .batch_execute("create table b (id int)")
        .await
        .unwrap();
}

#[tokio::test]
async fn a_cluster_with_prepared_transactions_gets_no_trigger() {
    // PREPARE TRANSACTION refuses a transaction that has sent a notification.
    let settings = tidegate_embedded::testing::settings();
    let settings = settings.with("max_prepared_transactions", "2");
    let cluster = Cluster::start(settings).await.unwrap();
    let silence = control(&cluster.admin_url())
        .ddl_notifications(&DatabaseName::new("postgres"), |_| {
            panic!("nothing is receiver")
        })
        .await;
    assert_eq!(silence.unwrap(), ListenEnd::NoTrigger);
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn without_the_right_to_make_a_trigger_nothing_is_reported() {
    let admin = database("announced_poor").await;
    let sql = "create role announced_poor login createdb createrole password 'poor'; \
               alter database announced_poor owner to announced_poor";
    admin.batch_execute(sql).await.unwrap();
    let url = format!(
        "postgresql://announced_poor:poor@127.0.0.1:{}/postgres",
        cluster().port()
    );
    let silence = control(&url)
        .ddl_notifications(&DatabaseName::new("announced_poor"), |_| {
            panic!("nothing is receiver")
        })
        .await;
    assert_eq!(silence.unwrap(), ListenEnd::NoTrigger);
}

#[tokio::test]
async fn a_foreign_schema_gets_no_trigger() {
    let admin = database("announced_taken").await;
    let sql = "create role announced_thief; create schema tidegate_catalog authorization announced_thief; \
               set role announced_thief; \
               create function tidegate_catalog.announce() returns event_trigger language plpgsql as 'begin end'; \
               reset role";
    admin.batch_execute(sql).await.unwrap();
    let silence = control(&cluster().admin_url())
        .ddl_notifications(&DatabaseName::new("announced_taken"), |_| {
            panic!("nothing is receiver")
        })
        .await;
    assert_eq!(silence.unwrap(), ListenEnd::NoTrigger);
    let row = admin
        .query_one("select count(*) from pg_event_trigger", &[])
        .await;
    assert_eq!(row.unwrap().get::<_, i64>(0), 0);
}

#[tokio::test]
async fn default_privileges_give_no_right_on_our_schema() {
    let admin = database("announced_default").await;
    let sql = "create role announced_heir; \
               alter default privileges grant all on schemas to announced_heir with grant option; \
               alter default privileges grant all on functions to announced_heir with grant option";
    admin.batch_execute(sql).await.unwrap();
    let rights = async || {
        let sql = "select has_schema_privilege('announced_heir', 'tidegate_catalog', 'create'), \
                   has_schema_privilege('announced_heir', 'tidegate_catalog', 'usage'), \
                   n.nspacl::text || p.proacl::text like '%announced_heir%' \
                   from pg_namespace n join pg_proc p on p.pronamespace = n.oid \
                   where n.nspname = 'tidegate_catalog'";
        let row = admin.query_one(sql, &[]).await.unwrap();
        [0, 1, 2].map(|column| row.get::<_, bool>(column))
    };
    let mut receiver = receive(control(&cluster().admin_url()), "announced_default");
    assert_eq!(next(&mut receiver).await, Some(DdlNotification::Listening));
    assert_eq!(rights().await, [false; 3]);
    // The next use of the database repairs what an older release left.
    let sql = "grant all on schema tidegate_catalog to announced_heir with grant option";
    admin.batch_execute(sql).await.unwrap();
    assert_eq!(rights().await, [true; 3]);
    let mut receiver = receive(control(&cluster().admin_url()), "announced_default");
    assert_eq!(next(&mut receiver).await, Some(DdlNotification::Listening));
    assert_eq!(rights().await, [false; 3]);
}

/// The SQLSTATE of the notice that the session of a definition gets, if any.
async fn notice_sqlstate(url: &str, options: &str, sql: &str) -> Option<String> {
    let mut config: tokio_postgres::Config = url.parse().unwrap();
    config.options(options);
    let (client, mut connection) = config.connect(tokio_postgres::NoTls).await.unwrap();
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let drive = async move {
        let mut messages = std::pin::pin!(futures_util::stream::poll_fn(
            move |cx| connection.poll_message(cx)
        ));
        while let Some(Ok(message)) = futures_util::StreamExt::next(&mut messages).await {
            if let tokio_postgres::AsyncMessage::Notice(notice) = message {
                // The receiver is gone if the test has ended.
                let _ = sender.send(notice.code().code().to_owned());
            }
        }
    };
    tokio::spawn(drive);
    client.batch_execute(sql).await.unwrap();
    receiver.try_recv().ok()
}

#[tokio::test]
async fn only_sessions_of_the_service_are_notified_at_once() {
    let _admin = database("announced_here").await;
    let mut receiver = receive(control(&cluster().admin_url()), "announced_here");
    assert_eq!(next(&mut receiver).await, Some(DdlNotification::Listening));
    let url = cluster().url("announced_here");
    let ours = "-c tidegate.session=on -c client_min_messages=error";
    let receiver = notice_sqlstate(&url, ours, "create table ours (id int)").await;
    assert_eq!(receiver.as_deref(), Some("TGDEF"));
    for tells in ["grant select on ours to public", "drop table ours"] {
        let receiver = notice_sqlstate(&url, ours, tells).await;
        assert_eq!(receiver.as_deref(), Some("TGDEF"), "{tells}");
    }
    for silent in [
        "select 1",
        "create temp table own (id serial primary key)",
        "create temp table own as select 1 as id; create index on own (id); alter table own add a int",
        "select 1 as id into temp own",
    ] {
        assert_eq!(notice_sqlstate(&url, ours, silent).await, None, "{silent}");
    }
    assert_eq!(
        notice_sqlstate(&url, "", "create table theirs (id int)").await,
        None
    );
}

#[tokio::test]
async fn what_an_older_release_made_is_renewed() {
    let admin = database("announced_old").await;
    let mut receiver = receive(control(&cluster().admin_url()), "announced_old");
    assert_eq!(next(&mut receiver).await, Some(DdlNotification::Listening));
    let sql = "create or replace function tidegate_catalog.announce() returns event_trigger \
               language plpgsql as $$ begin perform pg_notify('tidegate_catalog', ''); end $$";
    admin.batch_execute(sql).await.unwrap();
    let mut receiver = receive(control(&cluster().admin_url()), "announced_old");
    assert_eq!(next(&mut receiver).await, Some(DdlNotification::Listening));
    let url = cluster().url("announced_old");
    let sql = "create table ours (id int)";
    let receiver = notice_sqlstate(&url, "-c tidegate.session=on", sql).await;
    assert_eq!(receiver.as_deref(), Some("TGDEF"));
}
