use std::sync::Arc;

use tidegate_admin::{Error, Grantee, Right};
use tidegate_embedded::testing;
use tidegate_postgres::Authenticators;
use tidegate_testkit::{config, service_connections};
use tokio_postgres::Client;

use super::fixture::{
    admin, connect, database, record_tenant, refusal, role, root, service_admin, superuser, user,
    value,
};

/// The privileges on all objects in a database, as one text.
async fn rights(database: &str) -> String {
    let sql = "
        SELECT string_agg(line, E'\\n' ORDER BY line) FROM (
            SELECT concat_ws(' ', 'db', a.grantee, a.privilege_type, a.is_grantable) AS line
            FROM pg_database d, aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) a
            WHERE d.datname = current_database()
            UNION ALL
            SELECT concat_ws(' ', 'schema', nspname, a.grantee, a.privilege_type, a.is_grantable)
            FROM pg_namespace n, aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) a
            WHERE nspname !~ '^pg_(toast|temp)'
            UNION ALL
            SELECT concat_ws(' ', 'relation', c.oid::regclass, a.grantee, a.privilege_type,
                             a.is_grantable)
            FROM pg_class c, aclexplode(coalesce(c.relacl, acldefault(
                CASE c.relkind WHEN 'S' THEN 's'::\"char\" ELSE 'r'::\"char\" END, c.relowner))) a
            WHERE c.relkind IN ('r', 'v', 'S')
            UNION ALL
            SELECT concat_ws(' ', 'routine', p.oid::regprocedure, a.grantee, a.privilege_type,
                             a.is_grantable)
            FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
            WHERE p.pronamespace::regnamespace::text !~ '^pg_'
            UNION ALL
            SELECT concat_ws(' ', 'default', defaclrole, defaclobjtype, defaclacl)
            FROM pg_default_acl
            UNION ALL
            SELECT concat_ws(' ', 'owner', c.oid::regclass, c.relowner) FROM pg_class c
        ) all_rights";
    value(&root(database).await, sql).await
}

/// Creates a database that existed before Tidegate, with two owners, two applications and
/// privileges of its own.
async fn create_legacy_database(name: &str) -> Client {
    let root = root("postgres").await;
    let sql = format!(
        "CREATE ROLE {name}_maker LOGIN PASSWORD 'old';
         CREATE ROLE {name}_app LOGIN PASSWORD 'old';
         CREATE ROLE {name}_known LOGIN PASSWORD 'old';"
    );
    root.batch_execute(&sql).await.unwrap();
    root.batch_execute(&format!("CREATE DATABASE {name} OWNER {name}_maker"))
        .await
        .unwrap();
    root.batch_execute(&format!("GRANT CONNECT ON DATABASE {name} TO {name}_known"))
        .await
        .unwrap();
    let maker = connect(name, &format!("{name}_maker"), "old")
        .await
        .unwrap();
    let sql = format!(
        "CREATE TABLE orders (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, \"Total\" int);
         INSERT INTO orders (\"Total\") VALUES (10), (20);
         CREATE SCHEMA \"Old Things\";
         CREATE VIEW \"Old Things\".\"big orders\" AS SELECT * FROM public.orders;
         CREATE SEQUENCE counter;
         CREATE FUNCTION twice(n int) RETURNS int LANGUAGE sql AS 'SELECT n * 2';
         REVOKE EXECUTE ON FUNCTION twice FROM PUBLIC;
         CREATE PROCEDURE tidy(INOUT n int) LANGUAGE sql AS 'SELECT n';
         GRANT SELECT ON orders TO {name}_app;"
    );
    maker.batch_execute(&sql).await.unwrap();
    maker
}

/// The authenticator of a user of the database `adopted`, according to a node; otherwise what
/// prevents the users from sharing connections.
async fn authenticator_in_adopted(user: &str) -> String {
    // Before PostgreSQL 15 a new database grants this to PUBLIC.
    let revoke = "REVOKE CREATE ON SCHEMA public FROM PUBLIC";
    root("adopted").await.batch_execute(revoke).await.unwrap();
    record_tenant("adopted_control", "adopted", None).await;
    let config = config(&testing::cluster().admin_url(), "adopted_control");
    let control = service_connections(config);
    let node = Authenticators::new(Arc::new(control));
    match node.of(&database("adopted"), &role(user)).await {
        Some(authenticator) => authenticator.to_string(),
        None => format!("{:?}", node.decisions()),
    }
}

#[tokio::test]
async fn an_adopted_database_serves_its_owner_and_its_old_applications() {
    let maker = create_legacy_database("adopted").await;
    let admin = admin(superuser());
    let tenant = database("adopted");
    admin
        .create_tenant(&database("adopted_other"))
        .await
        .unwrap();
    let plan = admin
        .plan_adoption(&tenant, &role("adopted"))
        .await
        .unwrap();
    admin.adopt(&tenant, &plan).await.unwrap();

    let owner = user("adopted", "adopted").await.unwrap();
    owner
        .batch_execute(
            "INSERT INTO orders (\"Total\") VALUES (30); SELECT nextval('counter'); \
             SELECT twice(2); CALL tidy(1); CREATE TABLE mine (id int); CREATE SCHEMA extra",
        )
        .await
        .unwrap();
    let seen = "SELECT count(*)::text FROM \"Old Things\".\"big orders\"";
    assert_eq!(value(&owner, seen).await, "3");

    maker
        .batch_execute("CREATE TABLE later (id int)")
        .await
        .unwrap();
    assert_eq!(value(&owner, "SELECT count(*)::text FROM later").await, "0");
    assert_eq!(refusal(&owner, "DROP TABLE orders").await, "42501");

    admin
        .create_user(&tenant, &role("adopted/reader"))
        .await
        .unwrap();
    owner
        .batch_execute("GRANT SELECT ON orders TO \"adopted/reader\"")
        .await
        .unwrap();
    let reader = user("adopted", "adopted/reader").await.unwrap();
    assert_eq!(
        value(&reader, "SELECT count(*)::text FROM orders").await,
        "3"
    );
    assert_eq!(
        authenticator_in_adopted("adopted/reader").await,
        "adopted/$authenticator1"
    );
    admin
        .drop_user(&tenant, &role("adopted/reader"), &role("adopted"), false)
        .await
        .unwrap();
    assert!(user("adopted", "adopted/reader").await.is_err());

    let app = connect("adopted", "adopted_app", "old").await.unwrap();
    assert_eq!(value(&app, "SELECT count(*)::text FROM orders").await, "3");
    app.batch_execute("CREATE TEMP TABLE scratch (id int)")
        .await
        .unwrap();
    let stranger = user("adopted", "adopted_other").await.unwrap_err();
    assert_eq!(stranger.code().unwrap().code(), "42501");
}

#[tokio::test]
async fn an_owner_keeps_its_default_privileges() {
    let root = root("postgres").await;
    let sql = "CREATE ROLE plain_maker LOGIN PASSWORD 'old'";
    root.batch_execute(sql).await.unwrap();
    let sql = "CREATE DATABASE plain OWNER plain_maker";
    root.batch_execute(sql).await.unwrap();
    let admin = admin(superuser());
    let tenant = database("plain");
    let before = rights("plain").await;
    let plan = admin.plan_adoption(&tenant, &role("plain")).await.unwrap();
    admin.adopt(&tenant, &plan).await.unwrap();
    admin
        .release_tenant(&tenant, &["plain".to_owned()], &plan.changes)
        .await
        .unwrap();
    assert_eq!(rights("plain").await, before);
}

#[tokio::test]
async fn dropping_takes_back_what_was_granted_and_only_that() {
    let _maker = create_legacy_database("returned").await;
    let admin = admin(superuser());
    let tenant = database("returned");
    let before = rights("returned").await;
    let plan = admin
        .plan_adoption(&tenant, &role("returned_owner"))
        .await
        .unwrap();
    assert_eq!(rights("returned").await, before, "a plan changes nothing");

    admin.adopt(&tenant, &plan).await.unwrap();
    admin
        .create_user(&tenant, &role("returned/x"))
        .await
        .unwrap();
    let owner = user("returned", "returned_owner").await.unwrap();
    owner
        .batch_execute(
            "GRANT SELECT ON orders TO \"returned/x\";
             GRANT SELECT (id) ON orders TO \"returned/x\", returned_known, PUBLIC",
        )
        .await
        .unwrap();
    assert_ne!(rights("returned").await, before);
    let known = Grantee::Role("returned_known".to_owned());
    let kept = |change: &&tidegate_admin::RightsChange| {
        change.grantee == known && change.right == Right::Connect
    };
    assert_eq!(
        plan.changes.iter().find(kept),
        None,
        "what a role had is not ours to take"
    );

    // Serving the database creates the event trigger in it.
    let control = service_connections(superuser());
    let (tell, reported) = tokio::sync::oneshot::channel();
    let mut tell = Some(tell);
    let received = move |_| {
        if let Some(tell) = tell.take() {
            tell.send(()).unwrap();
        }
    };
    tokio::select! {
        silence = control.ddl_notifications(&tenant, received) => panic!("{silence:?}"),
        reported = reported => reported.unwrap(),
    }
    let ours = "SELECT (SELECT count(*) FROM pg_event_trigger) || ' ' || count(*) \
                FROM pg_namespace WHERE nspname = 'tidegate_catalog'";
    let inside = root("returned").await;
    assert_eq!(value(&inside, ours).await, "1 1");

    let roles = ["returned/x".to_owned(), "returned_owner".to_owned()];
    admin
        .release_tenant(&tenant, &roles, &plan.changes)
        .await
        .unwrap();
    assert_eq!(rights("returned").await, before);
    assert_eq!(value(&inside, ours).await, "0 0");
}

#[tokio::test]
async fn what_the_owner_made_stays_with_the_databases_owner() {
    let maker = create_legacy_database("inherits").await;
    let admin = admin(superuser());
    let tenant = database("inherits");
    let plan = admin
        .plan_adoption(&tenant, &role("inherits"))
        .await
        .unwrap();
    admin.adopt(&tenant, &plan).await.unwrap();
    let owner = user("inherits", "inherits").await.unwrap();
    owner
        .batch_execute("CREATE TABLE made (id int); INSERT INTO made VALUES (1)")
        .await
        .unwrap();

    admin
        .release_tenant(&tenant, &["inherits".to_owned()], &plan.changes)
        .await
        .unwrap();
    assert_eq!(value(&maker, "SELECT id::text FROM made").await, "1");
}

#[tokio::test]
async fn what_others_put_into_our_schema_stays_when_the_tenant_goes() {
    let _maker = create_legacy_database("squatted").await;
    let admin = admin(superuser());
    let tenant = database("squatted");
    let plan = admin
        .plan_adoption(&tenant, &role("squatted"))
        .await
        .unwrap();
    admin.adopt(&tenant, &plan).await.unwrap();
    let inside = root("squatted").await;
    let sql = "CREATE TABLE tidegate_catalog.theirs (id int)";
    inside.batch_execute(sql).await.unwrap();
    admin
        .release_tenant(&tenant, &["squatted".to_owned()], &plan.changes)
        .await
        .unwrap();
    let left = "SELECT (SELECT count(*) FROM pg_event_trigger) || ' ' || count(*) \
                FROM pg_class WHERE relname = 'theirs'";
    assert_eq!(value(&inside, left).await, "0 1");
}

#[tokio::test]
async fn the_plan_reads_as_sql_without_secrets_and_touches_no_table() {
    let _maker = create_legacy_database("printed").await;
    let plan = admin(superuser())
        .plan_adoption(&database("printed"), &role("printed"))
        .await
        .unwrap();
    let sql = plan.script.to_string();
    for line in [
        "CREATE ROLE \"printed\" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION \
         NOBYPASSRLS PASSWORD '…';",
        "GRANT CONNECT, CREATE, TEMPORARY ON DATABASE \"printed\" TO \"printed\";",
        "GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES ON TABLE \
         \"Old Things\".\"big orders\" TO \"printed\" WITH GRANT OPTION;",
        "GRANT EXECUTE ON ROUTINE public.tidy(integer), public.twice(integer) TO \"printed\" \
         WITH GRANT OPTION;",
        "ALTER DEFAULT PRIVILEGES FOR ROLE \"printed_maker\" GRANT EXECUTE ON ROUTINES TO \
         \"printed\" WITH GRANT OPTION;",
        "GRANT CONNECT ON DATABASE \"printed\" TO \"printed_app\";",
        "REVOKE CONNECT ON DATABASE \"printed\" FROM PUBLIC;",
    ] {
        assert!(sql.contains(line), "{line}\nis not in\n{sql}");
    }
    let first = |what: &str| sql.find(what).unwrap();
    assert!(first("TO \"printed_app\"") < first("FROM PUBLIC"));
    for forbidden in ["SCRAM-SHA-256", "ALTER TABLE", "OWNER TO"] {
        assert!(!sql.contains(forbidden), "{forbidden} in\n{sql}");
    }
}

#[tokio::test]
async fn reserved_databases_and_foreign_roles_are_refused() {
    let admin = admin(superuser());
    let root = root("postgres").await;
    root.batch_execute("CREATE ROLE refused").await.unwrap();
    root.batch_execute("CREATE DATABASE refused").await.unwrap();
    root.batch_execute("CREATE DATABASE a_template IS_TEMPLATE true")
        .await
        .unwrap();
    for name in [
        "postgres",
        "template0",
        "template1",
        "tidegate",
        "a_template",
    ] {
        let error = admin
            .plan_adoption(&database(name), &role("new"))
            .await
            .unwrap_err();
        assert!(matches!(error, Error::Reserved { .. }), "{name}: {error}");
    }
    let error = admin
        .plan_adoption(&database("refused"), &role("refused"))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::RoleExists(_)), "{error}");
    let error = admin
        .plan_adoption(&database("no_such"), &role("no_such"))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::NoDatabase(_)), "{error}");
    root.batch_execute("ALTER DATABASE a_template IS_TEMPLATE false")
        .await
        .unwrap();
}

