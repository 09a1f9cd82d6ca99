use std::time::{Duration, Instant};

use tidegate_admin::doctor::{ChangeSource, Finding, Severity};
use tidegate_embedded::{Cluster, testing};
use tidegate_testkit::connect_as;
use tidegate_wire::{Config, Secret};

use super::fixture::{
    admin, database, grant_the_template, record_tenant, refusal, role, root, service_admin,
    superuser, value,
};

/// Whether the finding names roles of other tests on the same cluster, as it does from PostgreSQL
/// 16 on.
fn is_of_other_tests(finding: &Finding) -> bool {
    finding.text == "the administrator has no ADMIN OPTION on some users' roles"
}

pub(super) fn bad(findings: &[Finding]) -> Vec<&Finding> {
    findings
        .iter()
        .filter(|finding| !is_of_other_tests(finding))
        .filter(|finding| finding.severity == Severity::Missing)
        .collect()
}

#[tokio::test]
async fn a_sufficient_administrator_lacks_nothing() {
    let config = service_admin("svc_well").await;
    let findings = admin(config.clone())
        .examine(ChangeSource::Logical(&superuser()))
        .await
        .unwrap();
    assert_eq!(bad(&findings), Vec::<&Finding>::new());
    let texts: Vec<_> = findings
        .iter()
        .map(|finding| finding.text.as_str())
        .collect();
    let root = root("postgres").await;
    let major = "SELECT current_setting('server_version_num')::int / 10000 || ''";
    let version = format!("PostgreSQL {}", value(&root, major).await);
    for text in [
        version.as_str(),
        "roles of users can log in",
        "a wrong password is refused",
        "changes can be read",
        "wal_level is logical",
    ] {
        assert!(texts.contains(&text), "{text} is not in {texts:?}");
    }
    // Other tests create and drop such roles too.
    let left = "SELECT count(*)::text FROM pg_roles WHERE rolname LIKE 'tidegate_doctor%'";
    let deadline = Instant::now() + Duration::from_secs(30);
    while value(&root, left).await != "0" {
        assert!(
            Instant::now() < deadline,
            "a role of a check was left behind"
        );
    }
}

#[tokio::test]
async fn the_printed_sql_sets_right_what_is_missing() {
    let root = root("postgres").await;
    root.batch_execute("CREATE ROLE svc_poor LOGIN PASSWORD 'service'")
        .await
        .unwrap();
    let config = superuser().with_login("svc_poor", Secret::new("service"));
    let admin = admin(config.clone());
    let findings = admin.examine(ChangeSource::Logical(&config)).await.unwrap();
    assert!(bad(&findings).len() >= 4, "{findings:?}");
    for finding in findings
        .iter()
        .filter(|finding| finding.severity != Severity::Good && !is_of_other_tests(finding))
    {
        // Other tests' administrators connect to `postgres` as members of PUBLIC.
        let shared = finding
            .text
            .starts_with("every role may connect to postgres");
        for sql in finding
            .sql
            .iter()
            .filter(|sql| sql.contains("svc_poor") && !shared)
        {
            for statement in sql.lines() {
                // Before PostgreSQL 15 the finding changes `template1`, which all tests share. A
                // role of which all administrators are members gets the privilege instead.
                if statement == "\\connect template1" {
                    grant_the_template("svc_poor").await;
                    break;
                }
                root.batch_execute(statement).await.unwrap();
            }
        }
    }
    let findings = admin.examine(ChangeSource::Logical(&config)).await.unwrap();
    assert_eq!(bad(&findings), Vec::<&Finding>::new());
}

