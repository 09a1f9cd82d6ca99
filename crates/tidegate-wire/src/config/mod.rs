//! The addresses of PostgreSQL, and the login of the administrator.

mod url;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tidegate_sql::DatabaseName;
use tokio::sync::Semaphore;

pub use url::ConfigError;

/// The address and login of a PostgreSQL cluster. Created by [`Config::from_url`].
#[derive(Clone, Debug)]
pub struct Config {
    /// The addresses at which the cluster's servers listen, in the order of the URL. There is at
    /// least one.
    pub targets: Vec<Target>,
    /// Whether a server in recovery, such as a standby, is refused.
    pub requires_primary: bool,
    /// The index in `targets` of the target to which a connection was most recently opened. Clones
    /// share it.
    pub(crate) preferred: Arc<AtomicUsize>,
    /// The TLS mode. A Unix socket ignores it, as in libpq.
    pub tls: TlsMode,
    /// The file of root certificates (PEM); `None` for the root certificates of the system.
    pub root_certificate: Option<PathBuf>,
    /// The administrator's role.
    pub admin_role: String,
    /// The administrator's password.
    pub admin_password: Secret,
    /// The database in `admin_url`. The service connects to this database to create others.
    pub admin_database: DatabaseName,
    /// The service's own database.
    pub control_database: DatabaseName,
    /// How many nodes are expected to share the cluster's connections.
    pub nodes: u32,
    /// The permits for administration sessions, which belong to no pool. Clones share the permits.
    pub sessions: Arc<Semaphore>,
    /// The number of administration sessions that are open for a long time, to read the changes of
    /// a database or positions of the WAL. They need no permit of `sessions`. Clones share this
    /// number.
    pub streams: Arc<AtomicUsize>,
    /// The time limit for opening a connection.
    pub connect_timeout: Duration,
    /// The maximum number of prepared statements that a connection caches.
    pub statements_per_connection: usize,
    /// The TLS configuration, whose root certificates are read only once. Clones share it.
    pub(crate) connector: Arc<OnceLock<Arc<rustls::ClientConfig>>>,
}

/// The number of permits of [`Config::sessions`]: the maximum number of administration sessions
/// that are open at the same time, apart from those that [`Config::streams`] counts.
pub const SESSIONS: usize = 4;

/// The address at which a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A host and a port.
    Tcp {
        /// The name or address, without brackets.
        host: String,
        /// The port.
        port: u16,
    },
    /// A Unix socket, the file `.s.PGSQL.<port>` in a directory.
    Unix {
        /// The directory.
        directory: PathBuf,
        /// The port, which is part of the socket's name.
        port: u16,
    },
}

impl Target {
    /// Whether the address is on this machine.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Unix { .. } => true,
            Self::Tcp { host, .. } => {
                host == "localhost"
                    || host
                        .parse::<std::net::IpAddr>()
                        .is_ok_and(|address| address.is_loopback())
            }
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix { directory, port } => write!(f, "{}:{port}", directory.display()),
        }
    }
}

/// TLS modes (PostgreSQL, "SSL Mode Descriptions").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsMode {
    /// TLS is not used.
    Disable,
    /// TLS is used if the server supports it. The certificate is not verified.
    Prefer,
    /// TLS is required. The certificate's chain is verified only if a root certificate is given, as
    /// in libpq.
    Require,
    /// TLS is required. The certificate's chain is verified.
    VerifyCa,
    /// TLS is required. The certificate's chain and the host name are verified.
    VerifyFull,
}

/// Text that `Debug` does not show.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps the text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl Config {
    /// Parses `postgresql://user:password@host:port,host:port/database?sslmode=…&sslrootcert=…`
    /// (PostgreSQL, "Connection URIs" and "Specifying Multiple Hosts").
    ///
    /// With several hosts a server in recovery is refused, unless `target_session_attrs` is `any`.
    /// A `host` parameter or a percent-encoded host that starts with `/` is a socket directory. The
    /// default `sslmode` is `prefer` if all hosts are on this machine, and otherwise `verify-full`.
    pub fn from_url(url: &str) -> Result<Self, ConfigError> {
        url::parse(url)
    }

    /// Whether all addresses are on this machine.
    pub fn is_local(&self) -> bool {
        self.targets.iter().all(Target::is_local)
    }

    /// The addresses as text, separated by commas.
    pub fn addresses(&self) -> String {
        let addresses: Vec<_> = self.targets.iter().map(Target::to_string).collect();
        addresses.join(",")
    }

    /// Replaces the TLS settings of the URL.
    #[must_use]
    pub fn with_tls(mut self, mode: TlsMode, root_certificate: Option<&Path>) -> Self {
        self.tls = mode;
        self.root_certificate = root_certificate.map(Path::to_owned);
        self.connector = Arc::default();
        self
    }

    /// Replaces the login. Used for other logins of the service to the same cluster, such as the
    /// login for replication.
    #[must_use]
    pub fn with_login(mut self, role: &str, password: Secret) -> Self {
        role.clone_into(&mut self.admin_role);
        self.admin_password = password;
        self
    }
}
