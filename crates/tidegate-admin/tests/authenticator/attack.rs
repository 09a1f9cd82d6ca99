//! Attacks on shared connections.

use super::fixture::{TenantFixture, node};

pub(super) const EVIL: &str = "CREATE TRIGGER evil BEFORE INSERT ON own FOR EACH STATEMENT \
    WHEN (set_config('role', 'shared_attack/bob', true) IS NULL) \
    EXECUTE FUNCTION suppress_redundant_updates_trigger()";

#[tokio::test]
async fn a_grant_counts_for_every_node_from_its_commit() {
    let tenant = TenantFixture::new("shared_window").await;
    let other = node(tenant.name);
    let (database, alice) = (tenant.database(), tenant.role("alice"));
    let shared = tenant.shared().await;
    for round in 0..20 {
        tenant.wait_until_sharing("alice", true).await;
        other.invalidate(&database);
        assert!(other.of(&database, &alice).await.is_some(), "{round}");
        // No node is notified of this statement, as when a user runs it with psql.
        tenant.run("GRANT TRIGGER ON own TO \"@mallory\"").await;
        // Both nodes still have an authenticator for alice, but the role switch is refused.
        assert!(other.of(&database, &alice).await.is_some());
        let refused = tenant.as_user(&shared, "alice", "SELECT 'in'").await;
        assert_eq!(refused.unwrap_err(), "22023", "{round}");
        other.invalidate(&database);
        tenant.node.invalidate(&database);
        // Both nodes decide at the same time.
        let (first, second) = tokio::join!(other.of(&database, &alice), tenant.of("alice"));
        assert_eq!((first, second), (None, None), "{round}");
        let refused = tenant.as_user(&shared, "alice", "SELECT 'in'").await;
        assert_eq!(refused.unwrap_err(), "22023", "{round}");
        tenant.run("REVOKE TRIGGER ON own FROM \"@mallory\"").await;
        tenant.node.invalidate(&database);
    }
}

#[tokio::test]
async fn a_decision_does_not_overtake_a_definition_that_is_not_committed() {
    let tenant = TenantFixture::new("shared_race").await;
    assert!(tenant.of("alice").await.is_some());
    let other = super::fixture::root(tenant.name).await;
    other
        .batch_execute("BEGIN; GRANT TRIGGER ON own TO \"shared_race/mallory\"")
        .await
        .unwrap();
    // Either node may decide in the meantime; neither waits for the grant to commit.
    tenant.run("COMMENT ON TABLE own IS 'x'").await;
    tenant.node.invalidate(&tenant.database());
    assert!(tenant.of("alice").await.is_some());
    let shared = tenant.shared().await;
    assert_eq!(
        tenant
            .as_user(&shared, "alice", "SELECT 'in'")
            .await
            .unwrap(),
        "in"
    );
    other.batch_execute("COMMIT").await.unwrap();
    let refused = tenant.as_user(&shared, "alice", "SELECT 'in'").await;
    assert_eq!(refused.unwrap_err(), "22023");
}

#[tokio::test]
async fn a_trigger_made_right_after_the_grant_never_runs_on_a_shared_connection() {
    let tenant = TenantFixture::new("shared_attack").await;
    assert!(tenant.of("alice").await.is_some());
    let shared = tenant.shared().await;
    let mallory = tenant.login("shared_attack/mallory").await;
    tenant.run("GRANT TRIGGER ON own TO \"@mallory\"").await;
    mallory.batch_execute(EVIL).await.unwrap();
    let insert = "INSERT INTO own VALUES (current_user, 'x') RETURNING current_user::text";
    let refused = tenant.as_user(&shared, "alice", insert).await;
    assert_eq!(refused.unwrap_err(), "22023");
    tenant.node.invalidate(&tenant.database());
    assert_eq!(tenant.of("alice").await, None);
}

#[tokio::test]
async fn an_authenticator_has_no_rights_of_its_own() {
    let tenant = TenantFixture::new("shared_rights").await;
    assert!(tenant.of("alice").await.is_some());
    let shared = tenant.shared().await;
    for sql in [
        "SELECT * FROM own",
        "INSERT INTO own VALUES ('x', 'y')",
        "CREATE TABLE mine ()",
        "CREATE TEMP TABLE mine ()",
        "CREATE SCHEMA mine",
        "CREATE ROLE mine",
        "SET ROLE shared_rights",
        "SET ROLE postgres",
        "SET SESSION AUTHORIZATION \"shared_rights/alice\"",
        "GRANT \"shared_rights/alice\" TO \"shared_rights/mallory\"",
        "INSERT INTO tidegate_catalog.objections VALUES ('1')",
        "DELETE FROM tidegate_catalog.objections",
        "TRUNCATE tidegate_catalog.objections",
        "DROP TABLE tidegate_catalog.objections",
        "CREATE TABLE tidegate_catalog.mine ()",
    ] {
        let error = shared.batch_execute(sql).await.expect_err(sql);
        assert!(
            matches!(error.code().unwrap().code(), "42501" | "22023"),
            "{sql}: {error}"
        );
    }
    let facts = "SELECT concat_ws(' ', rolcanlogin, rolinherit, rolsuper, rolcreatedb, rolcreaterole, \
                 rolreplication, rolbypassrls) FROM pg_roles WHERE rolname = '@$authenticator1'";
    assert_eq!(tenant.value(facts).await, "t f f f f f f");
    // Users can neither read nor write the stored decision.
    let mallory = tenant.login("shared_rights/mallory").await;
    for sql in [
        "SELECT * FROM tidegate_catalog.objections",
        "DELETE FROM tidegate_catalog.objections",
    ] {
        let error = mallory.batch_execute(sql).await.unwrap_err();
        assert_eq!(error.code().unwrap().code(), "42501", "{sql}");
    }
}

