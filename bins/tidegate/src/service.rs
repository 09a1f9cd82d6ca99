//! Access to the control database and to the administration of PostgreSQL, for all commands.

use std::sync::Arc;

use tidegate_admin::{Admin, RolePasswords, Server};
use tidegate_identity::{Accounts, MasterKey, PasswordCost, PasswordHasher, UserDirectory};
use tidegate_issuers::{
    DocumentClient, ExternalIssuerStore, IssuerDirectory, IssuerRegistry, Network,
};
use tidegate_methods::MethodStore;
use tidegate_oauth::{ClientDirectory, IssuerStore, Ports};
use tidegate_pool::Settings as PoolSettings;
use tidegate_server::AppBuilder;
use tidegate_service::{Limits, ServiceConnections};
use tidegate_sql::{DatabaseName, Executor};
use tidegate_store::{PgIssuerStore, PgMethodStore, PgOauthStore, Tenants};
use tidegate_wire::{Config, TlsMode};

use crate::cli_error::{CliError, Result};
use crate::group_logins::PgGroupLogins;
use crate::roles::PgRoles;
use crate::settings::{DatabaseUrl, Settings};
use crate::{builtin_clients, master_key, ports};

/// The stores, connections and keys that commands use.
pub(crate) struct Service {
    pub(crate) config: Arc<Config>,
    pub(crate) master: MasterKey,
    pub(crate) passwords: RolePasswords,
    pub(crate) admin: Admin,
    pub(crate) server: Server,
    /// The random id by which other nodes identify this process.
    pub(crate) node: u32,
    pub(crate) control: Arc<ServiceConnections>,
    pub(crate) store: Arc<dyn IssuerStore>,
    pub(crate) methods: Arc<dyn MethodStore>,
    pub(crate) issuers: Arc<dyn ExternalIssuerStore>,
    pub(crate) tenants: Tenants,
    pub(crate) ports: Ports,
    /// The ids of the built-in clients, which no tenant may register.
    reserved_client_ids: Vec<String>,
    /// The networks from which keys of external issuers may be loaded.
    issuer_network: Network,
}

impl Service {
    /// Connects to PostgreSQL, creates the control database if it is missing, and migrates its
    /// schema. Fails if the control database was set up with another master key.
    pub(crate) async fn open(settings: &Settings) -> Result<Self> {
        let config = Arc::new(config(settings)?);
        let master = master_key::read(settings)?;
        let passwords = role_passwords(&master);
        let admin = Admin::new((*config).clone(), passwords.clone());
        admin.prepare_control_database().await?;
        let server = admin.server().await?;
        let control = ServiceConnections::new(config.clone(), ports::jitter())?;
        // A command needs few connections, so it uses the limits of a node without a share. A
        // serving node sets higher limits after it has determined its share.
        control.set_limits(Limits::for_node(0));
        let control = Arc::new(control);
        let executor: Arc<dyn Executor> = control.clone();
        tidegate_store::migrate(&executor).await?;
        let store: Arc<dyn IssuerStore> = Arc::new(PgOauthStore::new(executor.clone()));
        if store.claim_master_key(&master.fingerprint()).await? != master.fingerprint() {
            return Err(tidegate_store::Error::OtherMasterKey.into());
        }
        let hasher = hasher(settings)?;
        Ok(Self {
            ports: Ports {
                store: store.clone(),
                clock: ports::clock(),
                random: ports::random(),
                hasher: Arc::new(hasher),
            },
            reserved_client_ids: builtin_clients::ids(settings),
            issuers: Arc::new(PgIssuerStore::new(executor.clone())),
            issuer_network: if settings.private_issuers {
                Network::AllowPrivate
            } else {
                Network::PublicOnly
            },
            methods: Arc::new(PgMethodStore::new(executor.clone())),
            tenants: Tenants::new(executor),
            config,
            master,
            passwords,
            admin,
            server,
            node: u32::from_be_bytes(ports::bytes()),
            control,
            store,
        })
    }

    /// The directory of users in the control database.
    pub(crate) fn users(&self) -> UserDirectory {
        UserDirectory::new(self.ports.identity())
    }

