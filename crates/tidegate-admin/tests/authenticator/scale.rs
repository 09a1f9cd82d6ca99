//! Tests a tenant with thousands of users. It has a cluster of its own, because other tests would
//! have to wait for changes of its roles.

use std::sync::Arc;

use tidegate_admin::Admin;
use tidegate_embedded::{Cluster, testing};
use tidegate_postgres::Authenticators;
use tidegate_sql::{DatabaseName, RoleName};
use tidegate_testkit::{config, database_on, service_connections};
use tidegate_wire::Config;
use tokio_postgres::Client;

use crate::admin::fixture::{RECORDS, passwords};

/// Creates what 6,000 sign-ups would create, which would take minutes. The last users are like
/// those of an older release.
const SIGN_UPS: &str = "DO $$ DECLARE users text; BEGIN \
    FOR i IN 1..6000 LOOP \
        EXECUTE format('CREATE ROLE \"large/u%s\" LOGIN; \
                        COMMENT ON ROLE \"large/u%1$s\" IS ''made by Tidegate''', i); \
    END LOOP; \
    SELECT string_agg(format('\"large/u%s\"', i), ', ') INTO users FROM generate_series(1, 5000) i; \
    EXECUTE 'GRANT \"large/$users\" TO ' || users; \
    SELECT string_agg(format('\"large/u%s\"', i), ', ') INTO users FROM generate_series(5001, 6000) i; \
    EXECUTE 'GRANT CONNECT ON DATABASE large TO ' || users; \
    EXECUTE 'GRANT USAGE ON SCHEMA public TO ' || users; \
    END $$";

async fn connect(cluster: &Cluster, database: &str) -> Client {
    tidegate_testkit::connect(&cluster.url(database)).await
}

/// Creates a control database that records a tenant. Returns a connection to it, and the
/// configuration of its administrator.
async fn record_tenant(cluster: &Cluster, tenant: &str) -> (Client, Config) {
    let control = database_on(cluster, "control", RECORDS).await;
    let insert = "INSERT INTO tidegate.tenants VALUES ($1, $1, false)";
    control.execute(insert, &[&tenant]).await.unwrap();
    (control, config(&cluster.admin_url(), "control"))
}

/// This test fails if a query compares each user with each other, because that exceeds the
/// statement timeout.
#[tokio::test]
async fn thousands_of_users_share_connections() {
    let cluster = Cluster::start(testing::settings()).await.unwrap();
    let (_, config) = record_tenant(&cluster, "large").await;
    let admin = Admin::new(config.clone(), passwords());
    let (database, owner) = (DatabaseName::new("large"), RoleName::new("large"));
    admin.create_tenant(&database).await.unwrap();
    let large = connect(&cluster, "large").await;
    large.batch_execute(SIGN_UPS).await.unwrap();
    let provided = admin.provide_roles(&database, &owner, &[]);
    provided.await.unwrap();

    let node = Authenticators::new(Arc::new(service_connections(config)));
    for user in ["large/u1", "large/u6000"] {
        let authenticator = node.of(&database, &RoleName::new(user)).await;
        assert!(authenticator.is_some(), "{user}: {:?}", node.decisions());
    }
}

/// A cluster of its own with a tenant `small`, whose users are alice and bob.
async fn small() -> (Cluster, Client, Authenticators) {
    let cluster = Cluster::start(testing::settings()).await.unwrap();
    let (control, config) = record_tenant(&cluster, "small").await;
    let admin = Admin::new(config.clone(), passwords());
    let database = DatabaseName::new("small");
    admin.create_tenant(&database).await.unwrap();
    for user in ["small/alice", "small/bob"] {
        let made = admin.create_user(&database, &RoleName::new(user)).await;
        made.unwrap();
    }
    let node = service_connections(config);
    (cluster, control, Authenticators::new(Arc::new(node)))
}

/// Refreshes the node. Returns whether a user then shares connections.
async fn shares(node: &Authenticators, user: &str) -> bool {
    node.refresh().await.unwrap();
    let role = RoleName::new(format!("small/{user}"));
    node.of(&DatabaseName::new("small"), &role).await.is_some()
}

/// Creates a user as a sign-up does.
const SIGN_UP: &str = "CREATE ROLE \"small/carol\" LOGIN; \
    GRANT \"small/$users\" TO \"small/carol\"; GRANT \"small/carol\" TO \"small/$authenticator1\"";

