use std::time::{Duration, Instant};

use tidegate_admin::doctor::{FeedLogin, Finding, Severity};
use tidegate_embedded::{Cluster, testing};
use tidegate_postgres::Connection;
use tidegate_wire::{Config, Secret, StartupParameters};

use super::fixture::{
    admin, connect, database, grant_the_template, record_tenant, refusal, role, root,
    service_admin, superuser, value,
};

/// Whether the finding names roles of other tests on the same cluster, as it does from PostgreSQL
/// 16 on.
fn is_of_other_tests(finding: &Finding) -> bool {
    finding.text == "the administrator has no ADMIN OPTION on some users' roles"
}

fn bad(findings: &[Finding]) -> Vec<&Finding> {
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
        .examine(FeedLogin::Logical(&superuser()))
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
    let findings = admin.examine(FeedLogin::Logical(&config)).await.unwrap();
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
    let findings = admin.examine(FeedLogin::Logical(&config)).await.unwrap();
    assert_eq!(bad(&findings), Vec::<&Finding>::new());
}

#[tokio::test]
async fn roles_of_others_that_cannot_be_administered_are_named() {
    // The test has a cluster of its own, because the finding names every user's role in the
    // cluster.
    let cluster = Cluster::start(testing::settings()).await.unwrap();
    let maker = Config::from_url(&cluster.admin_url()).unwrap();
    let connect_to = async |user: &str, password: &str| {
        let mut login = tokio_postgres::Config::new();
        login.host("127.0.0.1").port(cluster.port());
        login.dbname("postgres").user(user).password(password);
        let (client, connection) = login.connect(tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    };
    let root = connect_to(cluster.admin_user(), cluster.admin_password()).await;
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
            .examine(FeedLogin::Logical(&config))
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
            .examine_tenants(FeedLogin::Logical(&superuser()))
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
async fn the_login_that_reads_changes_is_tried_as_a_stream_uses_it() {
    // The test has a cluster of its own, whose WAL senders are all in use.
    let cluster = Cluster::start(testing::settings()).await.unwrap();
    let config = Config::from_url(&cluster.admin_url()).unwrap();
    let admin = admin(config.clone());
    assert_eq!(
        admin
            .why_no_changes(FeedLogin::Logical(&config))
            .await
            .unwrap(),
        None
    );
    let startup = StartupParameters {
        defaults: vec![("replication".to_owned(), "true".to_owned())],
        ..StartupParameters::default()
    };
    let (role, password) = (cluster.admin_user(), cluster.admin_password());
    let mut senders = Vec::new();
    while let Ok(sender) = Connection::open(&config, "", role, password, &startup).await {
        senders.push(sender);
        assert!(senders.len() < 100, "the cluster has no end of senders");
    }
    let why = admin
        .why_no_changes(FeedLogin::Logical(&config))
        .await
        .unwrap()
        .unwrap();
    assert!(why.contains("cannot log in to read changes"), "{why}");
    assert!(why.contains("max_wal_senders"), "{why}");
}

#[tokio::test]
async fn outboxes_need_nothing_of_the_server() {
    let settings = testing::settings().with("wal_level", "minimal");
    let settings = settings.with("max_wal_senders", "0");
    let cluster = Cluster::start(settings).await.unwrap();
    let config = Config::from_url(&cluster.admin_url()).unwrap();
    let admin = admin(config.clone());
    assert_eq!(admin.why_no_changes(FeedLogin::Outbox).await.unwrap(), None);
    let findings = admin.examine(FeedLogin::Outbox).await.unwrap();
    let speaks = |word: &str| findings.iter().any(|finding| finding.text.contains(word));
    assert!(speaks("outboxes") && !speaks("wal_level") && !speaks("slots"));
    let logical = FeedLogin::Logical(&config);
    let why = admin.why_no_changes(logical).await.unwrap().unwrap();
    assert!(why.contains("wal_level"), "{why}");
}

#[tokio::test]
async fn an_outbox_needs_to_know_where_it_is() {
    let mut config = service_admin("svc_place").await;
    let service = admin(config.clone());
    service.create_tenant(&database("place")).await.unwrap();
    record_tenant("place_control", "place", None).await;
    config.control_database = database("place_control");
    let admin = admin(config);
    let inside = root("place").await;
    let revoke = "REVOKE EXECUTE ON FUNCTION pg_walfile_name(pg_lsn) FROM PUBLIC";
    inside.batch_execute(revoke).await.unwrap();
    let of_outbox = async || {
        let findings = admin.examine_tenants(FeedLogin::Outbox).await.unwrap();
        let mut findings = findings.into_iter();
        let is_about_it = |finding: &Finding| finding.text.contains("database place can have");
        findings.find(is_about_it).unwrap()
    };
    let found = of_outbox().await;
    assert_eq!(found.severity, Severity::Advice);
    let sql = found.sql.unwrap();
    // The first line is a `\connect` command.
    let grant = sql.split_once('\n').unwrap().1;
    inside.batch_execute(grant).await.unwrap();
    assert_eq!(of_outbox().await.severity, Severity::Good);
}

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
        .examine(FeedLogin::Logical(&superuser()))
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
        .examine(FeedLogin::Logical(&superuser()))
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
    let feed = FeedLogin::Outbox;
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
    let findings = admin.examine_tenants(FeedLogin::Logical(&reader)).await;
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

#[tokio::test]
async fn an_administrator_that_cannot_log_in_is_an_error_without_its_password() {
    let config = superuser().with_login("nobody_here", Secret::new("hunter2"));
    let error = admin(config.clone())
        .examine(FeedLogin::Logical(&config))
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
        let found = admin.examine_tenants(FeedLogin::Outbox).await.unwrap();
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
        admin.limit_shared(&guest, shared).await.unwrap();
        assert_eq!(found().await.severity, severity, "{shared}");
    }
    let own = "ALTER ROLE \"unbounded/guest\" SET temp_file_limit = '7MB'";
    root("postgres").await.batch_execute(own).await.unwrap();
    for shared in [true, false] {
        admin.limit_shared(&guest, shared).await.unwrap();
        let set = "SELECT setconfig::text FROM pg_db_role_setting s JOIN pg_roles r \
                   ON r.oid = s.setrole WHERE rolname = 'unbounded/guest'";
        let set = value(&root("postgres").await, set).await;
        assert_eq!(set, "{temp_file_limit=7MB}");
    }
}