#[tokio::test]
async fn roles_of_others_that_cannot_be_administered_are_named() {
    // The test has a cluster of its own, because the finding names every user's role in the
    // cluster.
    let cluster = Cluster::start(testing::settings()).await.unwrap();
    let maker = Config::from_url(&cluster.admin_url()).unwrap();
    let url = cluster.admin_url();
    let connect_to =
        async |user: &str, password: &str| connect_as(&url, user, password).await.unwrap();
    let root = tidegate_testkit::connect(&url).await;
    let service = "CREATE ROLE \"a \"\"service\" LOGIN CREATEROLE CREATEDB PASSWORD 'service'; \
                   GRANT pg_signal_backend, pg_read_all_stats TO \"a \"\"service\"";
    root.batch_execute(service).await.unwrap();
    // After a superuser has restored a backup, the administrator is not a member of the roles.
    let superuser = admin(maker.clone());
    superuser.create_tenant(&database("came")).await.unwrap();
    let came = (database("came"), role("came/ann"));
    superuser.create_user(&came.0, &came.1).await.unwrap();
    let config = maker.with_login("a \"service", Secret::new("service"));
    let service = admin(config.clone());
    let found = async || {
        let mut findings = service
            .examine(ChangeSource::Logical(&config))
            .await
            .unwrap()
            .into_iter();
        findings.find(|finding| {
            let texts = ["administers every user's role", "no ADMIN OPTION on some"];
            texts.iter().any(|text| finding.text.contains(text))
        })
    };
    if cluster.version().major < 16 {
        assert_eq!(found().await, None, "CREATEROLE reaches every role");
        return;
    }
    let missing = found().await.unwrap();
    assert_eq!(missing.severity, Severity::Missing, "{missing:?}");
    let sql = missing.sql.unwrap();
    assert_eq!(
        sql,
        "GRANT \"came\" TO \"a \"\"service\" WITH ADMIN TRUE, INHERIT FALSE, SET FALSE;\n\
         GRANT \"came/$authenticator1\" TO \"a \"\"service\" \
         WITH ADMIN TRUE, INHERIT FALSE, SET FALSE;\n\
         GRANT \"came/ann\" TO \"a \"\"service\" WITH ADMIN TRUE, INHERIT FALSE, SET FALSE;"
    );
    let set = "ALTER ROLE \"came/ann\" RESET ALL";
    let acting = connect_to("a \"service", "service").await;
    assert_eq!(refusal(&acting, set).await, "42501");
    root.batch_execute(&sql).await.unwrap();
    assert_eq!(found().await.unwrap().severity, Severity::Good);
    acting.batch_execute(set).await.unwrap();
}

#[tokio::test]
async fn a_database_that_cannot_be_entered_is_named_with_what_opens_it() {
    let maker = admin(superuser());
    maker.create_tenant(&database("shut")).await.unwrap();
    let service = admin(service_admin("svc_shut").await);
    let of_shut = async || {
        let findings = service
            .examine_tenants(ChangeSource::Logical(&superuser()))
            .await
            .unwrap();
        let mut of_it = findings.into_iter().filter(|finding| {
            let text = &finding.text;
            text.contains("database shut ") || text.contains("in shut,")
        });
        of_it.next().unwrap()
    };
    let closed = of_shut().await;
    assert_eq!(closed.severity, Severity::Advice, "{closed:?}");
    assert!(closed.text.contains("cannot be opened"), "{closed:?}");
    let root = root("postgres").await;
    root.batch_execute(&closed.sql.unwrap()).await.unwrap();
    assert_eq!(of_shut().await.severity, Severity::Good);
}

#[tokio::test]
async fn an_administrator_that_cannot_log_in_is_an_error_without_its_password() {
    let config = superuser().with_login("nobody_here", Secret::new("hunter2"));
    let error = admin(config.clone())
        .examine(ChangeSource::Logical(&config))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("as nobody_here"), "{error}");
    assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
}

#[tokio::test]
async fn default_users_whose_temporary_files_nothing_bounds_are_named() {
    let mut config = superuser();
    config.control_database = database("unbounded_control");
    let admin = admin(config);
    admin.create_tenant(&database("unbounded")).await.unwrap();
    let guest = role("unbounded/guest");
    admin
        .create_user(&database("unbounded"), &guest)
        .await
        .unwrap();
    record_tenant(
        "unbounded_control",
        "unbounded",
        Some((guest.as_str(), "all")),
    )
    .await;
    let inside = root("unbounded_control").await;
    let shared = "UPDATE tidegate.users SET default_user = true";
    inside.batch_execute(shared).await.unwrap();
    let found = async || {
        let found = admin.examine_tenants(ChangeSource::Outbox).await.unwrap();
        let about = |finding: &Finding| finding.text.contains("temporary files of default users");
        found.into_iter().find(about).unwrap()
    };
    let unbounded = found().await;
    assert_eq!(unbounded.severity, Severity::Advice, "{unbounded:?}");
    let sql = "ALTER ROLE \"unbounded/guest\" SET temp_file_limit = '1GB';";
    assert_eq!(unbounded.sql.as_deref(), Some(sql));
    root("postgres").await.batch_execute(sql).await.unwrap();
    assert_eq!(found().await.severity, Severity::Good);
    // The limit that an operator has set stays; the one that the service has set is removed.
    for (shared, severity) in [
        (false, Severity::Advice),
        (true, Severity::Good),
        (false, Severity::Advice),
    ] {
        admin.set_shared(&guest, shared).await.unwrap();
        assert_eq!(found().await.severity, severity, "{shared}");
    }
    let own = "ALTER ROLE \"unbounded/guest\" SET temp_file_limit = '7MB'";
    root("postgres").await.batch_execute(own).await.unwrap();
    for shared in [true, false] {
        admin.set_shared(&guest, shared).await.unwrap();
        let set = "SELECT setconfig::text FROM pg_db_role_setting s JOIN pg_roles r \
                   ON r.oid = s.setrole WHERE rolname = 'unbounded/guest'";
        let set = value(&root("postgres").await, set).await;
        assert_eq!(set, "{temp_file_limit=7MB}");
    }
}