#[tokio::test]
async fn an_administrator_without_the_owners_privileges_gets_the_missing_grants() {
    let admin = admin(service_admin("svc_lacking").await);
    let _maker = create_legacy_database("lacking").await;
    let tenant = database("lacking");
    let error = admin
        .plan_adoption(&tenant, &role("lacking"))
        .await
        .unwrap_err();
    let Error::MissingRight { sql, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(sql, ["GRANT \"lacking_maker\" TO \"svc_lacking\";"]);

    let root = root("lacking").await;
    // The report names an object of a superuser.
    root.batch_execute("CREATE TABLE of_root (id int)")
        .await
        .unwrap();
    let error = admin.plan_adoption(&tenant, &role("lacking")).await;
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("is a superuser, and so is every role that may act for it"),
        "{error}"
    );
    root.batch_execute("DROP TABLE of_root").await.unwrap();
    root.batch_execute(&sql.join("\n")).await.unwrap();
    let before = rights("lacking").await;
    let plan = admin
        .plan_adoption(&tenant, &role("lacking"))
        .await
        .unwrap();
    admin.adopt(&tenant, &plan).await.unwrap();
    let owner = user("lacking", "lacking").await.unwrap();
    assert_eq!(
        value(&owner, "SELECT count(*)::text FROM orders").await,
        "2"
    );
    admin
        .release_tenant(&tenant, &["lacking".to_owned()], &plan.changes)
        .await
        .unwrap();
    assert_eq!(rights("lacking").await, before);
}

