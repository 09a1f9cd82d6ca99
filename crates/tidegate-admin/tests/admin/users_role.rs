//! Tests the role of all users of a tenant.

use tidegate_admin::Error;
use tidegate_embedded::testing;

use super::fixture::{admin, database, refusal, role, root, service_admin, superuser, user, value};

/// The grantees of privileges on the database and on the schema `public`.
const NAMED: &str = "SELECT string_agg(DISTINCT a.grantee::regrole::text, ' ') FROM ( \
    SELECT datacl AS acl FROM pg_database WHERE datname = current_database() UNION ALL \
    SELECT nspacl FROM pg_namespace WHERE nspname = 'public') o, aclexplode(o.acl) a \
    WHERE a.grantee::regrole::text ~ '/'";

#[tokio::test]
async fn a_new_user_is_a_member_and_changes_no_rights() {
    let admin = admin(service_admin("svc_members").await);
    let (tenant, ann) = (database("members"), role("members/ann"));
    admin.create_tenant(&tenant).await.unwrap();
    let root = root("members").await;
    let rights = "SELECT concat_ws(' ', d.xmin, n.xmin) FROM pg_database d, pg_namespace n \
                  WHERE d.datname = 'members' AND n.nspname = 'public'";
    let before = value(&root, rights).await;
    let groups = [role("members/group/staff"), role("members/group/press")];
    admin
        .create_user_in_groups(&tenant, &ann, &groups)
        .await
        .unwrap();
    assert_eq!(value(&root, rights).await, before);
    assert_eq!(value(&root, NAMED).await, "\"members/$users\"");
    let of = "SELECT string_agg(roleid::regrole::text, ' ' ORDER BY roleid::regrole::text) \
              FROM pg_auth_members WHERE member = '\"members/ann\"'::regrole";
    assert_eq!(
        value(&root, of).await,
        "\"members/$users\" \"members/group/press\" \"members/group/staff\""
    );
    let facts = "SELECT concat_ws(' ', rolcanlogin, rolsuper, rolcreatedb, rolcreaterole, \
                 rolreplication, rolbypassrls) FROM pg_roles WHERE rolname = 'members/$users'";
    assert_eq!(value(&root, facts).await, "f f f f f f");
    user("members", "members/ann").await.unwrap();
    // The role that an earlier attempt left behind is completed.
    let left = "REVOKE \"members/$users\", \"members/group/press\" FROM \"members/ann\"; \
                ALTER ROLE \"members/ann\" PASSWORD 'of another key'";
    root.batch_execute(left).await.unwrap();
    assert!(user("members", "members/ann").await.is_err());
    admin
        .create_user_in_groups(&tenant, &ann, &groups[..1])
        .await
        .unwrap();
    user("members", "members/ann").await.unwrap();
    assert_eq!(
        value(&root, of).await,
        "\"members/$users\" \"members/group/staff\""
    );
}

#[tokio::test]
async fn users_are_made_in_one_session_that_is_kept() {
    let admin = admin(service_admin("svc_session").await);
    let tenant = database("one_session");
    admin.create_tenant(&tenant).await.unwrap();
    let root = root("postgres").await;
    let sessions = "SELECT string_agg(pid::text, ' ') FROM pg_stat_activity \
                    WHERE usename = 'svc_session' AND datname = 'postgres' AND state = 'idle'";
    let mut before = None;
    for number in 0..4 {
        let ann = role(&format!("one_session/u{number}"));
        admin.create_user(&tenant, &ann).await.unwrap();
        let now = value(&root, sessions).await;
        assert_eq!(now.split(' ').count(), 1, "{now}");
        assert_eq!(before.get_or_insert(now.clone()), &now);
    }
    // A session that PostgreSQL terminated is replaced.
    let end = "SELECT pg_terminate_backend(pid)::text FROM pg_stat_activity \
               WHERE usename = 'svc_session' AND datname = 'postgres'";
    assert_eq!(value(&root, end).await, "true");
    let last = role("one_session/last");
    admin.create_user(&tenant, &last).await.unwrap();
    user("one_session", "one_session/last").await.unwrap();
}

