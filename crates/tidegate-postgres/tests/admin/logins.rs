//! Roles that spoil their own login, and what the sessions of a shared role begin with.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_embedded::Cluster;
use tidegate_postgres::admin::{Admin, RoleCredentials, RolePasswords};
use tidegate_postgres::backoff::Jitter;
use tidegate_postgres::control::Control;
use tidegate_postgres::pool::{Key, Pool, Repair as _, Settings};
use tidegate_postgres::{
    Config, ConnectError, ConnectFault, Connection, Credential, Credentials as _, RoleConnector,
};
use tidegate_sql::{Executor, Login, Sharing};
use tokio_postgres::{Client, NoTls};

use super::fixture::{SECRET, admin, database, role, root, superuser, user, value};

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
        }
    }

    async fn root(&self) -> Client {
        let url = self.cluster.url("shop");
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }

    async fn open(&self) -> Result<Connection, ConnectError> {
        let Credential { password, pins } = self.credentials.of(&Self::key(), true).await.unwrap();
        Connection::open(&self.config, "shop", "shop", password.reveal(), &pins).await
    }

    /// Opens a connection as the service does for strangers.
    async fn acquire(&self) -> tidegate_sql::Result<()> {
        let (config, control) = (self.config.clone(), self.control.clone());
        let connector = RoleConnector::new(config, self.credentials.clone(), control);
        let repair = Arc::new(self.admin.clone());
        let pool = Pool::new(connector, repair, Settings::default(), Jitter::none());
        let login = Login {
            database: database("shop"),
            role: role("shop"),
            sharing: Sharing::Strangers,
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
    let refused = place.open().await.unwrap_err();
    assert!(matches!(refused, ConnectError::Spoilt(_)), "{refused}");
    place.acquire().await.unwrap();

    let Credential { password, mut pins } =
        place.credentials.of(&Place::key(), true).await.unwrap();
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
    };
    let limit = Settings::default().open;
    let began = Instant::now();
    assert!(admin.repair(&key).await.is_err());
    assert!(began.elapsed() < limit, "{:?}", began.elapsed());

    let repair = tokio::spawn({
        let (admin, key) = (admin.clone(), key.clone());
        async move { admin.repair(&key).await }
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