#[tokio::test]
async fn what_belongs_to_an_extension_is_left_alone() {
    let root = root("postgres").await;
    root.batch_execute("CREATE DATABASE extended")
        .await
        .unwrap();
    let inside = super::fixture::root("extended").await;
    if inside
        .batch_execute("CREATE EXTENSION dblink")
        .await
        .is_err()
    {
        // dblink is a contrib module and may not be installed. The extension plpgsql always is.
        inside.batch_execute("SELECT 1").await.unwrap();
    }
    let plan = admin(superuser())
        .plan_adoption(&database("extended"), &role("extended"))
        .await
        .unwrap();
    let sql = plan.script.to_string();
    assert!(!sql.contains("dblink") && !sql.contains("plpgsql"), "{sql}");
}

#[tokio::test]
async fn a_tenant_without_records_is_adopted_again() {
    let config = service_admin("svc_again").await;
    let tenant = database("again");
    let before = admin(config.clone());
    before.create_tenant(&tenant).await.unwrap();
    before.create_user(&tenant, &role("again/x")).await.unwrap();
    let owner = user("again", "again").await.unwrap();
    owner
        .batch_execute("CREATE TABLE t (id int); INSERT INTO t VALUES (7)")
        .await
        .unwrap();
    let root = root("postgres").await;
    root.batch_execute("ALTER ROLE again PASSWORD 'of another key'")
        .await
        .unwrap();
    root.batch_execute("ALTER ROLE \"again/x\" PASSWORD 'of another key'")
        .await
        .unwrap();

    let after = admin(config);
    let plan = after.plan_adoption(&tenant, &role("again")).await.unwrap();
    after.adopt(&tenant, &plan).await.unwrap();
    after.create_user(&tenant, &role("again/x")).await.unwrap();
    let owner = user("again", "again").await.unwrap();
    assert_eq!(value(&owner, "SELECT id::text FROM public.t").await, "7");
    assert_eq!(plan.changes, []);
    user("again", "again/x").await.unwrap();
}