/// Before PostgreSQL 16 a role with NOINHERIT gets nothing from its membership.
#[tokio::test]
async fn a_user_of_an_older_release_without_inherit_can_still_connect() {
    let admin = admin(superuser());
    let (tenant, ann) = (database("noinherit"), role("noinherit/ann"));
    admin.create_tenant(&tenant).await.unwrap();
    admin.create_user(&tenant, &ann).await.unwrap();
    let as_before = "DROP OWNED BY \"noinherit/$users\"; DROP ROLE \"noinherit/$users\"; \
        GRANT CONNECT ON DATABASE noinherit TO \"noinherit/ann\"; \
        GRANT USAGE ON SCHEMA public TO \"noinherit/ann\"; \
        ALTER ROLE \"noinherit/ann\" NOINHERIT";
    let root = root("noinherit").await;
    root.batch_execute(as_before).await.unwrap();
    let owner = role("noinherit");
    admin.provide_roles(&tenant, &owner, &[]).await.unwrap();
    user("noinherit", "noinherit/ann").await.unwrap();
}

#[tokio::test]
async fn users_of_an_older_release_become_members_without_more_rights() {
    let admin = admin(superuser());
    let tenant = database("older");
    admin.create_tenant(&tenant).await.unwrap();
    let users = ["ann", "bob", "barred", "schemaless", "grantor"];
    for name in users {
        let user = role(&format!("older/{name}"));
        admin.create_user(&tenant, &user).await.unwrap();
    }
    let root = root("older").await;
    let as_before = "DROP OWNED BY \"older/$users\"; DROP ROLE \"older/$users\"; \
        GRANT CONNECT ON DATABASE older TO \"older/ann\", \"older/bob\", \"older/schemaless\"; \
        GRANT CONNECT ON DATABASE older TO \"older/grantor\" WITH GRANT OPTION; \
        GRANT USAGE ON SCHEMA public TO \"older/ann\", \"older/bob\", \"older/barred\", \
            \"older/grantor\"; \
        REVOKE USAGE ON SCHEMA public FROM PUBLIC";
    root.batch_execute(as_before).await.unwrap();
    let owner = role("older");
    let provide = || admin.provide_roles(&tenant, &owner, &[]);
    for _ in 0..2 {
        let (first, second, third) = tokio::join!(provide(), provide(), provide());
        for done in [first, second, third] {
            done.unwrap();
        }
        let members = "SELECT string_agg(member::regrole::text, ' ' ORDER BY member) \
                       FROM pg_auth_members WHERE roleid = '\"older/$users\"'::regrole";
        assert_eq!(
            value(&root, members).await,
            "\"older/ann\" \"older/bob\"",
            "others would have got more than they had"
        );
        let own = NAMED.replace("~ '/'", "~ '/[a-z]'");
        assert_eq!(
            value(&root, &own).await,
            "\"older/barred\" \"older/grantor\" \"older/schemaless\""
        );
    }
    for name in users {
        let enters = user("older", &format!("older/{name}")).await.is_ok();
        assert_eq!(enters, name != "barred", "{name}");
    }
    // A privilege that the owner revokes from the role stays revoked.
    let take = "REVOKE USAGE ON SCHEMA public FROM \"older/$users\"";
    root.batch_execute(take).await.unwrap();
    provide().await.unwrap();
    let allowed = "SELECT has_schema_privilege('older/$users', 'public', 'USAGE')::text";
    assert_eq!(value(&root, allowed).await, "false");
}

