//! Tests when users may share connections.

use super::fixture::{TenantFixture, node};

#[tokio::test]
async fn users_share_the_connections_of_an_authenticator() {
    let tenant = TenantFixture::new("shared_by_all").await;
    let authenticator = Some("shared_by_all/$authenticator1".to_owned());
    for user in ["alice", "bob", "mallory"] {
        assert_eq!(
            tenant.of(user).await.map(|role| role.to_string()),
            authenticator,
            "{user}"
        );
    }
    let shared = tenant.shared().await;
    for user in ["alice", "bob"] {
        let insert =
            format!("INSERT INTO own VALUES (current_user, '{user}') RETURNING current_user::text");
        let role = tenant.as_user(&shared, user, &insert).await;
        assert_eq!(role.unwrap(), tenant.role(user).to_string());
        let seen = "SELECT string_agg(what, ' ') FROM own";
        assert_eq!(tenant.as_user(&shared, user, seen).await.unwrap(), user);
    }
}

#[tokio::test]
async fn the_owner_and_anonymous_callers_have_no_authenticator() {
    let tenant = TenantFixture::new("shared_not_by_all").await;
    assert!(tenant.of("alice").await.is_some());
    let database = tenant.database();
    for role in [
        "shared_not_by_all",
        "postgres",
        "shared_by_all/alice",
        "shared_not_by_all/nobody",
    ] {
        let role = tidegate_sql::RoleName::new(role);
        assert_eq!(tenant.node.of(&database, &role).await, None, "{role}");
    }
}

/// Each of these grants lets a user place code that other users' statements reach.
const GRANTS: [(&str, &str); 17] = [
    ("CREATE SCHEMA s AUTHORIZATION \"@mallory\"", "owns"),
    (
        "CREATE TABLE t (); ALTER TABLE t OWNER TO \"@mallory\"",
        "owns",
    ),
    (
        "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'; ALTER FUNCTION f() OWNER TO \"@mallory\"",
        "owns",
    ),
    (
        "CREATE DOMAIN d AS int; ALTER DOMAIN d OWNER TO \"@mallory\"",
        "owns",
    ),
    (
        "GRANT CREATE ON SCHEMA public TO \"@mallory\"",
        "schema public",
    ),
    ("GRANT CREATE ON SCHEMA public TO PUBLIC", "schema public"),
    ("GRANT CREATE ON DATABASE % TO \"@mallory\"", "schemas"),
    ("GRANT CREATE ON DATABASE % TO PUBLIC", "schemas"),
    (
        "GRANT TRIGGER ON own TO \"@mallory\"",
        "triggers on public.own",
    ),
    ("GRANT ALL ON own TO PUBLIC", "triggers on public.own"),
    (
        "CREATE TRIGGER w BEFORE UPDATE ON own FOR EACH ROW \
         WHEN (set_config('role', 'postgres', true) IS NULL) \
         EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        "trigger w on table",
    ),
    (
        "CREATE ROLE \"%_grp\"; GRANT \"%_grp\" TO \"@mallory\"; GRANT TRIGGER ON own TO \"%_grp\"",
        "triggers on public.own",
    ),
    (
        "CREATE ROLE \"%_in\"; CREATE ROLE \"%_out\"; GRANT \"%_out\" TO \"%_in\"; GRANT \"%_in\" TO \"@mallory\"; GRANT CREATE ON SCHEMA public TO \"%_out\"",
        "schema public",
    ),
    ("ALTER ROLE \"@mallory\" CREATEROLE", "CREATEROLE"),
    ("ALTER ROLE \"@mallory\" BYPASSRLS", "BYPASSRLS"),
    (
        "GRANT pg_write_server_files TO \"@mallory\"",
        "pg_write_server_files",
    ),
    ("GRANT \"%\" TO \"@mallory\"", "owner"),
];

#[tokio::test]
async fn a_user_who_could_place_code_ends_sharing_and_the_remedy_restores_it() {
    let tenant = TenantFixture::new("shared_trust").await;
    let shared = tenant.shared().await;
    for (grant, reason) in GRANTS {
        tenant.wait_until_sharing("alice", true).await;
        let grant = grant.replace('%', tenant.name);
        tenant.run(&grant).await;
        tenant.wait_until_sharing("alice", false).await;
        let (found, remedy) = tenant.objection().await.unwrap();
        assert!(found.contains(reason), "{grant}: {found}");
        let refused = tenant.as_user(&shared, "alice", "SELECT 'in'").await;
        assert_eq!(refused.unwrap_err(), "22023", "{grant}");
        tenant
            .run(remedy.trim_start_matches("-- once you have read it: "))
            .await;
    }
    tenant.wait_until_sharing("alice", true).await;
    assert_eq!(
        tenant
            .as_user(&shared, "alice", "SELECT 'in'")
            .await
            .unwrap(),
        "in"
    );
}

