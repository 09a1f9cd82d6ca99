//! What the doctor finds about the control database.

use tidegate_admin::doctor::{ChangeSource, Finding, Severity};
use tidegate_wire::{Config, Secret};

use super::doctor::bad;
use super::fixture::{
    admin, connect, database, record_tenant, role, root, service_admin, superuser, value,
};

#[tokio::test]
async fn rights_inside_the_control_database_are_checked() {
    let mut config = service_admin("svc_inside").await;
    config.control_database = database("inside_control");
    let root_home = root("postgres").await;
    root_home
        .batch_execute("CREATE DATABASE inside_control")
        .await
        .unwrap();
    root_home
        .batch_execute(
            "REVOKE ALL ON DATABASE inside_control FROM PUBLIC; \
             GRANT CONNECT, CREATE ON DATABASE inside_control TO svc_inside",
        )
        .await
        .unwrap();
    let inside = root("inside_control").await;
    let made = "CREATE SCHEMA tidegate; CREATE TABLE tidegate.users (id int)";
    inside.batch_execute(made).await.unwrap();
    let admin = admin(config.clone());
    let findings = admin
        .examine(ChangeSource::Logical(&superuser()))
        .await
        .unwrap();
    let [missing] = &bad(&findings)[..] else {
        panic!("{findings:?}")
    };
    assert!(
        missing.text.contains("all that is in the control"),
        "{missing:?}"
    );
    let sql = missing.sql.as_ref().unwrap();
    for line in sql.lines().filter(|line| line.starts_with("GRANT")) {
        inside.batch_execute(line).await.unwrap();
    }
    let findings = admin
        .examine(ChangeSource::Logical(&superuser()))
        .await
        .unwrap();
    assert_eq!(bad(&findings), Vec::<&Finding>::new());
    let owner = |finding: &&Finding| finding.text.contains("does not own what is in the control");
    assert!(
        findings.iter().any(|finding| owner(&finding)),
        "{findings:?}"
    );
}

/// The findings about the control database.
async fn of_control(config: &Config) -> Vec<Finding> {
    let feed = ChangeSource::Outbox;
    let findings = admin(config.clone()).examine(feed).await.unwrap();
    let of_it = |finding: &Finding| finding.text.contains("control database");
    findings.into_iter().filter(of_it).collect()
}

#[tokio::test]
async fn a_control_database_of_others_is_left_as_it_is() {
    let mut config = service_admin("svc_others").await;
    let root_home = root("postgres").await;
    root_home
        .batch_execute("CREATE DATABASE others_app")
        .await
        .unwrap();
    let inside = root("others_app").await;
    let table = "CREATE TABLE bills (a int)";
    inside.batch_execute(table).await.unwrap();
    for name in ["others_app", "postgres", "template0"] {
        config.control_database = database(name);
        let findings = of_control(&config).await;
        let [only] = &findings[..] else {
            panic!("{name}: {findings:?}");
        };
        assert_eq!(only.severity, Severity::Missing, "{only:?}");
        assert!(only.text.contains("cannot be the control"), "{only:?}");
        assert_eq!(only.sql, None);
    }
}

#[tokio::test]
async fn users_are_kept_out_of_the_control_database_by_what_it_names() {
    let mut config = service_admin("svc_named").await;
    let service = admin(config.clone());
    let (tenant, ann) = (database("named"), role("named/ann"));
    service.create_tenant(&tenant).await.unwrap();
    service.create_user(&tenant, &ann).await.unwrap();
    config.control_database = database("named_control");
    let prepared = admin(config.clone()).prepare_control_database().await;
    prepared.unwrap();
    // This schema marks the database as the service's own.
    let inside = root("named_control").await;
    let schema = "CREATE SCHEMA tidegate AUTHORIZATION svc_named";
    inside.batch_execute(schema).await.unwrap();
    let rights = "CREATE ROLE named_staff; GRANT named_staff TO \"named/ann\"; \
                  GRANT CONNECT ON DATABASE named_control TO named_staff, \"named/ann\"";
    inside.batch_execute(rights).await.unwrap();

    let findings = of_control(&config).await;
    let missing = bad(&findings);
    let [named] = &missing[..] else {
        panic!("{findings:?}");
    };
    assert!(named.text.contains("the users named/ann may"), "{named:?}");
    let sql = named.sql.as_ref().unwrap();
    inside.batch_execute(sql).await.unwrap();
    // A role that may connect through an operator's role is reported once, as advice.
    let findings = of_control(&config).await;
    assert_eq!(bad(&findings), Vec::<&Finding>::new());
    let reported = |finding: &Finding| {
        finding.severity == Severity::Advice && finding.text.contains("named/ann may connect")
    };
    assert!(findings.iter().any(reported), "{findings:?}");
    inside
        .batch_execute("REVOKE named_staff FROM \"named/ann\"")
        .await
        .unwrap();
    let findings = of_control(&config).await;
    let closed = |finding: &Finding| finding.text.contains("is closed to users");
    assert!(findings.iter().any(closed), "{findings:?}");
}

#[tokio::test]
async fn what_closes_an_open_database_leaves_the_service_in() {
    let mut config = service_admin("svc_closing").await;
    let root_home = root("postgres").await;
    let logins = "CREATE ROLE svc_closing_reader LOGIN REPLICATION PASSWORD 'service'; \
                  CREATE ROLE closing LOGIN; COMMENT ON ROLE closing IS 'made by Tidegate'";
    root_home.batch_execute(logins).await.unwrap();
    // The database belongs to the superuser, as after a restore with --no-owner.
    root_home
        .batch_execute("CREATE DATABASE closing")
        .await
        .unwrap();
    config.control_database = database("closing_control");
    record_tenant("closing_control", "closing", None).await;
    let reader = superuser().with_login("svc_closing_reader", Secret::new("service"));
    let admin = admin(config);
    let findings = admin.examine_tenants(ChangeSource::Logical(&reader)).await;
    let mut findings = findings.unwrap().into_iter();
    let open = findings.find(|finding| finding.text.starts_with("everybody may connect"));
    let sql = open.unwrap().sql.unwrap();
    root_home.batch_execute(&sql).await.unwrap();

    for login in ["svc_closing", "svc_closing_reader"] {
        connect("closing", login, "service").await.unwrap();
    }
    let connects = "SELECT concat_ws(' ', \
        has_database_privilege('public', 'closing', 'CONNECT'), \
        has_database_privilege('closing', 'closing', 'CONNECT'), \
        has_database_privilege('svc_closing', 'closing', 'CONNECT WITH GRANT OPTION'), \
        has_database_privilege('svc_closing', 'closing', 'CREATE'))";
    assert_eq!(value(&root_home, connects).await, "f t t t");
}
