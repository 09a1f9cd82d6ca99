//! What the doctor finds about change events: the login that reads changes, and outboxes.

use tidegate_admin::doctor::{ChangeSource, Finding, Severity};
use tidegate_embedded::{Cluster, testing};
use tidegate_postgres::Connection;
use tidegate_wire::{Config, StartupParameters};

use super::fixture::{admin, database, record_tenant, root, service_admin};

#[tokio::test]
async fn the_login_that_reads_changes_is_tried_as_a_stream_uses_it() {
    // The test has a cluster of its own, whose WAL senders are all in use.
    let cluster = Cluster::start(testing::settings()).await.unwrap();
    let config = Config::from_url(&cluster.admin_url()).unwrap();
    let admin = admin(config.clone());
    assert_eq!(
        admin
            .why_no_changes(ChangeSource::Logical(&config))
            .await
            .unwrap(),
        None
    );
    let startup = StartupParameters {
        defaults: vec![("replication".to_owned(), "true".to_owned())],
        ..StartupParameters::default()
    };
    let (role, password) = (cluster.admin_user(), cluster.admin_password());
    let mut senders = Vec::new();
    while let Ok(sender) = Connection::open(&config, "", role, password, &startup).await {
        senders.push(sender);
        assert!(senders.len() < 100, "the cluster has no end of senders");
    }
    let why = admin
        .why_no_changes(ChangeSource::Logical(&config))
        .await
        .unwrap()
        .unwrap();
    assert!(why.contains("cannot log in to read changes"), "{why}");
    assert!(why.contains("max_wal_senders"), "{why}");
}

#[tokio::test]
async fn slots_and_senders_are_compared_with_what_the_nodes_need() {
    let cluster = Cluster::start(testing::settings()).await.unwrap();
    let mut config = Config::from_url(&cluster.admin_url()).unwrap();
    let mut few_nodes = config.clone();
    (config.nodes, few_nodes.nodes) = (100, 3);
    let root = tidegate_testkit::connect(&cluster.url("postgres")).await;
    // One slot of another program, and two databases with subscribers.
    let slots = "SELECT pg_create_physical_replication_slot('standby'); \
                 SELECT pg_create_physical_replication_slot('tidegate_1'); \
                 SELECT pg_create_physical_replication_slot('tidegate_2')";
    root.batch_execute(slots).await.unwrap();
    let about = async |config: &Config, feed| {
        let findings = admin(config.clone()).examine(feed).await.unwrap();
        let mut findings = findings.into_iter();
        ["replication slots for", "WAL senders for"].map(|what| {
            findings
                .find(|finding| finding.text.contains(what))
                .unwrap()
        })
    };
    let while_it_fails = about(&config, ChangeSource::LogicalOverBus(&config)).await;
    for (finding, number) in while_it_fails.iter().zip([202, 200]) {
        assert_eq!(finding.severity, Severity::Advice);
        let need = "100 node(s) with a bus need 2 for 2 database(s) with subscribers";
        let fails = format!("{need}, and {number} while the bus does not work");
        assert!(finding.text.contains(&fails), "{finding:?}");
    }
    for finding in about(&few_nodes, ChangeSource::LogicalOverBus(&few_nodes)).await {
        assert_eq!(finding.severity, Severity::Good, "{finding:?}");
    }
    let [slots, senders] = about(&config, ChangeSource::Logical(&config)).await;
    assert_eq!(slots.severity, Severity::Advice);
    assert!(slots.text.contains("need 202 for"), "{slots:?}");
    let set = "ALTER SYSTEM SET max_replication_slots = 203;";
    assert_eq!(slots.sql.as_deref(), Some(set));
    assert_eq!(senders.severity, Severity::Advice);
    assert!(senders.text.contains("need 200 for"), "{senders:?}");
}

#[tokio::test]
async fn outboxes_need_nothing_of_the_server() {
    let settings = testing::settings().with("wal_level", "minimal");
    let settings = settings.with("max_wal_senders", "0");
    let cluster = Cluster::start(settings).await.unwrap();
    let config = Config::from_url(&cluster.admin_url()).unwrap();
    let admin = admin(config.clone());
    assert_eq!(
        admin.why_no_changes(ChangeSource::Outbox).await.unwrap(),
        None
    );
    let findings = admin.examine(ChangeSource::Outbox).await.unwrap();
    let speaks = |word: &str| findings.iter().any(|finding| finding.text.contains(word));
    assert!(speaks("outboxes") && !speaks("wal_level") && !speaks("slots"));
    let logical = ChangeSource::Logical(&config);
    let why = admin.why_no_changes(logical).await.unwrap().unwrap();
    assert!(why.contains("wal_level"), "{why}");
}

#[tokio::test]
async fn the_grants_for_the_position_of_an_outbox_are_printed() {
    let mut config = service_admin("svc_place").await;
    let service = admin(config.clone());
    service.create_tenant(&database("place")).await.unwrap();
    record_tenant("place_control", "place", None).await;
    config.control_database = database("place_control");
    let admin = admin(config);
    let inside = root("place").await;
    let revoke = "REVOKE EXECUTE ON FUNCTION pg_walfile_name(pg_lsn) FROM PUBLIC";
    inside.batch_execute(revoke).await.unwrap();
    let of_outbox = async || {
        let findings = admin.examine_tenants(ChangeSource::Outbox).await.unwrap();
        let mut findings = findings.into_iter();
        let is_about_it = |finding: &Finding| finding.text.contains("database place can have");
        findings.find(is_about_it).unwrap()
    };
    let found = of_outbox().await;
    assert_eq!(found.severity, Severity::Advice);
    let sql = found.sql.unwrap();
    // The first line is a `\connect` command.
    let grant = sql.split_once('\n').unwrap().1;
    inside.batch_execute(grant).await.unwrap();
    assert_eq!(of_outbox().await.severity, Severity::Good);
}
