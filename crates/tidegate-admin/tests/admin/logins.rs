//! Roles whose login PostgreSQL refuses, their repair, and the settings with which sessions of a
//! shared role start.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_admin::{Admin, RoleCredentials};
use tidegate_embedded::Cluster;
use tidegate_pool::{Connector as _, OpenError, Pool, PoolKey, Settings};
use tidegate_postgres::{Connection, Credential, Credentials as _, RoleConnector};
use tidegate_service::ServiceConnections;
use tidegate_sql::{Error, Executor, Login, LoginRefused, RoleUse};
use tidegate_wire::backoff::Jitter;
use tidegate_wire::{Config, ConnectError, ConnectFault};
use tokio_postgres::Client;

use super::fixture::{
    admin as administrator, database, passwords, role, root, service_admin, superuser, user, value,
};

/// A cluster of its own with a tenant, whose owner's role anonymous callers share.
struct LoginFixture {
    cluster: Cluster,
    admin: Admin,
    config: Arc<Config>,
    control: Arc<ServiceConnections>,
    credentials: Arc<RoleCredentials>,
}

impl LoginFixture {
    async fn new() -> Self {
        let settings = tidegate_embedded::testing::settings();
        let settings = settings.with("shared_preload_libraries", "plpgsql");
        let cluster = Cluster::start(settings).await.unwrap();
        let config = Config::from_url(&cluster.admin_url()).unwrap();
        let passwords = passwords();
        let admin = Admin::new(config.clone(), passwords.clone());
        admin.prepare_control_database().await.unwrap();
        admin.create_tenant(&database("shop")).await.unwrap();
        let config = Arc::new(config);
        let control = Arc::new(ServiceConnections::new(config.clone(), Jitter::none()).unwrap());
        let version = admin.server().await.unwrap().version;
        let service: Arc<dyn Executor> = control.clone();
        let credentials = RoleCredentials::new(service, passwords, version).unwrap();
        Self {
            cluster,
            admin,
            config,
            control,
            credentials: Arc::new(credentials),
        }
    }

    fn key() -> PoolKey {
        PoolKey {
            database: database("shop"),
            role: role("shop"),
            trusted: false,
        }
    }

    async fn root(&self) -> Client {
        tidegate_testkit::connect(&self.cluster.url("shop")).await
    }

    async fn open(&self) -> Result<Connection, ConnectError> {
        let Credential {
            password, startup, ..
        } = self.credentials.of(&Self::key(), true).await.unwrap();
        Connection::open(&self.config, "shop", "shop", password.reveal(), &startup).await
    }

    fn connector(&self) -> RoleConnector {
        let (config, control) = (self.config.clone(), self.control.clone());
        RoleConnector::new(config, self.credentials.clone(), control)
    }

    /// Repairs the login as `tidegate user repair` does for a role that anonymous callers share.
    async fn repair(&self) -> tidegate_admin::Result<Vec<String>> {
        let (key, connector) = (Self::key(), self.connector());
        self.admin.repair_login(&connector, &key, true).await
    }

    /// Opens a connection as the pool does for anonymous callers.
    async fn acquire(&self) -> tidegate_sql::Result<()> {
        self.acquire_for(RoleUse::Anonymous).await
    }

    async fn acquire_for(&self, role_use: RoleUse) -> tidegate_sql::Result<()> {
        let pool = Pool::new(self.connector(), Settings::default(), Jitter::none());
        let login = Login {
            database: database("shop"),
            role: role("shop"),
            role_use,
        };
        pool.acquire(&login).await.map(drop)
    }

    /// Lets roles log in with MD5 hashes of their passwords.
    async fn allow_md5(&self) {
        let root = self.root().await;
        let path = PathBuf::from(value(&root, "SHOW hba_file").await);
        let owner = std::fs::metadata(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("scram-sha-256", "md5")).unwrap();
        chown(&path, Some(owner.uid()), Some(owner.gid())).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        root.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    }
}

