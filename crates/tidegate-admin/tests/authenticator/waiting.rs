//! Tests definitions that a user makes while role switches and decisions run.

use std::time::Duration;

use tokio_postgres::Client;

use super::attack::EVIL;
use super::fixture::TenantFixture;

const INSERT: &str = "INSERT INTO own VALUES (current_user, 'x') RETURNING current_user::text";

fn code(error: &tokio_postgres::Error) -> String {
    error
        .code()
        .map_or_else(|| error.to_string(), |code| code.code().to_owned())
}

async fn refusal(client: &Client, sql: &str) -> String {
    let done = tokio::time::timeout(Duration::from_secs(20), client.batch_execute(sql)).await;
    code(&done.expect(sql).expect_err(sql))
}

/// Waits until a statement with this text waits for a lock.
async fn wait_for_lock(tenant: &TenantFixture, text: &str) {
    let query = format!(
        "SELECT count(*)::text FROM pg_stat_activity WHERE datname = current_database() \
         AND wait_event_type = 'Lock' AND query LIKE '{text}%'"
    );
    let waiting = async { while tenant.value(&query).await == "0" {} };
    tokio::time::timeout(Duration::from_secs(20), waiting)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_statement_that_waits_for_a_lock_never_runs_what_its_holder_defines() {
    let tenant = TenantFixture::new("waiting_lock").await;
    let evil = EVIL.replace("shared_attack", tenant.name);
    assert!(tenant.of("alice").await.is_some());
    let mallory = tenant.login("waiting_lock/mallory").await;
    let shared = tenant.shared().await;
    mallory
        .batch_execute("BEGIN; LOCK TABLE own IN ACCESS EXCLUSIVE MODE")
        .await
        .unwrap();
    let insert = tenant.as_user(&shared, "alice", INSERT);
    let attack = async {
        wait_for_lock(&tenant, "INSERT INTO own").await;
        // From PostgreSQL 18 on a GRANT locks the table, so the attack ends here.
        let grant = "GRANT TRIGGER ON own TO \"waiting_lock/mallory\"";
        let granted = format!("SET lock_timeout = '1s'; {grant}");
        let granted = tenant.root.batch_execute(&granted).await;
        let defined = match granted {
            Ok(()) => mallory.batch_execute(&evil).await,
            refused => refused,
        };
        mallory.batch_execute("ROLLBACK").await.unwrap();
        tenant.run(&format!("RESET lock_timeout; {grant}")).await;
        defined
    };
    // If the two sessions wait for each other, PostgreSQL chooses which one fails.
    match tokio::join!(insert, attack) {
        (Ok(role), Err(refused)) => {
            assert!(matches!(&*code(&refused), "55P03" | "40P01"), "{refused}");
            assert_eq!(role, tenant.role("alice").as_str());
        }
        (inserted, _) => assert_eq!(inserted.unwrap_err(), "40P01"),
    }
    // No role switch is in progress any more, so the definition succeeds.
    mallory.batch_execute(&evil).await.unwrap();
    let refused = tenant.as_user(&shared, "alice", INSERT).await;
    assert_eq!(refused.unwrap_err(), "22023");
}

/// The database does not store that a user has a privilege through a membership.
#[tokio::test]
async fn code_made_by_an_unnoticed_privilege_prevents_role_switches() {
    let tenant = TenantFixture::new("waiting_group").await;
    tenant
        .run(
            "CREATE ROLE waiting_group_app; CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql \
             AS 'BEGIN RETURN NEW; END'; ALTER FUNCTION f() OWNER TO waiting_group_app; \
             GRANT CREATE ON SCHEMA public TO waiting_group_app; \
             CREATE TRIGGER f BEFORE INSERT ON own FOR EACH ROW EXECUTE FUNCTION f()",
        )
        .await;
    tenant.wait_until_sharing("alice", true).await;
    let shared = tenant.shared().await;
    let mallory = tenant.login("waiting_group/mallory").await;
    tenant.run("GRANT waiting_group_app TO \"@mallory\"").await;
    let replace = "CREATE OR REPLACE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS \
        'BEGIN PERFORM set_config(''role'', ''waiting_group/bob'', true); RETURN NEW; END'";
    // A user has switched to its role, so the definition fails.
    let role = tenant.role("alice");
    shared.batch_execute("BEGIN").await.unwrap();
    let switch = tidegate_postgres::Authenticators::SWITCH;
    shared.query(switch, &[&role.as_str()]).await.unwrap();
    assert_eq!(refusal(&mallory, replace).await, "55P03");
    let row = shared.query_one(INSERT, &[]).await.unwrap();
    assert_eq!(row.get::<_, &str>(0), role.as_str());
    shared.batch_execute("COMMIT").await.unwrap();
    // No user has switched to its role. A role switch waits until the definition is committed, and
    // is then refused.
    let sql = format!("BEGIN; {replace}");
    mallory.batch_execute(&sql).await.unwrap();
    let commit = async {
        wait_for_lock(&tenant, "SELECT pg_catalog.set_config").await;
        mallory.batch_execute("COMMIT").await.unwrap();
    };
    let (inserted, ()) = tokio::join!(tenant.as_user(&shared, "alice", INSERT), commit);
    assert_eq!(inserted.unwrap_err(), "22023");
    tenant.wait_until_sharing("alice", false).await;
}

#[tokio::test]
async fn sharing_does_not_begin_beside_code_of_a_user_that_is_not_committed() {
    let tenant = TenantFixture::new("waiting_code").await;
    let code = "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'";
    let mallory = tenant.login("waiting_code/mallory").await;
    let shared = tenant.shared().await;
    for end in ["ROLLBACK", "COMMIT"] {
        tenant.wait_until_sharing("alice", true).await;
        let grant = "GRANT CREATE ON SCHEMA public TO \"@mallory\"";
        tenant.run(grant).await;
        tenant.wait_until_sharing("alice", false).await;
        mallory
            .batch_execute(&format!("BEGIN; {code}"))
            .await
            .unwrap();
        let revoke = "REVOKE CREATE ON SCHEMA public FROM \"@mallory\"";
        tenant.run(revoke).await;
        tenant.node.invalidate(&tenant.database());
        let (reason, _) = tenant.objection().await.unwrap();
        assert!(reason.contains("not committed"), "{reason}");
        let refused = tenant.as_user(&shared, "alice", "SELECT 'in'").await;
        assert_eq!(refused.unwrap_err(), "22023");
        mallory.batch_execute(end).await.unwrap();
    }
    tenant.wait_until_sharing("alice", false).await;
    tenant.node.invalidate(&tenant.database());
    let (reason, _) = tenant.objection().await.unwrap();
    assert!(reason.contains("owns"), "{reason}");
}

#[tokio::test]
async fn a_users_grants_without_effect_affect_no_other_user() {
    let tenant = TenantFixture::new("waiting_noop").await;
    let shared = tenant.shared().await;
    let mallory = tenant.login("waiting_noop/mallory").await;
    tenant
        .run(
            "GRANT EXECUTE ON FUNCTION lo_create(oid) TO \"@mallory\"; \
                GRANT SELECT ON own TO \"@mallory\" WITH GRANT OPTION",
        )
        .await;
    tenant.wait_until_sharing("alice", true).await;
    for sql in [
        "GRANT INSERT ON own TO \"waiting_noop/bob\"",
        "GRANT SELECT ON own TO PUBLIC",
        "REVOKE SELECT ON own FROM PUBLIC",
        "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO \"waiting_noop/bob\"",
        "SELECT lo_create(0)",
        "DROP OWNED BY CURRENT_USER",
    ] {
        // The statement causes no objection: role switches succeed while its transaction is open
        // and afterwards, and a decision made meanwhile allows sharing.
        mallory
            .batch_execute(&format!("BEGIN; {sql}"))
            .await
            .unwrap();
        tenant.run("COMMENT ON TABLE own IS 'x'").await;
        tenant.node.invalidate(&tenant.database());
        assert!(tenant.of("alice").await.is_some(), "{sql}");
        for end in ["SELECT", "COMMIT"] {
            mallory.batch_execute(end).await.unwrap();
            let inside = tenant.as_user(&shared, "alice", "SELECT 'in'").await;
            assert_eq!(inside.unwrap(), "in", "{sql}");
        }
    }
    // In REPEATABLE READ the definition is refused, because its check would read an old snapshot.
    let sql = "BEGIN ISOLATION LEVEL REPEATABLE READ; GRANT INSERT ON own TO PUBLIC";
    assert_eq!(refusal(&mallory, sql).await, "0A000");
}

#[tokio::test]
async fn a_right_that_a_function_of_the_owners_gives_ends_sharing() {
    let tenant = TenantFixture::new("waiting_gift").await;
    let owner = tenant.login(tenant.name).await;
    owner
        .batch_execute(
            "CREATE FUNCTION gift() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS \
             $f$ BEGIN GRANT TRIGGER ON own TO \"waiting_gift/mallory\"; END $f$",
        )
        .await
        .unwrap();
    tenant.wait_until_sharing("alice", true).await;
    let shared = tenant.shared().await;
    let mallory = tenant.login("waiting_gift/mallory").await;
    mallory.batch_execute("SELECT gift()").await.unwrap();
    let refused = tenant.as_user(&shared, "alice", "SELECT 'in'").await;
    assert_eq!(refused.unwrap_err(), "22023");
    tenant.wait_until_sharing("alice", false).await;
}

#[tokio::test]
async fn a_session_that_acts_as_a_replica_is_noticed() {
    let tenant = TenantFixture::new("waiting_replica").await;
    assert!(tenant.of("alice").await.is_some());
    let shared = tenant.shared().await;
    tenant
        .run(
            "SET session_replication_role = replica; GRANT TRIGGER ON own TO \"@mallory\"; \
              RESET session_replication_role",
        )
        .await;
    let refused = tenant.as_user(&shared, "alice", "SELECT 'in'").await;
    assert_eq!(refused.unwrap_err(), "22023");
}
