//! Tests that no code of a user runs on a shared connection, in whatever way statements of other
//! users reach it.

use super::fixture::{TenantFixture, node};

/// Statements by which the code tries to become another user.
const JUMPS: [&str; 3] = [
    "PERFORM set_config('role', 'code_kinds/bob', true)",
    "EXECUTE 'SET LOCAL ROLE \"code_kinds/bob\"'",
    "EXECUTE 'RESET ROLE'; EXECUTE 'SET LOCAL ROLE \"code_kinds/bob\"'",
];

/// The kinds of code that mallory creates, each with a statement that runs it. `jump(text)` is
/// mallory's function that becomes bob.
const KINDS: [(&str, &str, &str); 8] = [
    (
        "trigger",
        "CREATE FUNCTION fire() RETURNS trigger LANGUAGE plpgsql \
             AS 'BEGIN PERFORM jump(NULL); RETURN NEW; END'; \
         CREATE TRIGGER t BEFORE INSERT ON own FOR EACH ROW EXECUTE FUNCTION fire()",
        "INSERT INTO own VALUES ('code_kinds/alice', 'x') RETURNING current_user::text",
    ),
    (
        "view",
        "CREATE VIEW v AS SELECT jump('x') AS a; GRANT SELECT ON v TO PUBLIC",
        "SELECT a || current_user FROM v",
    ),
    (
        "policy",
        "CREATE TABLE p (a int); INSERT INTO p VALUES (1); GRANT SELECT ON p TO PUBLIC; \
         ALTER TABLE p ENABLE ROW LEVEL SECURITY; \
         CREATE POLICY p ON p USING (jump('x') IS NOT NULL)",
        "SELECT current_user || a FROM p",
    ),
    (
        "default",
        "CREATE TABLE d (a text DEFAULT jump('x')); GRANT INSERT, SELECT ON d TO PUBLIC",
        "INSERT INTO d DEFAULT VALUES RETURNING current_user::text",
    ),
    (
        "domain",
        "CREATE DOMAIN checked AS text CHECK (jump(VALUE) IS NOT NULL)",
        "SELECT current_user || 'x'::checked",
    ),
    (
        "operator",
        "CREATE FUNCTION both_jump(text, int) RETURNS text LANGUAGE sql AS 'SELECT jump($1)'; \
         CREATE OPERATOR === (LEFTARG = text, RIGHTARG = int, FUNCTION = both_jump)",
        "SELECT ('x'::text === 1) || current_user",
    ),
    (
        "cast",
        "CREATE TYPE c AS (a text); \
         CREATE FUNCTION c(text) RETURNS c LANGUAGE sql AS 'SELECT ROW(jump($1))::c'; \
         CREATE CAST (text AS c) WITH FUNCTION c(text)",
        "SELECT current_user || ('x'::text)::c::text",
    ),
    (
        "rule",
        "CREATE TABLE r (a text); GRANT INSERT ON r TO PUBLIC; \
         CREATE RULE r AS ON INSERT TO r DO ALSO SELECT jump('x')",
        "INSERT INTO r VALUES ('x') RETURNING current_user::text",
    ),
];

/// The user creates the code within a second of the grant that allows it, and no node is notified.
/// From the commit on, every role switch fails. Revoking the privilege does not allow switches
/// again.
#[tokio::test]
async fn no_code_of_a_users_own_runs_on_a_shared_connection() {
    let tenant = TenantFixture::new("code_kinds").await;
    let other = node(tenant.name);
    let (database, alice) = (tenant.database(), tenant.role("alice"));
    let shared = tenant.shared().await;
    let mallory = tenant.login("code_kinds/mallory").await;
    let victim = tenant.login("code_kinds/alice").await;
    for (place, (kind, code, reach)) in KINDS.iter().enumerate() {
        tenant.wait_until_sharing("alice", true).await;
        assert!(other.of(&database, &alice).await.is_some(), "{kind}");
        let grant = "GRANT CREATE ON SCHEMA public TO \"@mallory\"; \
                     GRANT TRIGGER ON own TO \"@mallory\"";
        tenant.run(grant).await;
        let jump = JUMPS[place % JUMPS.len()];
        let jump = format!(
            "CREATE FUNCTION jump(text) RETURNS text LANGUAGE plpgsql \
             AS $f$ BEGIN {jump}; RETURN $1; END $f$"
        );
        mallory.batch_execute(&jump).await.unwrap();
        mallory.batch_execute(code).await.unwrap();
        let refused = tenant.as_user(&shared, "alice", reach).await;
        assert_eq!(refused.unwrap_err(), "22023", "{kind}");
        // On a login connection the code cannot become another user.
        let own = victim.query_one(*reach, &[]).await.unwrap_err();
        assert_eq!(own.code().unwrap().code(), "42501", "{kind}: {own}");
        let revoke = "REVOKE CREATE ON SCHEMA public FROM \"@mallory\"; \
                      REVOKE TRIGGER ON own FROM \"@mallory\"";
        tenant.run(revoke).await;
        for node in [&tenant.node, &other] {
            node.invalidate(&database);
            assert_eq!(node.of(&database, &alice).await, None, "{kind}");
        }
        let refused = tenant.as_user(&shared, "alice", reach).await;
        assert_eq!(refused.unwrap_err(), "22023", "{kind}");
        tenant.run("DROP OWNED BY \"@mallory\" CASCADE").await;
        let rights = "GRANT CONNECT ON DATABASE code_kinds TO \"@mallory\"";
        tenant.run(rights).await;
        other.invalidate(&database);
    }
}
