//! Tests what happens to the objects and privileges of users and tenants that are dropped.

use tidegate_admin::Error;

use super::fixture::{admin, connect, database, role, root, service_admin, user, value};

#[tokio::test]
async fn what_a_dropped_user_owns_is_named_or_goes_to_the_owner() {
    let admin = admin(service_admin("svc_heir").await);
    let (tenant, bob) = (database("heirs"), role("heirs/bob"));
    admin.create_tenant(&tenant).await.unwrap();
    admin.create_user(&tenant, &bob).await.unwrap();
    let ann = role("heirs/ann");
    admin.create_user(&tenant, &ann).await.unwrap();
    let owner = user("heirs", "heirs").await.unwrap();
    owner
        .batch_execute("GRANT CREATE ON SCHEMA public TO \"heirs/bob\"")
        .await
        .unwrap();
    let bobs = user("heirs", "heirs/bob").await.unwrap();
    bobs.batch_execute("CREATE TABLE kept (id int); INSERT INTO kept VALUES (5)")
        .await
        .unwrap();

    // If a role cannot be dropped, what other roles granted to it remains.
    owner
        .batch_execute(
            "CREATE TABLE lent (id int); GRANT SELECT ON lent TO \"heirs/ann\" WITH GRANT OPTION",
        )
        .await
        .unwrap();
    let anns = user("heirs", "heirs/ann").await.unwrap();
    anns.batch_execute("GRANT SELECT ON lent TO \"heirs/bob\"")
        .await
        .unwrap();
    let error = admin
        .drop_user(&tenant, &bob, &role("heirs"), false)
        .await
        .unwrap_err();
    bobs.batch_execute("SELECT FROM lent").await.unwrap();
    assert!(
        matches!(&error, Error::OwnsObjects { count: 1, example, .. } if example == "table public.kept")
    );
    assert_eq!(value(&bobs, "SELECT id::text FROM kept").await, "5");

    // After this REVOKE, which the doctor recommends, the administrator can terminate sessions only
    // from its own database.
    let close = "REVOKE EXECUTE ON FUNCTION pg_terminate_backend FROM PUBLIC";
    root("heirs").await.batch_execute(close).await.unwrap();
    admin
        .drop_user(&tenant, &bob, &role("heirs"), true)
        .await
        .unwrap();
    assert_eq!(value(&owner, "SELECT id::text FROM kept").await, "5");
    assert!(bobs.batch_execute("SELECT 1").await.is_err());
    assert!(user("heirs", "heirs/bob").await.is_err());
    admin
        .drop_user(&tenant, &bob, &role("heirs"), false)
        .await
        .unwrap();
}

#[tokio::test]
async fn who_is_used_in_another_database_keeps_everything_until_that_is_taken_there() {
    let admin = admin(service_admin("svc_elsewhere").await);
    let (tenant, ann) = (database("used"), role("used/ann"));
    admin.create_tenant(&tenant).await.unwrap();
    admin.create_tenant(&database("used_too")).await.unwrap();
    admin.create_user(&tenant, &ann).await.unwrap();
    let owner = user("used", "used").await.unwrap();
    let rights = "CREATE TABLE t (a int); GRANT SELECT ON t TO \"used/ann\"";
    owner.batch_execute(rights).await.unwrap();
    let elsewhere = root("used_too").await;
    let there = "CREATE TABLE t (a int); GRANT SELECT ON t TO \"used/ann\"";
    elsewhere.batch_execute(there).await.unwrap();

    let roles = ["used/ann".to_owned(), "used".to_owned()];
    let refused = |outcome: Result<(), Error>| match outcome {
        Err(Error::UsedElsewhere { role, places }) => {
            assert_eq!(
                (&*role, &*places),
                ("used/ann", &["used_too".to_owned()][..])
            );
        }
        other => panic!("{other:?}"),
    };
    for reassign in [false, true] {
        let names = (&ann, &role("used"));
        refused(admin.may_drop_user(&tenant, names, reassign).await);
        refused(
            admin
                .drop_user(&tenant, &ann, &role("used"), reassign)
                .await,
        );
    }
    refused(admin.release_tenant(&tenant, &roles, &[]).await);
    refused(admin.drop_tenant(&tenant, &roles).await);
    let anns = user("used", "used/ann").await.unwrap();
    anns.batch_execute("SELECT FROM t").await.unwrap();

    let drop_owned = "DROP OWNED BY \"used/ann\"";
    elsewhere.batch_execute(drop_owned).await.unwrap();
    // A privilege on the database itself does not count as a privilege inside it.
    let connect = "GRANT CONNECT ON DATABASE used_too TO \"used/ann\"";
    elsewhere.batch_execute(connect).await.unwrap();
    refused(admin.drop_tenant(&tenant, &roles).await);
    elsewhere.batch_execute(drop_owned).await.unwrap();

    // If only a superuser can revoke a privilege, the role is kept, and the error names the
    // privilege.
    let inside = root("used").await;
    let table = "CREATE TABLE roots (a int); GRANT SELECT ON roots TO \"used/ann\"";
    inside.batch_execute(table).await.unwrap();
    let error = admin.drop_user(&tenant, &ann, &role("used"), false).await;
    match error {
        Err(Error::StillUsed { reason, .. }) => assert!(reason.contains("table roots"), "{reason}"),
        other => panic!("{other:?}"),
    }
    // The administrator may not terminate a superuser's session.
    drop(inside);
    let there = "SELECT count(*)::text FROM pg_stat_activity \
                 WHERE datname = 'used' AND usename NOT LIKE 'used%' AND usename <> 'svc_elsewhere'";
    while value(&elsewhere, there).await != "0" {}
    admin.drop_tenant(&tenant, &roles).await.unwrap();
}