#[tokio::test]
async fn a_grant_to_an_authenticator_that_leads_to_the_owner_ends_sharing() {
    let tenant = TenantFixture::new("shared_path").await;
    for grant in [
        "GRANT shared_path TO \"@$authenticator1\"",
        "CREATE ROLE shared_path_via; GRANT shared_path TO shared_path_via; GRANT shared_path_via TO \"@$authenticator1\"",
        "CREATE ROLE shared_path_boss SUPERUSER; GRANT shared_path_boss TO \"@$authenticator1\"",
        "ALTER ROLE \"@$authenticator1\" BYPASSRLS",
    ] {
        tenant.wait_until_sharing("alice", true).await;
        tenant.run(grant).await;
        tenant.wait_until_sharing("alice", false).await;
        let (reason, remedy) = tenant.objection().await.unwrap();
        assert!(!remedy.is_empty(), "{reason}");
        tenant.run(&remedy).await;
    }
    tenant.wait_until_sharing("alice", true).await;
}

/// PostgreSQL lets no user of an authenticator be its member, because memberships form no circle.
#[tokio::test]
async fn a_member_of_an_authenticator_ends_sharing() {
    let tenant = TenantFixture::new("shared_member").await;
    tenant
        .run(
            "CREATE ROLE shared_member_out; CREATE ROLE \"shared_member_else/bob\"; \
             REVOKE \"@mallory\" FROM \"@$authenticator1\"",
        )
        .await;
    let shared = tenant.shared().await;
    for member in [
        "shared_member",
        "shared_member_out",
        "shared_member_else/bob",
        "shared_member/mallory",
    ] {
        tenant.wait_until_sharing("alice", true).await;
        let grant = format!("GRANT \"@$authenticator1\" TO \"{member}\"");
        tenant.run(&grant).await;
        tenant.wait_until_sharing("alice", false).await;
        let (reason, remedy) = tenant.objection().await.unwrap();
        let named = reason.contains(member) && reason.contains("is a member of the authenticator");
        assert!(named, "{reason}");
        let refused = tenant.as_user(&shared, "alice", "SELECT 'in'").await;
        assert_eq!(refused.unwrap_err(), "22023", "{member}");
        tenant.run(&remedy).await;
    }
    tenant.wait_until_sharing("alice", true).await;
    // A superuser can act as every user without a membership.
    tenant
        .run(
            "CREATE ROLE shared_member_root SUPERUSER; \
             GRANT \"@$authenticator1\" TO shared_member_root",
        )
        .await;
    let node = node(tenant.name);
    let alice = tenant.role("alice");
    assert!(node.of(&tenant.database(), &alice).await.is_some());
}

/// Statements with which a user or the owner tries to change an authenticator or to become it.
const ATTEMPTS: [&str; 12] = [
    "GRANT \"@$authenticator1\" TO shared_touched",
    "GRANT \"@$authenticator1\" TO shared_touched_out",
    "REVOKE \"@bob\" FROM \"@$authenticator1\"",
    "COMMENT ON ROLE \"@$authenticator1\" IS NULL",
    "ALTER ROLE \"@$authenticator1\" NOLOGIN",
    "ALTER ROLE \"@$authenticator1\" PASSWORD 'x'",
    "ALTER ROLE \"@$authenticator1\" SET role = 'shared_touched'",
    "ALTER ROLE \"@$authenticator1\" RENAME TO shared_touched_new",
    "REASSIGN OWNED BY \"@$authenticator1\" TO shared_touched",
    "DROP OWNED BY \"@$authenticator1\"",
    "DROP ROLE \"@$authenticator1\"",
    "SET ROLE \"@$authenticator1\"",
];

#[tokio::test]
async fn neither_users_nor_the_owner_change_or_become_an_authenticator() {
    let tenant = TenantFixture::new("shared_touched").await;
    tenant.run("CREATE ROLE shared_touched_out").await;
    for who in ["shared_touched/mallory", "shared_touched"] {
        let client = tenant.login(who).await;
        for attempt in ATTEMPTS {
            let sql = attempt.replace('@', "shared_touched/");
            let refused = client.batch_execute(&sql).await.expect_err(&sql);
            assert_eq!(refused.code().unwrap().code(), "42501", "{who}: {sql}");
        }
    }
    assert!(tenant.of("alice").await.is_some());
}

#[tokio::test]
async fn a_session_that_pretends_to_provision_is_not_believed() {
    let tenant = TenantFixture::new("shared_pretence").await;
    assert!(tenant.of("alice").await.is_some());
    let owner = tenant.login("shared_pretence").await;
    owner
        .batch_execute(
            "SET tidegate.provisioning = 'on'; GRANT TRIGGER ON own TO \"shared_pretence/mallory\"",
        )
        .await
        .unwrap();
    let shared = tenant.shared().await;
    let refused = tenant.as_user(&shared, "alice", "SELECT 'in'").await;
    assert_eq!(refused.unwrap_err(), "22023");
}
