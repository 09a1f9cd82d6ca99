//! Tests dropping users and tenants while their users are active.

use std::time::{Duration, Instant};

use tidegate_admin::Error;
use tidegate_embedded::testing;

use super::fixture::{admin, database, role, root, service_admin, user, value};

/// Waits until a session of the administrator waits for a lock.
async fn until_it_waits(watcher: &tokio_postgres::Client, administrator: &str) {
    let waits = format!(
        "SELECT count(*)::text FROM pg_stat_activity \
         WHERE wait_event_type = 'Lock' AND usename = '{administrator}'"
    );
    let deadline = Instant::now() + Duration::from_secs(30);
    while value(watcher, &waits).await == "0" {
        assert!(Instant::now() < deadline, "{administrator} does not wait");
    }
}

#[tokio::test]
async fn objects_created_while_the_user_is_dropped_are_kept() {
    let admin = admin(service_admin("svc_late").await);
    let (tenant, ann) = (database("late"), role("late/ann"));
    admin.create_tenant(&tenant).await.unwrap();
    admin.create_user(&tenant, &ann).await.unwrap();
    let mut owner = user("late", "late").await.unwrap();
    let rights = "GRANT CREATE ON SCHEMA public TO \"late/ann\"; CREATE TABLE t (a int); \
                  GRANT SELECT ON t TO \"late/ann\"";
    owner.batch_execute(rights).await.unwrap();
    // The grant and the drop change the privileges on t, so the drop waits after its first check.
    let held = owner.transaction().await.unwrap();
    let grant = "GRANT INSERT ON t TO \"late/ann\"";
    held.batch_execute(grant).await.unwrap();
    let dropping = tokio::spawn({
        let (admin, tenant, ann) = (admin.clone(), tenant.clone(), ann.clone());
        async move { admin.drop_user(&tenant, &ann, &role("late"), false).await }
    });
    until_it_waits(&root("postgres").await, "svc_late").await;
    let anns = user("late", "late/ann").await.unwrap();
    let made = "CREATE TABLE public.precious (a int); INSERT INTO public.precious VALUES (5)";
    anns.batch_execute(made).await.unwrap();
    held.rollback().await.unwrap();
    let dropped = dropping.await.unwrap();
    assert!(
        matches!(&dropped, Err(Error::OwnsObjects { example, .. })
            if example.contains("precious")),
        "{dropped:?}"
    );
    let kept = "SELECT a::text FROM public.precious";
    assert_eq!(value(&anns, kept).await, "5");
}

/// Settings that a role can make for itself. With some its sessions fail; with others they differ
/// from what the service needs.
const OWN_SETTINGS: &[&str] = &[
    "default_transaction_read_only = on",
    "default_transaction_isolation = 'serializable'",
    "default_transaction_deferrable = on",
    "role = 'selfish/group/all'",
    "search_path = nowhere",
    "lock_timeout = 1",
    "statement_timeout = 1",
    "idle_in_transaction_session_timeout = 1",
    "row_security = off",
    "standard_conforming_strings = off",
    "client_encoding = 'SQL_ASCII'",
    "local_preload_libraries = 'nowhere'",
];

#[tokio::test]
async fn a_tenant_whose_locks_delay_its_users_delays_those_of_no_other() {
    let admin = admin(service_admin("svc_slow").await);
    let (slow, other) = (database("slow_one"), database("slow_other"));
    for tenant in [&slow, &other] {
        admin.create_tenant(tenant).await.unwrap();
    }
    let gone = role("slow_one/gone");
    admin.create_user(&slow, &gone).await.unwrap();
    // What a dropped user was granted on the same schema is revoked.
    let root = root("slow_one").await;
    let usage = "GRANT USAGE ON SCHEMA public TO \"slow_one/gone\"";
    root.batch_execute(usage).await.unwrap();
    let mut owner = user("slow_one", "slow_one").await.unwrap();
    let held = owner.transaction().await.unwrap();
    let grant = "GRANT USAGE ON SCHEMA public TO slow_one WITH GRANT OPTION";
    held.batch_execute(grant).await.unwrap();
    let dropping = tokio::spawn({
        let (admin, slow) = (admin.clone(), slow.clone());
        async move {
            admin
                .drop_user(&slow, &gone, &role("slow_one"), false)
                .await
        }
    });
    until_it_waits(&root, "svc_slow").await;
    let ann = role("slow_other/ann");
    admin.create_user(&other, &ann).await.unwrap();
    admin
        .drop_user(&other, &ann, &role("slow_other"), false)
        .await
        .unwrap();
    assert!(!dropping.is_finished());
    held.rollback().await.unwrap();
    dropping.await.unwrap().unwrap();
}