#[tokio::test]
async fn roles_that_no_caller_reaches_may_own_code() {
    let tenant = TenantFixture::new("shared_app").await;
    tenant
        .run(
            "CREATE ROLE shared_app_owner; CREATE SCHEMA app AUTHORIZATION shared_app_owner; \
             SET ROLE shared_app_owner; CREATE FUNCTION app.f() RETURNS int LANGUAGE sql AS 'SELECT 1'; \
             RESET ROLE; GRANT USAGE ON SCHEMA app TO \"@mallory\"",
        )
        .await;
    tenant.wait_until_sharing("alice", true).await;
}

#[tokio::test]
async fn temporary_tables_of_users_change_nothing() {
    let tenant = TenantFixture::new("shared_temp").await;
    tenant
        .run("GRANT TEMPORARY ON DATABASE shared_temp TO \"@mallory\"")
        .await;
    let mallory = tenant.login("shared_temp/mallory").await;
    tenant.wait_until_sharing("alice", true).await;
    let shared = tenant.shared().await;
    mallory
        .batch_execute("CREATE TEMP TABLE scratch (id int)")
        .await
        .unwrap();
    assert_eq!(
        tenant
            .as_user(&shared, "alice", "SELECT 'in'")
            .await
            .unwrap(),
        "in"
    );
    tenant.run("COMMENT ON TABLE own IS 'x'").await;
    tenant.wait_until_sharing("alice", true).await;
}

#[tokio::test]
async fn without_its_event_trigger_a_database_is_not_trusted() {
    let tenant = TenantFixture::new("shared_deaf").await;
    for (harm, mend) in [
        (
            "ALTER EVENT TRIGGER tidegate_catalog DISABLE",
            "ALTER EVENT TRIGGER tidegate_catalog ENABLE ALWAYS",
        ),
        (
            "ALTER EVENT TRIGGER tidegate_catalog ENABLE REPLICA",
            "ALTER EVENT TRIGGER tidegate_catalog ENABLE ALWAYS",
        ),
        (
            "ALTER EVENT TRIGGER tidegate_catalog ENABLE",
            "ALTER EVENT TRIGGER tidegate_catalog ENABLE ALWAYS",
        ),
    ] {
        tenant.wait_until_sharing("alice", true).await;
        tenant.run(harm).await;
        // A node decides again when it starts; a running node does not notice the change.
        let other = node(tenant.name);
        assert_eq!(
            other.of(&tenant.database(), &tenant.role("alice")).await,
            None,
            "{harm}"
        );
        tenant.run(mend).await;
        tenant.node.invalidate(&tenant.database());
    }
}

#[tokio::test]
async fn users_whom_postgresql_treats_apart_log_in_themselves() {
    let tenant = TenantFixture::new("shared_apart").await;
    for (apart, back) in [
        ("ALTER ROLE \"@bob\" NOLOGIN", "ALTER ROLE \"@bob\" LOGIN"),
        (
            "ALTER ROLE \"@bob\" VALID UNTIL '2001-01-01'",
            "ALTER ROLE \"@bob\" VALID UNTIL 'infinity'",
        ),
        (
            "ALTER ROLE \"@bob\" SET work_mem = '1MB'",
            "ALTER ROLE \"@bob\" RESET work_mem",
        ),
        (
            "ALTER ROLE \"@bob\" IN DATABASE shared_apart SET work_mem = '1MB'",
            "ALTER ROLE \"@bob\" IN DATABASE shared_apart RESET work_mem",
        ),
        (
            "REVOKE \"@$users\" FROM \"@bob\"",
            "GRANT \"@$users\" TO \"@bob\"",
        ),
        (
            "ALTER ROLE \"@bob\" NOINHERIT; REVOKE \"@$users\" FROM \"@bob\"; \
             GRANT \"@$users\" TO \"@bob\"",
            "ALTER ROLE \"@bob\" INHERIT; REVOKE \"@$users\" FROM \"@bob\"; \
             GRANT \"@$users\" TO \"@bob\"",
        ),
        (
            "REVOKE \"@$users\" FROM \"@bob\"",
            "GRANT CONNECT ON DATABASE shared_apart TO \"@bob\"",
        ),
        (
            "REVOKE \"@bob\" FROM \"@$authenticator1\"",
            "GRANT \"@bob\" TO \"@$authenticator1\"",
        ),
        (
            "ALTER ROLE \"@bob\" CREATEDB",
            "ALTER ROLE \"@bob\" NOCREATEDB",
        ),
        (
            "ALTER ROLE \"@bob\" RENAME TO bobby_apart",
            "ALTER ROLE bobby_apart RENAME TO \"@bob\"",
        ),
    ] {
        tenant.wait_until_sharing("bob", true).await;
        tenant.run(apart).await;
        tenant.wait_until_sharing("bob", false).await;
        assert!(tenant.of("alice").await.is_some(), "{apart}");
        tenant.run(back).await;
    }
    tenant.wait_until_sharing("bob", true).await;
}

