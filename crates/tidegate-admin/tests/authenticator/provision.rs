//! Tests creating and dropping authenticators.

use tidegate_sql::RoleName;

use super::fixture::{TenantFixture, node};

const MEMBERS: &str = "SELECT string_agg(n::text, ' ' ORDER BY n DESC) FROM ( \
    SELECT count(*) AS n FROM pg_auth_members m WHERE m.member::regrole::text LIKE '\"@$authenticator%' \
    GROUP BY m.member) c";
const AUTHENTICATORS: &str = "SELECT count(*)::text FROM pg_roles WHERE rolname LIKE '@$auth%'";

#[tokio::test]
async fn a_user_has_an_authenticator_from_its_first_day_to_its_last() {
    let tenant = TenantFixture::new("seats").await;
    assert_eq!(tenant.value(MEMBERS).await, "3");
    assert!(tenant.of("alice").await.is_some());
    // Creating a user writes no objection.
    let shared = tenant.shared().await;
    tenant.user("carol").await;
    assert_eq!(
        tenant
            .as_user(&shared, "alice", "SELECT 'in'")
            .await
            .unwrap(),
        "in"
    );
    tenant.wait_until_sharing("carol", true).await;
    let (database, owner) = (tenant.database(), RoleName::new(tenant.name));
    tenant
        .admin
        .drop_user(&database, &tenant.role("carol"), &owner, false)
        .await
        .unwrap();
    tenant.wait_until_sharing("carol", false).await;
    assert_eq!(tenant.value(MEMBERS).await, "3");
    assert!(tenant.of("alice").await.is_some());
}

#[tokio::test]
async fn a_lock_in_the_tenants_database_does_not_delay_its_users() {
    let tenant = TenantFixture::new("seats_locked").await;
    let owner = tenant.login(tenant.name).await;
    let hold = "SELECT pg_advisory_lock(hashtextextended( \
                'tidegate authenticators of seats_locked', 0))";
    owner.batch_execute(hold).await.unwrap();
    // If the sign-up had waited until the timeout, the user would have no authenticator.
    tenant.user("carol").await;
    assert_eq!(tenant.value(MEMBERS).await, "4");
}

#[tokio::test]
async fn a_role_that_becomes_shared_leaves_its_authenticator() {
    let tenant = TenantFixture::new("seats_guest").await;
    tenant
        .admin
        .set_shared(&tenant.role("bob"), true)
        .await
        .unwrap();
    assert_eq!(tenant.value(MEMBERS).await, "2");
    // The user gets no authenticator at the next sign-up either.
    tenant.user("carol").await;
    assert_eq!(tenant.value(MEMBERS).await, "3");
    tenant
        .admin
        .set_shared(&tenant.role("bob"), false)
        .await
        .unwrap();
    assert_eq!(tenant.value(MEMBERS).await, "4");
}

#[tokio::test]
async fn existing_tenants_get_authenticators_from_several_nodes_at_once() {
    let tenant = TenantFixture::new("seats_many").await;
    // An older release leaves the tenant in this state.
    tenant
        .run(
            "DROP OWNED BY \"@$authenticator1\"; DROP ROLE \"@$authenticator1\"; \
             DROP EVENT TRIGGER tidegate_catalog; DROP SCHEMA tidegate_catalog CASCADE; \
             DO $$ BEGIN FOR i IN 1..998 LOOP EXECUTE format('CREATE ROLE \"@u%s\" LOGIN; \
             COMMENT ON ROLE \"@u%1$s\" IS ''made by Tidegate''', i); END LOOP; END $$; \
             GRANT CONNECT ON DATABASE seats_many TO \"@u7\"",
        )
        .await;
    assert_eq!(tenant.of("alice").await, None);
    let (database, owner) = (tenant.database(), RoleName::new(tenant.name));
    let provide = || tenant.admin.provide_roles(&database, &owner, &[]);
    let (first, second, third) = tokio::join!(provide(), provide(), provide());
    for done in [first, second, third] {
        done.unwrap();
    }
    assert_eq!(tenant.value(MEMBERS).await, "500 500 1");
    // The next authenticator has room.
    tenant.user("dave").await;
    assert_eq!(tenant.value(MEMBERS).await, "500 500 2");
    let node = node(tenant.name);
    for user in ["alice", "u7", "dave"] {
        assert!(
            node.of(&database, &tenant.role(user)).await.is_some(),
            "{user}"
        );
    }
    // The user u8 may not connect.
    assert_eq!(node.of(&database, &tenant.role("u8")).await, None);
}

#[tokio::test]
async fn users_who_can_become_more_than_users_get_no_authenticator() {
    let tenant = TenantFixture::new("seats_strong").await;
    let (database, owner) = (tenant.database(), RoleName::new(tenant.name));
    tenant
        .run(
            "REVOKE \"@alice\", \"@bob\", \"@mallory\" FROM \"@$authenticator1\"; \
             CREATE ROLE seats_strong_g; GRANT seats_strong TO seats_strong_g; \
             GRANT seats_strong_g TO \"@bob\"; GRANT pg_monitor TO \"@mallory\"",
        )
        .await;
    tenant
        .admin
        .provide_roles(&database, &owner, &[])
        .await
        .unwrap();
    let members = "SELECT string_agg(m.roleid::regrole::text, ' ') FROM pg_auth_members m \
                   WHERE m.member = '\"@$authenticator1\"'::regrole";
    assert_eq!(tenant.value(members).await, "\"seats_strong/alice\"");
}

#[tokio::test]
async fn a_tenant_takes_its_authenticators_along() {
    let tenant = TenantFixture::new("seats_drop").await;
    assert_eq!(tenant.value(AUTHENTICATORS).await, "1");
    let roles = ["", "/alice", "/bob", "/mallory"].map(|user| format!("seats_drop{user}"));
    let home = super::fixture::root("postgres").await;
    tenant
        .admin
        .drop_tenant(&tenant.database(), &roles)
        .await
        .unwrap();
    let left = "SELECT count(*) FROM pg_roles WHERE rolname LIKE 'seats_drop%'";
    assert_eq!(home.query_one(left, &[]).await.unwrap().get::<_, i64>(0), 0);
}

#[tokio::test]
async fn a_tenant_that_is_released_keeps_nothing_of_them() {
    let tenant = TenantFixture::new("seats_free").await;
    let roles = ["", "/alice", "/bob", "/mallory"].map(|user| format!("seats_free{user}"));
    tenant
        .admin
        .release_tenant(&tenant.database(), &roles, &[])
        .await
        .unwrap();
    assert_eq!(tenant.value(AUTHENTICATORS).await, "0");
    let left = "SELECT count(*)::text FROM pg_namespace WHERE nspname = 'tidegate_catalog'";
    assert_eq!(tenant.value(left).await, "0");
}

#[tokio::test]
async fn a_group_that_logs_in_gets_no_authenticator() {
    let tenant = TenantFixture::new("seats_group").await;
    let (database, owner) = (tenant.database(), RoleName::new(tenant.name));
    let group = tenant.role("group/staff");
    let made = tenant.admin.make_group_login(&database, &group);
    made.await.unwrap();
    tenant.login(group.as_str()).await;
    let provided = tenant.admin.provide_roles(&database, &owner, &[]);
    provided.await.unwrap();
    assert_eq!(tenant.value(MEMBERS).await, "3");
    let node = node(tenant.name);
    assert_eq!(node.of(&database, &group).await, None);
    // The users go on sharing connections.
    assert!(node.of(&database, &tenant.role("alice")).await.is_some());
}
