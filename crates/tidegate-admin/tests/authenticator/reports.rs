//! Tests what a node reports about authenticators that cannot be used.

use super::fixture::{TenantFixture, root};

/// Each row has SQL that makes an authenticator unusable, and SQL that makes it usable again.
const HARMS: [(&str, &str); 17] = [
    (
        "ALTER ROLE \"@$authenticator1\" NOLOGIN",
        "ALTER ROLE \"@$authenticator1\" LOGIN",
    ),
    (
        "ALTER ROLE \"@$authenticator1\" INHERIT",
        "ALTER ROLE \"@$authenticator1\" NOINHERIT",
    ),
    (
        "ALTER ROLE \"@$authenticator1\" SUPERUSER",
        "ALTER ROLE \"@$authenticator1\" NOSUPERUSER",
    ),
    (
        "ALTER ROLE \"@$authenticator1\" CREATEROLE",
        "ALTER ROLE \"@$authenticator1\" NOCREATEROLE",
    ),
    (
        "ALTER ROLE \"@$authenticator1\" CREATEDB",
        "ALTER ROLE \"@$authenticator1\" NOCREATEDB",
    ),
    (
        "ALTER ROLE \"@$authenticator1\" REPLICATION",
        "ALTER ROLE \"@$authenticator1\" NOREPLICATION",
    ),
    (
        "ALTER ROLE \"@$authenticator1\" BYPASSRLS",
        "ALTER ROLE \"@$authenticator1\" NOBYPASSRLS",
    ),
    (
        "GRANT SELECT ON own TO \"@$authenticator1\"",
        "REVOKE SELECT ON own FROM \"@$authenticator1\"",
    ),
    (
        "GRANT CREATE ON SCHEMA public TO \"@$authenticator1\"",
        "REVOKE CREATE ON SCHEMA public FROM \"@$authenticator1\"",
    ),
    (
        "GRANT pg_monitor TO \"@$authenticator1\"",
        "REVOKE pg_monitor FROM \"@$authenticator1\"",
    ),
    (
        "ALTER ROLE \"@$authenticator1\" CONNECTION LIMIT 0",
        "ALTER ROLE \"@$authenticator1\" CONNECTION LIMIT -1",
    ),
    (
        "ALTER ROLE \"@$authenticator1\" VALID UNTIL '2001-01-01'",
        "ALTER ROLE \"@$authenticator1\" VALID UNTIL 'infinity'",
    ),
    (
        "ALTER ROLE \"@$authenticator1\" SET work_mem = '1MB'",
        "ALTER ROLE \"@$authenticator1\" RESET ALL",
    ),
    (
        "REVOKE CONNECT ON DATABASE shared_reports FROM \"@$authenticator1\"",
        "GRANT CONNECT ON DATABASE shared_reports TO \"@$authenticator1\"",
    ),
    (
        "REVOKE USAGE ON SCHEMA tidegate_catalog FROM \"@$authenticator1\"",
        "GRANT USAGE ON SCHEMA tidegate_catalog TO \"@$authenticator1\"",
    ),
    (
        "REVOKE SELECT ON tidegate_catalog.objections FROM \"@$authenticator1\"",
        "GRANT SELECT ON tidegate_catalog.objections TO \"@$authenticator1\"",
    ),
    (
        "ALTER ROLE \"@$authenticator1\" RENAME TO shared_reports_gone",
        "ALTER ROLE shared_reports_gone RENAME TO \"@$authenticator1\"",
    ),
];

/// Why not all users share connections, as far as the node knows.
async fn reasons(tenant: &TenantFixture) -> Vec<String> {
    tenant.node.refresh().await.unwrap();
    tenant.node.invalidate(&tenant.database());
    tenant.of("alice").await;
    let decisions = tenant.node.decisions();
    let reasons = decisions[0].objections.iter();
    reasons.map(|objection| objection.reason.clone()).collect()
}

#[tokio::test]
async fn a_node_reports_an_authenticator_that_cannot_be_used() {
    let tenant = TenantFixture::new("shared_reports").await;
    for (harm, mend) in HARMS {
        assert_eq!(reasons(&tenant).await, [""; 0], "before {harm}");
        assert!(tenant.of("alice").await.is_some(), "before {harm}");
        tenant.run(harm).await;
        let found = reasons(&tenant).await;
        assert!(
            found.iter().any(|reason| reason.contains("authenticator")),
            "{harm}: {found:?}"
        );
        assert_eq!(tenant.of("alice").await, None, "{harm}");
        tenant.run(mend).await;
    }
    assert_eq!(reasons(&tenant).await, [""; 0]);
    assert!(tenant.of("alice").await.is_some());
}

#[tokio::test]
async fn a_refused_login_is_reported_until_the_role_is_changed() {
    let tenant = TenantFixture::new("shared_refused").await;
    let authenticator = tenant.of("alice").await.unwrap();
    assert_eq!(reasons(&tenant).await, [""; 0]);
    let database = tenant.database();
    tenant.node.login_refused(&database, &authenticator);
    let found = tenant.node.decisions();
    let reason = &found[0].objections[0].reason;
    assert!(reason.contains("refuses the login"), "{found:?}");
    tenant
        .run("ALTER ROLE \"@$authenticator1\" PASSWORD NULL")
        .await;
    assert_eq!(reasons(&tenant).await, [""; 0]);
}

#[tokio::test]
async fn a_dropped_authenticator_is_reported_and_made_again() {
    let tenant = TenantFixture::new("shared_dropped").await;
    assert_eq!(reasons(&tenant).await, [""; 0]);
    tenant
        .run("DROP OWNED BY \"@$authenticator1\"; DROP ROLE \"@$authenticator1\"")
        .await;
    let found = reasons(&tenant).await;
    assert!(
        found.iter().any(|reason| reason.contains("is missing")),
        "{found:?}"
    );
    let owner = tidegate_sql::RoleName::new(tenant.name);
    let provided = tenant
        .admin
        .provide_roles(&tenant.database(), &owner, &[])
        .await;
    provided.unwrap();
    tenant.wait_until_sharing("alice", true).await;
    assert_eq!(reasons(&tenant).await, [""; 0]);
}

/// A node may know a thousand tenants, and the change of a role without a tenant concerns them all.
#[tokio::test]
async fn a_tenant_that_is_not_used_decides_again_at_its_next_use() {
    let tenant = TenantFixture::new("shared_idle").await;
    assert_eq!(reasons(&tenant).await, [""; 0]);
    tenant.node.refresh().await.unwrap();
    // Without this table every decision fails.
    let control = root("shared_idle_control").await;
    let hide = "ALTER TABLE tidegate.tenants RENAME TO hidden";
    control.batch_execute(hide).await.unwrap();
    tenant.run("ALTER ROLE \"@alice\" NOLOGIN").await;
    tenant.node.refresh().await.unwrap();
    assert_eq!(tenant.node.decisions()[0].objections, []);
    let show = "ALTER TABLE tidegate.hidden RENAME TO tenants";
    control.batch_execute(show).await.unwrap();
    assert_eq!(tenant.of("alice").await, None);
    assert!(tenant.of("bob").await.is_some());
}