#[tokio::test]
async fn a_user_is_made_before_a_node_has_made_the_role() {
    let admin = admin(service_admin("svc_first").await);
    let tenant = database("first_one");
    admin.create_tenant(&tenant).await.unwrap();
    let inside = root("first_one").await;
    let as_before = "DROP OWNED BY \"first_one/$users\"; DROP ROLE \"first_one/$users\"";
    inside.batch_execute(as_before).await.unwrap();
    let ann = role("first_one/ann");
    admin.create_user(&tenant, &ann).await.unwrap();
    user("first_one", "first_one/ann").await.unwrap();
    assert_eq!(value(&inside, NAMED).await, "\"first_one/$users\"");
    // Without its comment the role does not count as made by Tidegate, and creating a user is refused.
    inside
        .batch_execute("COMMENT ON ROLE \"first_one/$users\" IS NULL")
        .await
        .unwrap();
    let bob = role("first_one/bob");
    let refused = admin.create_user(&tenant, &bob).await.unwrap_err();
    assert!(
        matches!(&refused, Error::RoleExists(role) if role == "first_one/$users"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_name_that_leaves_no_room_for_the_role_gives_users_grants_of_their_own() {
    let name = "a_tenant_whose_name_is_as_long_as_the_name_of_a_database1".to_owned();
    let admin = admin(superuser());
    let tenant = database(&name);
    admin.create_tenant(&tenant).await.unwrap();
    let ann = format!("{name}/ann");
    let group = role(&format!("{name}/group"));
    assert!(group.as_str().len() <= 63);
    admin
        .create_user_in_groups(&tenant, &role(&ann), std::slice::from_ref(&group))
        .await
        .unwrap();
    user(&name, &ann).await.unwrap();
    let inside = root(&name).await;
    assert_eq!(value(&inside, NAMED).await, format!("\"{ann}\""));
    admin
        .provide_roles(&tenant, &role(&name), &[])
        .await
        .unwrap();
    assert_eq!(value(&inside, NAMED).await, format!("\"{ann}\""));
    drop(inside);
    let roles = [name.clone(), ann, group.to_string()];
    admin.drop_tenant(&tenant, &roles).await.unwrap();
}

/// Statements that a user tries with the role of all users, each in a transaction.
const ATTEMPTS: [&str; 9] = [
    "DROP OWNED BY \"misused/$users\"",
    "SET LOCAL ROLE \"misused/$users\"; DROP OWNED BY CURRENT_USER",
    "REVOKE CONNECT ON DATABASE misused FROM \"misused/$users\"",
    "SET LOCAL ROLE \"misused/$users\"; REVOKE ALL ON SCHEMA public FROM \"misused/$users\"",
    "GRANT \"misused/$users\" TO misused_else",
    "REVOKE \"misused/$users\" FROM \"misused/bob\"",
    "SET LOCAL ROLE \"misused/$users\"; GRANT \"misused/$users\" TO misused_else",
    "COMMENT ON ROLE \"misused/$users\" IS NULL",
    "ALTER ROLE \"misused/$users\" LOGIN PASSWORD 'x'",
];

#[tokio::test]
async fn neither_users_nor_the_owner_change_the_role() {
    let admin = admin(superuser());
    let tenant = database("misused");
    admin.create_tenant(&tenant).await.unwrap();
    let other = database("misused_else");
    admin.create_tenant(&other).await.unwrap();
    for name in ["ann", "bob"] {
        let user = role(&format!("misused/{name}"));
        admin.create_user(&tenant, &user).await.unwrap();
    }
    let root = root("misused").await;
    let state = "SELECT concat_ws(' ', \
        (SELECT datacl FROM pg_database WHERE datname = 'misused'), \
        (SELECT nspacl FROM pg_namespace WHERE nspname = 'public'), \
        (SELECT string_agg(concat(roleid::regrole, '>', member::regrole, admin_option), ' ' \
             ORDER BY member) FROM pg_auth_members WHERE '\"misused/$users\"'::regrole \
             IN (roleid, member)), \
        (SELECT concat(rolcanlogin, shobj_description(oid, 'pg_authid')) FROM pg_roles \
             WHERE rolname = 'misused/$users'))";
    let before = value(&root, state).await;
    for who in ["misused/ann", "misused", "misused_else"] {
        let database = if who == "misused_else" {
            who
        } else {
            "misused"
        };
        let client = user(database, who).await.unwrap();
        for attempt in ATTEMPTS {
            // The owner of the schema may revoke the role's privilege on it.
            if who == "misused" && attempt.contains("SET LOCAL") {
                continue;
            }
            let tried = client
                .batch_execute(&format!("BEGIN; {attempt}; COMMIT"))
                .await;
            let _ = client.batch_execute("ROLLBACK").await;
            assert_eq!(
                value(&root, state).await,
                before,
                "{who}: {attempt}: {tried:?}"
            );
        }
    }
    // The role owns nothing, and may create nothing.
    let anns = user("misused", "misused/ann").await.unwrap();
    if testing::cluster().version().major < 16 {
        anns.batch_execute("SET ROLE \"misused/$users\"")
            .await
            .unwrap();
        for sql in [
            "CREATE TABLE t (a int)",
            "CREATE TEMP TABLE t (a int)",
            "CREATE SCHEMA s",
            "SELECT lo_create(0)",
        ] {
            assert_eq!(refusal(&anns, sql).await, "42501", "{sql}");
        }
    } else {
        let set = "SET ROLE \"misused/$users\"";
        assert_eq!(refusal(&anns, set).await, "42501");
    }
    assert!(user("misused", "misused/$users").await.is_err());
}
