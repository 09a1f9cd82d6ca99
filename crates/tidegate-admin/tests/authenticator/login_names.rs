//! Tests that users share no connections where the database names `session_user`, which is the
//! authenticator there.

use super::fixture::TenantFixture;

/// Each row has SQL that creates code with `session_user`, SQL that removes it, and the object's name in
/// the objection.
const NAMES: [(&str, &str, &str); 10] = [
    (
        "ALTER TABLE own ALTER who SET DEFAULT session_user",
        "ALTER TABLE own ALTER who DROP DEFAULT",
        "column who",
    ),
    (
        "CREATE POLICY login ON own FOR SELECT USING (who = session_user)",
        "DROP POLICY login ON own",
        "policy login",
    ),
    (
        "CREATE POLICY login ON own FOR INSERT WITH CHECK (who = session_user)",
        "DROP POLICY login ON own",
        "policy login",
    ),
    (
        "ALTER TABLE own ADD CONSTRAINT mine CHECK (who = session_user) NOT VALID",
        "ALTER TABLE own DROP CONSTRAINT mine",
        "constraint mine",
    ),
    (
        "CREATE DOMAIN login AS text DEFAULT session_user",
        "DROP DOMAIN login",
        "type public.login",
    ),
    (
        "CREATE VIEW login AS SELECT what FROM own WHERE who = session_user",
        "DROP VIEW login",
        "view public.login",
    ),
    (
        "CREATE TRIGGER login BEFORE UPDATE ON own FOR EACH ROW WHEN (new.who <> session_user) \
         EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        "DROP TRIGGER login ON own",
        "trigger login",
    ),
    (
        "CREATE FUNCTION login() RETURNS text LANGUAGE sql STABLE SECURITY DEFINER \
         AS 'SELECT Session_User'",
        "DROP FUNCTION login()",
        "function public.login()",
    ),
    (
        "CREATE FUNCTION login() RETURNS text LANGUAGE plpgsql STABLE \
         AS 'BEGIN RETURN current_setting(''session_authorization''); END'",
        "DROP FUNCTION login()",
        "function public.login()",
    ),
    (
        "CREATE FUNCTION login(who text DEFAULT session_user) RETURNS text LANGUAGE sql \
         AS 'SELECT who'",
        "DROP FUNCTION login(text)",
        "function public.login(text)",
    ),
];

#[tokio::test]
async fn what_names_session_user_ends_sharing_until_it_is_gone() {
    let tenant = TenantFixture::new("shared_login_names").await;
    let owner = tenant.login(tenant.name).await;
    let shared = tenant.shared().await;
    for (make, drop, part) in NAMES {
        tenant.wait_until_sharing("alice", true).await;
        owner.batch_execute(make).await.unwrap();
        tenant.wait_until_sharing("alice", false).await;
        let (reason, _) = tenant.objection().await.unwrap();
        assert!(reason.contains("session_user"), "{make}: {reason}");
        assert!(reason.contains(part), "{make}: {reason}");
        let refused = tenant.as_user(&shared, "alice", "SELECT 'in'").await;
        assert_eq!(refused.unwrap_err(), "22023", "{make}");
        owner.batch_execute(drop).await.unwrap();
    }
    tenant.wait_until_sharing("alice", true).await;
}

#[tokio::test]
async fn names_that_look_alike_and_temporary_objects_change_nothing() {
    let tenant = TenantFixture::new("shared_like_names").await;
    tenant
        .run(
            "CREATE TABLE alike (session_user_id text DEFAULT current_user); \
             CREATE FUNCTION alike() RETURNS text LANGUAGE sql \
             AS 'SELECT session_user_id FROM alike'; \
             GRANT TEMPORARY ON DATABASE shared_like_names TO \"@mallory\"",
        )
        .await;
    let mallory = tenant.login("shared_like_names/mallory").await;
    mallory
        .batch_execute(
            "CREATE TEMP TABLE t (who text DEFAULT session_user CHECK (who = session_user)); \
             CREATE TEMP VIEW v AS SELECT session_user; \
             CREATE FUNCTION pg_temp.f() RETURNS text LANGUAGE sql AS 'SELECT session_user'",
        )
        .await
        .unwrap();
    // A node that decides now sees the temporary objects.
    tenant.run("COMMENT ON TABLE own IS 'x'").await;
    tenant.wait_until_sharing("alice", true).await;
}