#[tokio::test]
async fn a_login_that_ends_soon_ends_without_a_question() {
    let tenant = TenantFixture::new("shared_until").await;
    tenant.run("DO $$ BEGIN EXECUTE format('ALTER ROLE \"@bob\" VALID UNTIL %L', now() + interval '1.5 s'); END $$").await;
    assert!(tenant.of("bob").await.is_some());
    let ended = async {
        while tenant.of("bob").await.is_some() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), ended)
        .await
        .unwrap();
    assert!(tenant.of("alice").await.is_some());
}

/// PostgreSQL checks USAGE on a schema during parsing, and statements stay prepared for all users.
#[tokio::test]
async fn users_who_may_not_use_the_schema_of_a_table_log_in_themselves() {
    let tenant = TenantFixture::new("shared_usage").await;
    tenant
        .run(
            "CREATE SCHEMA s; CREATE TABLE s.t (id int, a int); CREATE ROLE shared_usage_group; \
             GRANT USAGE ON SCHEMA s TO \"@alice\", shared_usage_group; \
             GRANT SELECT ON s.t TO \"@alice\", shared_usage_group",
        )
        .await;
    for (apart, back) in [
        (
            "GRANT SELECT ON s.t TO \"@bob\"",
            "GRANT USAGE ON SCHEMA s TO \"@bob\"",
        ),
        (
            "REVOKE USAGE ON SCHEMA s FROM \"@bob\"",
            "REVOKE SELECT ON s.t FROM \"@bob\"",
        ),
        (
            "GRANT UPDATE (a) ON s.t TO \"@bob\"",
            "GRANT shared_usage_group TO \"@bob\"",
        ),
        (
            "REVOKE USAGE ON SCHEMA s FROM shared_usage_group",
            "REVOKE SELECT ON s.t FROM shared_usage_group; REVOKE UPDATE (a) ON s.t FROM \"@bob\"",
        ),
        (
            "GRANT INSERT ON s.t TO PUBLIC",
            "GRANT USAGE ON SCHEMA s TO PUBLIC",
        ),
    ] {
        tenant.wait_until_sharing("bob", true).await;
        tenant.run(apart).await;
        tenant.wait_until_sharing("bob", false).await;
        assert!(tenant.of("alice").await.is_some(), "{apart}");
        tenant.run(back).await;
    }
    tenant.wait_until_sharing("bob", true).await;
}

/// A grant or revocation that a user makes is no objection, but it decides which users need a login
/// connection.
#[tokio::test]
async fn grants_of_a_user_decide_who_needs_a_login_connection() {
    let tenant = TenantFixture::new("shared_passed").await;
    tenant
        .run(
            "CREATE SCHEMA s; CREATE TABLE s.t (id int); \
             GRANT USAGE ON SCHEMA s TO \"@mallory\" WITH GRANT OPTION; \
             GRANT SELECT ON s.t TO \"@mallory\" WITH GRANT OPTION",
        )
        .await;
    let mallory = tenant.login("shared_passed/mallory").await;
    tenant.wait_until_sharing("bob", true).await;
    for (sql, shares) in [
        ("GRANT SELECT ON s.t TO \"shared_passed/bob\"", false),
        ("GRANT USAGE ON SCHEMA s TO \"shared_passed/bob\"", true),
        ("REVOKE USAGE ON SCHEMA s FROM \"shared_passed/bob\"", false),
    ] {
        mallory.batch_execute(sql).await.unwrap();
        tenant.wait_until_sharing("bob", shares).await;
        assert!(tenant.of("alice").await.is_some(), "{sql}");
    }
}