    /// The directory of clients in the control database.
    pub(crate) fn clients(&self) -> ClientDirectory {
        ClientDirectory::new(self.ports.clone()).reserving(&self.reserved_client_ids)
    }

    /// The directory of external issuers in the control database.
    pub(crate) fn external_issuers(&self) -> IssuerDirectory {
        let groups = Arc::new(self.group_logins());
        let (issuers, ports) = (self.issuers.clone(), self.ports.identity());
        IssuerDirectory::new(issuers, groups, ports, self.issuer_network)
    }

    /// Lets the app accept tokens of external issuers. The app has no issuers until
    /// `App::reload_issuers` loads them.
    pub(crate) fn accept_external_issuers(&self, app: AppBuilder) -> Result<AppBuilder> {
        let client = DocumentClient::new(self.issuer_network);
        let client = client.map_err(|error| CliError::Refused(error.to_string()))?;
        let registry = Arc::new(IssuerRegistry::new(self.issuers.clone(), client));
        let groups = Arc::new(self.group_logins());
        Ok(app.external_issuers(registry, self.external_issuers(), groups))
    }

    fn group_logins(&self) -> PgGroupLogins {
        PgGroupLogins(self.admin.clone())
    }

    /// The management of users together with their PostgreSQL roles.
    pub(crate) fn accounts(&self) -> Accounts {
        let roles = PgRoles(self.admin.clone());
        Accounts::new(self.users(), Arc::new(roles))
    }
}

pub(crate) fn pool_settings(capacity: usize, settings: &Settings) -> PoolSettings {
    PoolSettings {
        capacity,
        per_role: usize::try_from(settings.role_connections).unwrap_or(usize::MAX),
        wait: settings.pool_timeout.0,
        multiplex: settings.shared_reads,
        ..PoolSettings::default()
    }
}

/// The configuration of the cluster in `admin_url`.
pub(crate) fn config(settings: &Settings) -> Result<Config> {
    let url = settings.admin_url.as_ref().ok_or_else(|| {
        CliError::Usage(
            "the setting admin_url is missing: postgresql://USER:PASSWORD@HOST/postgres of the \
             role that makes databases and roles (`tidegate doctor` says which rights it needs)"
                .to_owned(),
        )
    })?;
    cluster_at(settings, url)
}

/// The configuration of the cluster with the login that reads changes: `replication_url`, or else
/// `admin_url`.
pub(crate) fn replication_config(settings: &Settings) -> Result<Config> {
    match &settings.replication_url {
        Some(url) => cluster_at(settings, url),
        None => config(settings),
    }
}

/// The configurations of the servers in `replica_urls`. Fails if a URL names several servers,
/// because the service measures the lag of each replica separately.
pub(crate) fn replica_configs(settings: &Settings) -> Result<Vec<Config>> {
    let config = |url| {
        let config = cluster_at(settings, url)?;
        if config.targets.len() == 1 {
            return Ok(config);
        }
        let text = "each URL of the setting replica_urls must name one host";
        Err(CliError::Usage(text.to_owned()))
    };
    settings.replica_urls.iter().map(config).collect()
}

fn cluster_at(settings: &Settings, url: &DatabaseUrl) -> Result<Config> {
    let mut config = Config::from_url(&url.0)?;
    let mode: Option<TlsMode> = settings.sslmode;
    if mode.is_some() || settings.sslrootcert.is_some() {
        let roots = settings
            .sslrootcert
            .clone()
            .or_else(|| config.root_certificate.clone());
        let mode = mode.unwrap_or(config.tls);
        config = config.with_tls(mode, roots.as_deref());
    }
    config.control_database = DatabaseName::new(&settings.control_database);
    config.nodes = settings.nodes;
    Ok(config)
}

/// The passwords of roles, derived from the master key.
pub(crate) fn role_passwords(master: &MasterKey) -> RolePasswords {
    RolePasswords::new(*master.derive("role passwords"), ports::bytes)
}

fn hasher(settings: &Settings) -> Result<PasswordHasher> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = settings
        .password_threads
        .and_then(|threads| usize::try_from(threads).ok());
    let threads = threads.unwrap_or_else(|| PasswordHasher::threads_for(cores));
    Ok(PasswordHasher::start(
        threads,
        PasswordCost::default(),
        &*ports::random(),
    )?)
}
