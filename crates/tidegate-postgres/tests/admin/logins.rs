//! Roles that spoil their own login, and what the sessions of a shared role begin with.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_embedded::Cluster;
use tidegate_postgres::admin::{Admin, RoleCredentials, RolePasswords};
use tidegate_postgres::backoff::Jitter;
use tidegate_postgres::control::Control;
use tidegate_postgres::pool::{Key, LoginFault, Pool, Repair as _, Repaired, Settings};
use tidegate_postgres::{
    Config, ConnectError, ConnectFault, Connection, Credential, Credentials as _, RoleConnector,
};
use tidegate_sql::{Error, Executor, Login, Rejection, Sharing};
use tokio_postgres::{Client, NoTls};

use super::fixture::{SECRET, admin, database, role, root, service_admin, superuser, user, value};

/// A cluster of its own with a tenant, whose owner's role strangers share.
struct Place {
    cluster: Cluster,
    admin: Admin,
    config: Arc<Config>,
    control: Arc<Control>,
    credentials: Arc<RoleCredentials>,
}

impl Place {
    async fn new() -> Self {
        let settings = tidegate_embedded::testing::settings();
        let settings = settings.with("shared_preload_libraries", "plpgsql");
        let cluster = Cluster::start(settings).await.unwrap();
        let config = Config::from_url(&cluster.admin_url()).unwrap();
        let passwords = RolePasswords::new(SECRET, || [5; 16]);
        let admin = Admin::new(config.clone(), passwords.clone());
        admin.prepare_control_database().await.unwrap();
        admin.create_tenant(&database("shop")).await.unwrap();
        let config = Arc::new(config);
        let control = Arc::new(Control::new(config.clone(), Jitter::none()).unwrap());
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

    fn key() -> Key {
        Key {
            database: database("shop"),
            role: role("shop"),
            trusted: false,
        }
    }

    async fn root(&self) -> Client {
        let url = self.cluster.url("shop");
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }

    async fn open(&self) -> Result<Connection, ConnectError> {
        let Credential { password, pins, .. } =
            self.credentials.of(&Self::key(), true).await.unwrap();
        Connection::open(&self.config, "shop", "shop", password.reveal(), &pins).await
    }

    /// Opens a connection as the service does for strangers.
    async fn acquire(&self) -> tidegate_sql::Result<()> {
        self.acquire_for(Sharing::Strangers).await
    }

    async fn acquire_for(&self, sharing: Sharing) -> tidegate_sql::Result<()> {
        let (config, control) = (self.config.clone(), self.control.clone());
        let connector = RoleConnector::new(config, self.credentials.clone(), control);
        let repair = Arc::new(self.admin.clone());
        let pool = Pool::new(connector, repair, Settings::default(), Jitter::none());
        let login = Login {
            database: database("shop"),
            role: role("shop"),
            sharing,
        };
        pool.acquire(&login).await.map(drop)
    }

    /// Lets roles log in by the MD5 hashes of their passwords, where they have one.
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

/// PostgreSQL refuses a login with a value that a library, loaded with the server, finds wrong.
#[tokio::test]
async fn settings_of_a_library_that_a_shared_role_made_let_it_in() {
    let place = Place::new().await;
    let root = place.root().await;
    // The first as the role itself, the others as an operator.
    let as_role = "SET SESSION AUTHORIZATION shop; \
        ALTER ROLE shop SET plpgsql.print_strict_params = on; RESET SESSION AUTHORIZATION";
    let as_operator = "ALTER ROLE shop SET plpgsql.variable_conflict = 'use_column'; \
        ALTER ROLE shop SET unknown.setting = 'x'; \
        ALTER ROLE ALL IN DATABASE shop SET plpgsql.extra_warnings = 'too_many_rows'; \
        ALTER ROLE shop SET plpgsql.extra_warnings = 'all'";
    root.batch_execute(as_role).await.unwrap();
    root.batch_execute(as_operator).await.unwrap();
    // What a library had once and has no more.
    let stale = "UPDATE pg_db_role_setting SET setconfig = setconfig || '{plpgsql.gone=1}' \
        WHERE setrole = 'shop'::regrole";
    root.batch_execute(stale).await.unwrap();
    let credential = place.credentials.of(&Place::key(), true).await.unwrap();
    let pinned = |name: &str| {
        let mut pins = credential.pins.defaults.iter();
        pins.find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    };
    assert_eq!(pinned("plpgsql.print_strict_params"), Some("off"));
    assert_eq!(pinned("plpgsql.extra_warnings"), Some("too_many_rows"));
    assert_eq!(pinned("unknown.setting"), Some(""));
    assert_eq!(pinned("plpgsql.variable_conflict"), None);
    assert_eq!(pinned("plpgsql.gone"), None);
    place.open().await.unwrap();
}

#[tokio::test]
async fn a_login_that_settings_spoil_is_repaired() {
    let place = Place::new().await;
    let root = place.root().await;
    let library = "ALTER ROLE shop SET session_preload_libraries = 'no_such_library'";
    root.batch_execute(library).await.unwrap();
    let more = "ALTER ROLE shop SET temp_file_limit = '1GB'; \
        ALTER ROLE shop IN DATABASE shop SET log_statement = 'all'; \
        ALTER ROLE shop IN DATABASE shop SET session_preload_libraries = 'plpgsql, not_there'";
    root.batch_execute(more).await.unwrap();
    let refused = place.open().await.unwrap_err();
    assert!(matches!(refused, ConnectError::Spoilt(_)), "{refused}");
    // One of the two counts at a time.
    assert!(place.acquire().await.is_err());
    place.acquire().await.unwrap();
    assert_eq!(
        settings(&root).await,
        "log_statement=all temp_file_limit=1GB"
    );

    let Credential {
        password, mut pins, ..
    } = place.credentials.of(&Place::key(), true).await.unwrap();
    for (name, value) in [("work_mem", "much"), ("no_such_setting", "1")] {
        pins.defaults = vec![(name.to_owned(), value.to_owned())];
        let opened =
            Connection::open(&place.config, "shop", "shop", password.reveal(), &pins).await;
        let refused = opened.unwrap_err();
        assert!(matches!(refused, ConnectError::Spoilt(_)), "{refused}");
        assert_eq!(refused.fault(), ConnectFault::Login);
    }
    // Of those, what is for an operator to say is not repaired.
    pins.defaults = vec![("log_statement".to_owned(), "all".to_owned())];
    let opened = Connection::open(&place.config, "shop", "shop", password.reveal(), &pins).await;
    assert_eq!(opened.unwrap_err().fault(), ConnectFault::Barred);
}

#[tokio::test]
async fn a_setting_that_is_too_long_to_begin_with_keeps_nobody_else_out() {
    let place = Place::new().await;
    let root = place.root().await;
    let long = format!(
        "ALTER ROLE shop SET search_path = {}; ALTER ROLE shop SET log_statement = 'all'",
        "a".repeat(60) + &", b".repeat(4000)
    );
    root.batch_execute(&long).await.unwrap();
    // PostgreSQL would hang up without a word, as if it were away for everybody.
    place.acquire_for(Sharing::One(1)).await.unwrap();
    assert_eq!(settings(&root).await, "log_statement=all");
}

/// The role's own settings, for whatever database.
async fn settings(root: &Client) -> String {
    let sql = "SELECT string_agg(c, ' ' ORDER BY c) FROM pg_db_role_setting, unnest(setconfig) c \
        WHERE setrole = 'shop'::regrole";
    value(root, sql).await
}

#[tokio::test]
async fn a_login_that_the_database_spoils_costs_the_role_none_of_its_settings() {
    let place = Place::new().await;
    let root = place.root().await;
    let spoil = "ALTER ROLE shop SET temp_file_limit = '1GB'; \
        ALTER ROLE shop IN DATABASE shop SET log_statement = 'all'; \
        ALTER DATABASE shop SET session_preload_libraries = 'no_such_library'";
    root.batch_execute(spoil).await.unwrap();
    let refused = place.open().await.unwrap_err();
    assert!(matches!(refused, ConnectError::Spoilt(_)), "{refused}");
    let told = place.acquire().await.unwrap_err();
    assert!(matches!(told, Error::Unavailable { .. }), "{told}");
    assert_eq!(
        settings(&root).await,
        "log_statement=all temp_file_limit=1GB"
    );
    let mend = "ALTER DATABASE shop RESET session_preload_libraries";
    root.batch_execute(mend).await.unwrap();
    place.acquire().await.unwrap();
}

#[tokio::test]
async fn a_role_that_gave_itself_an_md5_password_is_repaired() {
    let place = Place::new().await;
    place.allow_md5().await;
    let root = place.root().await;
    let spoil = "ALTER ROLE shop PASSWORD 'md5d41d8cd98f00b204e9800998ecf8427e'";
    root.batch_execute(spoil).await.unwrap();
    let began = Instant::now();
    loop {
        match place.open().await.unwrap_err() {
            ConnectError::Md5 => break,
            // PostgreSQL has not read the file again.
            ConnectError::Refused(said) if said.sqlstate == "28P01" => {}
            other => panic!("{other}"),
        }
        assert!(began.elapsed() < Duration::from_secs(30));
        tokio::task::yield_now().await;
    }
    place.acquire().await.unwrap();
    place.open().await.unwrap();
}

/// A user can hold its own row locked, by an `ALTER ROLE` in a transaction that stays open.
#[tokio::test]
async fn a_repair_waits_for_the_role_itself_and_not_for_long() {
    let admin = Arc::new(admin(superuser()));
    admin.create_tenant(&database("held")).await.unwrap();
    let holder = user("held", "held").await.unwrap();
    let hold = "BEGIN; ALTER ROLE held PASSWORD 'mine'";
    holder.batch_execute(hold).await.unwrap();
    let key = Key {
        database: database("held"),
        role: role("held"),
        trusted: false,
    };
    let limit = Settings::default().open;
    let began = Instant::now();
    let fault = LoginFault::Password;
    assert_eq!(admin.repair(&key, &fault).await.unwrap(), Repaired::Held);
    assert!(began.elapsed() < limit, "{:?}", began.elapsed());

    let repair = tokio::spawn({
        let (admin, key) = (admin.clone(), key.clone());
        async move { admin.repair(&key, &LoginFault::Password).await }
    });
    let watcher = root("postgres").await;
    let waits = "SELECT count(*)::text FROM pg_stat_activity WHERE wait_event_type = 'Lock' \
        AND query LIKE 'ALTER ROLE \"held\" PASSWORD%'";
    while value(&watcher, waits).await == "0" {
        assert!(!repair.is_finished(), "it did not wait");
    }
    holder.batch_execute("COMMIT").await.unwrap();
    repair.await.unwrap().unwrap();
    user("held", "held").await.unwrap();
}

#[tokio::test]
async fn a_role_that_spoilt_itself_is_repaired() {
    let admin = admin(service_admin("svc_repair").await);
    let tenant = database("spoilt");
    admin.create_tenant(&tenant).await.unwrap();
    let owner = user("spoilt", "spoilt").await.unwrap();
    owner
        .batch_execute(
            "ALTER ROLE spoilt PASSWORD 'mine'; ALTER ROLE spoilt SET search_path = nowhere; \
             ALTER ROLE spoilt IN DATABASE spoilt SET work_mem = '64kB'; \
             ALTER ROLE spoilt IN DATABASE spoilt SET jit = off",
        )
        .await
        .unwrap();
    assert!(user("spoilt", "spoilt").await.is_err());

    let key = Key {
        database: tenant.clone(),
        role: role("spoilt"),
        trusted: false,
    };
    let repair = |fault| {
        let (admin, key) = (&admin, &key);
        async move { admin.repair(key, &fault).await.unwrap() }
    };
    assert_eq!(repair(LoginFault::Password).await, Repaired::Mended);
    let settings = || async {
        let owner = user("spoilt", "spoilt").await.unwrap();
        let sql = "SELECT concat_ws(' ', current_setting('search_path'), \
            current_setting('work_mem'), current_setting('jit'))";
        value(&owner, sql).await
    };
    // Its password was all that was wrong.
    assert_eq!(settings().await, "nowhere 64kB off");
    let said = |message: &str| {
        LoginFault::Session(Box::new(Rejection {
            message: message.to_owned(),
            ..Rejection::default()
        }))
    };
    // What an event trigger of the database says, or the server of one of its files.
    for message in [
        "relation \"search_paths\" does not exist",
        "no work_memory: off",
    ] {
        assert_eq!(
            repair(said(message)).await,
            Repaired::NotToBlame,
            "{message}"
        );
    }
    let wrong = said("ungültiger Wert für Parameter »work_mem«: »64kB«");
    assert_eq!(repair(wrong).await, Repaired::Mended);
    assert_eq!(settings().await, "nowhere 4MB off");
}

#[tokio::test]
async fn a_role_that_is_kept_out_is_not_repaired() {
    let admin = admin(service_admin("svc_kept_out").await);
    let tenant = database("kept_out");
    admin.create_tenant(&tenant).await.unwrap();
    let key = Key {
        database: tenant.clone(),
        role: role("kept_out"),
        trusted: false,
    };
    admin.admits(&key).await.unwrap();
    for (keeps_out, lets_in) in [
        ("NOLOGIN", "LOGIN"),
        ("VALID UNTIL '2020-01-01'", "VALID UNTIL 'infinity'"),
    ] {
        let root = root("postgres").await;
        let alter = |what: &str| format!("ALTER ROLE kept_out {what}");
        root.batch_execute(&alter(keeps_out)).await.unwrap();
        for answer in [
            admin.admits(&key).await,
            admin.repair(&key, &LoginFault::Password).await.map(drop),
        ] {
            assert_eq!(answer.unwrap_err().sqlstate(), Some("28000"), "{keeps_out}");
        }
        root.batch_execute(&alter(lets_in)).await.unwrap();
        admin.admits(&key).await.unwrap();
    }

    let foreign = Key {
        database: tenant,
        role: role("postgres"),
        trusted: false,
    };
    let error = admin
        .repair(&foreign, &LoginFault::Password)
        .await
        .unwrap_err();
    assert_eq!(error.sqlstate(), Some("28000"), "{error}");
    let gone = Key {
        database: database("never_made"),
        role: role("kept_out"),
        trusted: false,
    };
    let error = admin
        .repair(&gone, &LoginFault::Password)
        .await
        .unwrap_err();
    assert!(matches!(error, tidegate_sql::Error::NoDatabase), "{error}");
}