/// A value that is invalid for a library loaded by the server makes PostgreSQL refuse the login.
#[tokio::test]
async fn settings_of_a_library_that_a_shared_role_made_let_it_in() {
    let fixture = LoginFixture::new().await;
    let root = fixture.root().await;
    // The role itself makes the first setting, an operator makes the others.
    let as_role = "SET SESSION AUTHORIZATION shop; \
        ALTER ROLE shop SET plpgsql.print_strict_params = on; RESET SESSION AUTHORIZATION";
    let as_operator = "ALTER ROLE shop SET plpgsql.variable_conflict = 'use_column'; \
        ALTER ROLE shop SET unknown.setting = 'x'; \
        ALTER ROLE ALL IN DATABASE shop SET plpgsql.extra_warnings = 'too_many_rows'; \
        ALTER ROLE shop SET plpgsql.extra_warnings = 'all'";
    root.batch_execute(as_role).await.unwrap();
    root.batch_execute(as_operator).await.unwrap();
    // The library no longer has this setting.
    let stale = "UPDATE pg_db_role_setting SET setconfig = setconfig || '{plpgsql.gone=1}' \
        WHERE setrole = 'shop'::regrole";
    root.batch_execute(stale).await.unwrap();
    let credential = fixture
        .credentials
        .of(&LoginFixture::key(), true)
        .await
        .unwrap();
    let pinned = |name: &str| {
        let mut startup = credential.startup.defaults.iter();
        startup
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    };
    assert_eq!(pinned("plpgsql.print_strict_params"), Some("off"));
    assert_eq!(pinned("plpgsql.extra_warnings"), Some("too_many_rows"));
    assert_eq!(pinned("unknown.setting"), Some(""));
    assert_eq!(pinned("plpgsql.variable_conflict"), None);
    assert_eq!(pinned("plpgsql.gone"), None);
    fixture.open().await.unwrap();
}

#[tokio::test]
async fn a_repair_resets_the_settings_that_postgresql_refuses() {
    let fixture = LoginFixture::new().await;
    let root = fixture.root().await;
    let library = "ALTER ROLE shop SET session_preload_libraries = 'no_such_library'";
    root.batch_execute(library).await.unwrap();
    let more = "ALTER ROLE shop SET temp_file_limit = '1GB'; \
        ALTER ROLE shop IN DATABASE shop SET log_statement = 'all'; \
        ALTER ROLE shop IN DATABASE shop SET session_preload_libraries = 'plpgsql, not_there'";
    root.batch_execute(more).await.unwrap();
    let refused = fixture.open().await.unwrap_err();
    assert!(
        matches!(refused, ConnectError::InvalidSettings(_)),
        "{refused}"
    );
    let reported = fixture.acquire().await.unwrap_err();
    assert!(matches!(reported, Error::Unavailable { .. }), "{reported}");
    // PostgreSQL's error names only one of the two settings at a time.
    let reset = "ALTER ROLE \"shop\" RESET \"session_preload_libraries\";";
    let reset_here =
        "ALTER ROLE \"shop\" IN DATABASE \"shop\" RESET \"session_preload_libraries\";";
    assert_eq!(fixture.repair().await.unwrap(), [reset_here, reset]);
    fixture.acquire().await.unwrap();
    assert_eq!(
        settings(&root).await,
        "log_statement=all temp_file_limit=1GB"
    );

    let Credential {
        password,
        mut startup,
        ..
    } = fixture
        .credentials
        .of(&LoginFixture::key(), true)
        .await
        .unwrap();
    for (name, value) in [("work_mem", "much"), ("no_such_setting", "1")] {
        startup.defaults = vec![(name.to_owned(), value.to_owned())];
        let opened =
            Connection::open(&fixture.config, "shop", "shop", password.reveal(), &startup).await;
        let refused = opened.unwrap_err();
        assert!(
            matches!(refused, ConnectError::InvalidSettings(_)),
            "{refused}"
        );
        assert_eq!(refused.fault(), ConnectFault::Login);
    }
    // Only an operator may change this setting, so the role is not the cause of the failure.
    startup.defaults = vec![("log_statement".to_owned(), "all".to_owned())];
    let opened =
        Connection::open(&fixture.config, "shop", "shop", password.reveal(), &startup).await;
    assert_eq!(opened.unwrap_err().fault(), ConnectFault::AccessDenied);
}