#[tokio::test]
async fn a_new_user_is_added_without_another_decision() {
    let (cluster, control, node) = small().await;
    assert!(shares(&node, "alice").await);
    assert!(!shares(&node, "carol").await);
    // Without this table every decision fails.
    let hide = "ALTER TABLE tidegate.tenants RENAME TO hidden";
    control.batch_execute(hide).await.unwrap();
    control
        .batch_execute(&format!(
            "BEGIN; {SIGN_UP}; CREATE ROLE \"small/dave\" LOGIN VALID UNTIL '2001-01-01'; \
             GRANT \"small/$users\" TO \"small/dave\"; \
             GRANT \"small/dave\" TO \"small/$authenticator1\"; COMMIT"
        ))
        .await
        .unwrap();
    assert!(shares(&node, "carol").await);
    assert!(shares(&node, "alice").await);
    // PostgreSQL would refuse this user's login.
    assert!(!shares(&node, "dave").await);
    // Each of these changes requires a new decision, which cannot be made.
    control
        .batch_execute("ALTER ROLE \"small/carol\" NOLOGIN")
        .await
        .unwrap();
    assert!(!shares(&node, "alice").await);
    drop(control);
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn what_is_no_plain_new_user_is_decided() {
    let (cluster, control, node) = small().await;
    control
        .batch_execute(
            "CREATE ROLE team; CREATE ROLE \"small/old\"; GRANT \"small/old\" TO \"small/bob\"",
        )
        .await
        .unwrap();
    for (number, (change, end)) in [
        ("ALTER ROLE \"small/new\" CREATEROLE", ""),
        // Roles that no other user is a member of may own anything.
        ("GRANT team TO \"small/new\"", ""),
        ("GRANT \"small/new\" TO \"small/bob\"", ""),
        (
            "CREATE ROLE \"small/$authenticator9\"",
            "DROP ROLE \"small/$authenticator9\"",
        ),
        ("ALTER ROLE \"small/new\" SET work_mem = '1MB'", ""),
        (
            "GRANT team TO \"small/bob\"",
            "REVOKE team FROM \"small/bob\"",
        ),
        (
            "REVOKE \"small/old\" FROM \"small/bob\"",
            "GRANT \"small/old\" TO \"small/bob\"",
        ),
        ("ALTER DATABASE small CONNECTION LIMIT 90", ""),
        ("CREATE ROLE \"elsewhere\"", "DROP ROLE \"elsewhere\""),
    ]
    .into_iter()
    .enumerate()
    {
        assert!(shares(&node, "alice").await, "{number}");
        let hide = "ALTER TABLE tidegate.tenants RENAME TO hidden";
        control.batch_execute(hide).await.unwrap();
        let sign_up = SIGN_UP.replace("carol", "new");
        let changed = format!("BEGIN; {sign_up}; {change}; COMMIT");
        control.batch_execute(&changed).await.unwrap();
        assert!(!shares(&node, "alice").await, "{change}");
        let show = format!(
            "ALTER TABLE tidegate.hidden RENAME TO tenants; DROP ROLE \"small/new\"; {end}"
        );
        control.batch_execute(&show).await.unwrap();
    }
    drop(control);
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_user_that_is_gone_or_was_undone_shares_nothing() {
    let (cluster, control, node) = small().await;
    assert!(shares(&node, "alice").await);
    control.batch_execute(SIGN_UP).await.unwrap();
    assert!(shares(&node, "carol").await);
    // While a transaction stays open, every refresh reads the same rows.
    let open = connect(&cluster, "control").await;
    open.batch_execute("BEGIN; SELECT pg_current_xact_id()")
        .await
        .unwrap();
    for user in ["erin", "frank"] {
        let sign_up = SIGN_UP.replace("carol", user);
        control.batch_execute(&sign_up).await.unwrap();
        assert!(shares(&node, user).await, "{user}");
    }
    // One user is dropped while another is created.
    let sign_up = SIGN_UP.replace("carol", "grace");
    let changed =
        format!("BEGIN; REVOKE \"small/erin\" FROM \"small/$authenticator1\"; {sign_up}; COMMIT");
    control.batch_execute(&changed).await.unwrap();
    assert!(shares(&node, "grace").await);
    assert!(!shares(&node, "erin").await);
    assert!(shares(&node, "frank").await);
    drop((control, open));
    cluster.stop().await.unwrap();
}