#[tokio::test]
async fn who_set_something_for_itself_is_dropped_all_the_same() {
    let admin = admin(service_admin("svc_selfish").await);
    let tenant = database("selfish");
    admin.create_tenant(&tenant).await.unwrap();
    let (ann, bob) = (role("selfish/ann"), role("selfish/bob"));
    admin.create_user(&tenant, &bob).await.unwrap();
    let group = role("selfish/group/all");
    let owner = user("selfish", "selfish").await.unwrap();
    owner.batch_execute("CREATE TABLE t (a int)").await.unwrap();
    let root = root("postgres").await;
    for own in OWN_SETTINGS {
        admin.create_user(&tenant, &ann).await.unwrap();
        admin
            .set_groups(&tenant, &ann, std::slice::from_ref(&group))
            .await
            .unwrap();
        // Before PostgreSQL 16 every member may switch to its group; since then that takes a grant.
        if testing::cluster().version().major >= 16 {
            let as_group = "GRANT \"selfish/group/all\" TO \"selfish/ann\" WITH SET TRUE";
            root.batch_execute(as_group).await.unwrap();
        }
        let grant = "GRANT SELECT ON t TO \"selfish/ann\" WITH GRANT OPTION";
        owner.batch_execute(grant).await.unwrap();
        let anns = user("selfish", "selfish/ann").await.unwrap();
        let on = "GRANT SELECT ON t TO \"selfish/bob\"";
        anns.batch_execute(on).await.unwrap();
        let set = format!("ALTER ROLE \"selfish/ann\" SET {own}");
        anns.batch_execute(&set).await.unwrap();
        let heir = role("selfish");
        let dropped = admin.drop_user(&tenant, &ann, &heir, false).await;
        dropped.unwrap_or_else(|error| panic!("{own}: {error}"));
    }
    // In the second case the grantor stays, and its grant is revoked.
    admin.create_user(&tenant, &ann).await.unwrap();
    let grant = "GRANT SELECT ON t TO \"selfish/bob\" WITH GRANT OPTION";
    owner.batch_execute(grant).await.unwrap();
    let bobs = user("selfish", "selfish/bob").await.unwrap();
    let on = "GRANT SELECT ON t TO \"selfish/ann\"; \
              ALTER ROLE \"selfish/bob\" SET default_transaction_read_only = on";
    bobs.batch_execute(on).await.unwrap();
    let dropped = admin
        .drop_user(&tenant, &ann, &role("selfish"), false)
        .await;
    dropped.unwrap();
}

#[tokio::test]
async fn rights_that_change_while_they_are_taken_back_are_taken_all_the_same() {
    let admin = admin(service_admin("svc_stuck").await);
    let tenant = database("stuck");
    admin.create_tenant(&tenant).await.unwrap();
    let (ann, bob) = (role("stuck/ann"), role("stuck/bob"));
    admin.create_user(&tenant, &ann).await.unwrap();
    admin.create_user(&tenant, &bob).await.unwrap();
    let mut owner = user("stuck", "stuck").await.unwrap();
    let rights = "CREATE TABLE t (a int); GRANT SELECT ON t TO \"stuck/ann\" WITH GRANT OPTION";
    owner.batch_execute(rights).await.unwrap();
    let anns = user("stuck", "stuck/ann").await.unwrap();
    let on = "GRANT SELECT ON t TO \"stuck/bob\"";
    anns.batch_execute(on).await.unwrap();
    // The grant and the administrator's statement, which runs as ann, change the privileges on t.
    // The statement fails with "tuple concurrently updated", and the whole operation is retried.
    let held = owner.transaction().await.unwrap();
    held.batch_execute("GRANT INSERT ON t TO \"stuck/ann\"")
        .await
        .unwrap();
    let dropping = tokio::spawn({
        let (admin, tenant, bob) = (admin.clone(), tenant.clone(), bob.clone());
        async move { admin.drop_user(&tenant, &bob, &role("stuck"), false).await }
    });
    until_it_waits(&root("postgres").await, "svc_stuck").await;
    held.commit().await.unwrap();
    dropping.await.unwrap().unwrap();
    let left = "SELECT relacl::text FROM pg_class WHERE relname = 't'";
    let left = value(&owner, left).await;
    assert!(left.contains("ann\\\"=ar*/"), "{left}");
}

#[tokio::test]
async fn a_tenant_whose_database_is_gone_keeps_its_roles_while_they_are_used() {
    let admin = admin(service_admin("svc_gone").await);
    let tenant = database("gone");
    admin.create_tenant(&tenant).await.unwrap();
    admin.create_tenant(&database("gone_too")).await.unwrap();
    admin.create_user(&tenant, &role("gone/ann")).await.unwrap();
    let root = root("postgres").await;
    root.batch_execute("GRANT CONNECT ON DATABASE gone_too TO gone")
        .await
        .unwrap();
    root.batch_execute("DROP DATABASE gone WITH (FORCE)")
        .await
        .unwrap();
    let roles = ["gone/ann".to_owned(), "gone".to_owned()];
    match admin.release_tenant(&tenant, &roles, &[]).await {
        Err(Error::UsedElsewhere { role, places }) => {
            assert_eq!((&*role, &*places), ("gone", &["gone_too".to_owned()][..]));
        }
        other => panic!("{other:?}"),
    }
    let left = "SELECT count(*)::text FROM pg_roles WHERE rolname IN ('gone', 'gone/ann')";
    assert_eq!(value(&root, left).await, "2");
    root.batch_execute("REVOKE CONNECT ON DATABASE gone_too FROM gone")
        .await
        .unwrap();
    admin.release_tenant(&tenant, &roles, &[]).await.unwrap();
    assert_eq!(value(&root, left).await, "0");
}