#[tokio::test]
async fn a_setting_too_long_for_a_startup_packet_affects_only_its_role() {
    let fixture = LoginFixture::new().await;
    let root = fixture.root().await;
    let long = format!(
        "ALTER ROLE shop SET search_path = {}; ALTER ROLE shop SET log_statement = 'all'",
        "a".repeat(60) + &", b".repeat(4000)
    );
    root.batch_execute(&long).await.unwrap();
    // PostgreSQL closes the connection without an error, as it does when it is down.
    let reported = fixture.acquire_for(RoleUse::User(1)).await.unwrap_err();
    let Error::Unavailable { source, .. } = reported else {
        panic!("{reported}");
    };
    assert!(source.unwrap().is::<LoginRefused>());
    let (key, connector) = (LoginFixture::key(), fixture.connector());
    let repaired = fixture.admin.repair_login(&connector, &key, false).await;
    assert_eq!(
        repaired.unwrap(),
        ["ALTER ROLE \"shop\" RESET \"search_path\";"]
    );
    assert_eq!(settings(&root).await, "log_statement=all");
    fixture.acquire_for(RoleUse::User(1)).await.unwrap();
}

/// The role's own settings in any database.
async fn settings(root: &Client) -> String {
    let sql = "SELECT string_agg(c, ' ' ORDER BY c) FROM pg_db_role_setting, unnest(setconfig) c \
        WHERE setrole = 'shop'::regrole";
    value(root, sql).await
}

#[tokio::test]
async fn a_repair_takes_nothing_from_a_role_that_the_database_keeps_out() {
    let fixture = LoginFixture::new().await;
    let root = fixture.root().await;
    let spoil = "ALTER ROLE shop SET temp_file_limit = '1GB'; \
        ALTER ROLE shop IN DATABASE shop SET log_statement = 'all'; \
        ALTER DATABASE shop SET session_preload_libraries = 'no_such_library'";
    root.batch_execute(spoil).await.unwrap();
    let refused = fixture.open().await.unwrap_err();
    assert!(
        matches!(refused, ConnectError::InvalidSettings(_)),
        "{refused}"
    );
    let reported = fixture.acquire().await.unwrap_err();
    assert!(matches!(reported, Error::Unavailable { .. }), "{reported}");
    let reported = fixture.repair().await.unwrap_err();
    assert!(
        reported.reason().contains("no_such_library"),
        "{}",
        reported.reason()
    );
    assert_eq!(
        settings(&root).await,
        "log_statement=all temp_file_limit=1GB"
    );
    let mend = "ALTER DATABASE shop RESET session_preload_libraries";
    root.batch_execute(mend).await.unwrap();
    fixture.acquire().await.unwrap();
}

#[tokio::test]
async fn a_role_that_gave_itself_an_md5_password_can_be_repaired() {
    let fixture = LoginFixture::new().await;
    fixture.allow_md5().await;
    let root = fixture.root().await;
    let spoil = "ALTER ROLE shop PASSWORD 'md5d41d8cd98f00b204e9800998ecf8427e'";
    root.batch_execute(spoil).await.unwrap();
    let began = Instant::now();
    loop {
        match fixture.open().await.unwrap_err() {
            ConnectError::Md5 => break,
            // PostgreSQL has not reloaded the file yet.
            ConnectError::Refused(actual) if actual.sqlstate == "28P01" => {}
            other => panic!("{other}"),
        }
        assert!(began.elapsed() < Duration::from_secs(30));
        tokio::task::yield_now().await;
    }
    assert!(fixture.acquire().await.is_err());
    assert!(fixture.repair().await.unwrap().is_empty());
    fixture.acquire().await.unwrap();
}

/// A connector for the tests' cluster.
async fn connector(config: Config) -> RoleConnector {
    let config = Arc::new(config);
    let control = Arc::new(ServiceConnections::new(config.clone(), Jitter::none()).unwrap());
    let passwords = passwords();
    let version = administrator((*config).clone())
        .server()
        .await
        .unwrap()
        .version;
    let service: Arc<dyn Executor> = control.clone();
    let credentials = RoleCredentials::new(service, passwords, version).unwrap();
    RoleConnector::new(config, Arc::new(credentials), control)
}