#[tokio::test]
async fn a_user_goes_whatever_it_was_granted() {
    let admin = admin(service_admin("svc_granted").await);
    let (tenant, ann) = (database("granted"), role("granted/ann"));
    admin.create_tenant(&tenant).await.unwrap();
    for user in [&ann, &role("granted/bob")] {
        admin.create_user(&tenant, user).await.unwrap();
    }
    let owner = user("granted", "granted").await.unwrap();
    let rights = "CREATE TABLE t (a int, b int); CREATE TYPE mood AS ENUM ('glad');
        CREATE DOMAIN positive AS int CHECK (value > 0);
        CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1';
        SELECT lo_create(4711);
        GRANT USAGE ON TYPE mood, positive TO \"granted/ann\";
        GRANT SELECT ON LARGE OBJECT 4711 TO \"granted/ann\";
        GRANT EXECUTE ON FUNCTION f() TO \"granted/ann\";
        GRANT SELECT ON t TO \"granted/ann\" WITH GRANT OPTION";
    owner.batch_execute(rights).await.unwrap();
    // Privileges that the user granted to others are revoked too.
    let anns = user("granted", "granted/ann").await.unwrap();
    let on = "GRANT SELECT (a) ON t TO \"granted/bob\", PUBLIC";
    anns.batch_execute(on).await.unwrap();
    let heir = role("granted");
    let dropped = admin.drop_user(&tenant, &ann, &heir, false);
    dropped.await.unwrap();
    assert!(user("granted", "granted/ann").await.is_err());
    let left = "SELECT count(*)::text FROM pg_attribute WHERE attacl IS NOT NULL \
                AND attrelid = 't'::regclass";
    assert_eq!(value(&owner, left).await, "0");
}

#[tokio::test]
async fn a_tenant_goes_with_its_data_or_leaves_it_behind() {
    let config = service_admin("svc_drop").await;
    let admin = admin(config);
    let root = root("postgres").await;
    let there = "SELECT concat_ws(' ', (SELECT count(*) FROM pg_database WHERE datname ~ '^goes'), \
                 (SELECT count(*) FROM pg_roles WHERE rolname ~ '^goes'))";
    let roles = ["goes/x".to_owned(), "goes".to_owned()];
    let tenant = database("goes");
    admin.create_tenant(&tenant).await.unwrap();
    admin.create_user(&tenant, &role("goes/x")).await.unwrap();
    let owner = user("goes", "goes").await.unwrap();
    owner
        .batch_execute("CREATE TABLE kept (id int); INSERT INTO kept VALUES (5)")
        .await
        .unwrap();
    assert_eq!(value(&root, there).await, "1 3");

    let close = "REVOKE EXECUTE ON FUNCTION pg_terminate_backend FROM PUBLIC";
    let inside = crate::admin::fixture::root("goes").await;
    inside.batch_execute(close).await.unwrap();
    // The administrator may not terminate a superuser's session.
    drop(inside);
    let inside = "SELECT count(*)::text FROM pg_stat_activity a JOIN pg_roles r ON r.oid = usesysid \
                  WHERE datname = 'goes' AND rolsuper";
    while value(&root, inside).await != "0" {}
    admin.release_tenant(&tenant, &roles, &[]).await.unwrap();
    assert_eq!(value(&root, there).await, "1 0");
    let kept = connect("goes", "svc_drop", "service").await.unwrap();
    assert_eq!(value(&kept, "SELECT id::text FROM kept").await, "5");

    admin.drop_tenant(&tenant, &roles).await.unwrap();
    assert_eq!(value(&root, there).await, "0 0");
    admin.drop_tenant(&tenant, &roles).await.unwrap();
}