fn key(database_name: &str, role_name: &str) -> PoolKey {
    PoolKey {
        database: database(database_name),
        role: role(role_name),
        trusted: false,
    }
}

#[tokio::test]
async fn a_repair_sets_the_password_and_keeps_other_settings() {
    let config = service_admin("svc_repair").await;
    let admin = administrator(config);
    admin.create_tenant(&database("spoilt")).await.unwrap();
    let owner = user("spoilt", "spoilt").await.unwrap();
    owner
        .batch_execute(
            "ALTER ROLE spoilt PASSWORD 'mine'; ALTER ROLE spoilt SET search_path = nowhere; \
             ALTER ROLE spoilt IN DATABASE spoilt SET work_mem = '64kB'",
        )
        .await
        .unwrap();
    assert!(user("spoilt", "spoilt").await.is_err());
    let connector = connector(superuser()).await;
    let key = key("spoilt", "spoilt");
    let repaired = admin.repair_login(&connector, &key, false).await;
    assert!(repaired.unwrap().is_empty());
    let owner = user("spoilt", "spoilt").await.unwrap();
    let sql = "SELECT concat_ws(' ', current_setting('search_path'), current_setting('work_mem'))";
    assert_eq!(value(&owner, sql).await, "nowhere 64kB");
}

/// For NOLOGIN and for a wrong password PostgreSQL reports the same error.
#[tokio::test]
async fn nologin_is_distinguished_from_a_wrong_password() {
    let admin = administrator(superuser());
    let tenant = database("kept_out");
    admin.create_tenant(&tenant).await.unwrap();
    let connector = connector(superuser()).await;
    let owner = key("kept_out", "kept_out");
    let root = root("postgres").await;
    let set = |what: &'static str| {
        let root = &root;
        async move {
            let sql = format!("ALTER ROLE kept_out {what}");
            root.batch_execute(&sql).await.unwrap();
        }
    };
    set("PASSWORD 'another'").await;
    let refused = connector.open(&owner, false).await.unwrap_err();
    assert!(matches!(refused, OpenError::Login(_)), "{refused:?}");
    for (keeps_out, lets_in) in [
        ("NOLOGIN", "LOGIN"),
        ("VALID UNTIL '2020-01-01'", "VALID UNTIL 'infinity'"),
    ] {
        set(keeps_out).await;
        let refused = connector.open(&owner, false).await.unwrap_err();
        let OpenError::AccessDenied { rejection, .. } = refused else {
            panic!("{keeps_out}: {refused:?}");
        };
        assert_eq!(rejection.sqlstate, "28000", "{keeps_out}");
        let reported = admin.repair_login(&connector, &owner, false).await;
        assert!(
            matches!(reported, Err(tidegate_admin::Error::LoginRefused { .. })),
            "{reported:?}"
        );
        set(lets_in).await;
        set("PASSWORD 'another'").await;
    }
    let gone = connector.open(&key("never_made", "kept_out"), false).await;
    assert!(matches!(gone, Err(OpenError::NoDatabase)), "{gone:?}");
    let never = connector
        .open(&key("kept_out", "kept_out/never"), false)
        .await;
    assert!(
        matches!(never, Err(OpenError::AccessDenied { .. })),
        "{never:?}"
    );

    admin.repair_login(&connector, &owner, false).await.unwrap();
    user("kept_out", "kept_out").await.unwrap();
    let never = key("kept_out", "kept_out/never");
    let reported = admin.repair_login(&connector, &never, false).await;
    assert!(
        matches!(reported, Err(tidegate_admin::Error::NoRole(_))),
        "{reported:?}"
    );
    let foreign = key("kept_out", "postgres");
    let reported = admin.repair_login(&connector, &foreign, false).await;
    assert!(
        matches!(reported, Err(tidegate_admin::Error::RoleNotManaged(_))),
        "{reported:?}"
    );
}
