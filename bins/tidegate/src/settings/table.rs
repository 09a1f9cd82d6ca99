//! The table of settings. The names of environment variables and flags, `tidegate settings` and the
//! table in `docs/OPERATIONS.md` are derived from it.

use std::net::SocketAddr;
use std::path::PathBuf;

use ipnet::IpNet;
use tidegate_wire::TlsMode;

use super::checksum::Checksum;
use super::kind::{
    BusUrl, ClientId, CorsOrigin, DatabaseUrl, FeedSource, Kind, LogFormat, LogLevel, MailUrl,
    MetricsToken, PublicUrl, RoleLimit, Secret, Size, Span, TomlType,
};
use super::{Effective, Error};

/// Which part of a setting's value may be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exposure {
    /// The whole value.
    Open,
    /// The value is a URL, which is shown without its password. A URL with a password is not
    /// accepted from a flag.
    Url,
    /// Nothing, because the value is a secret. It is accepted only from an environment variable.
    Secret,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// The name of the setting in a settings file.
    pub(crate) name: &'static str,
    pub(crate) toml_type: TomlType,
    /// The expected form of a value, for error messages.
    pub(crate) expected: &'static str,
    /// The value if no source gives a value.
    pub(crate) default: Option<&'static str>,
    pub(crate) exposure: Exposure,
    /// The description in the documentation.
    pub(crate) doc: &'static str,
}

macro_rules! settings {
    ($( #[doc = $doc:literal] $name:ident : $kind:ty = $default:expr, $exposure:ident; )+) => {
        /// The parsed values of all settings.
        #[derive(Clone, Debug)]
        pub(crate) struct Settings {
            $( #[doc = $doc] pub(crate) $name: $kind, )+
        }

        /// All settings, in the order in which they are shown.
        pub(crate) const TABLE: &[Setting] = &[
            $( Setting {
                name: stringify!($name),
                toml_type: <$kind as Kind>::TOML_TYPE,
                expected: <$kind as Kind>::EXPECTED,
                default: $default,
                exposure: Exposure::$exposure,
                doc: $doc.trim_ascii(),
            }, )+
        ];

        impl Settings {
            /// Parses the text of each setting.
            pub(super) fn read(effective: &[Effective]) -> Result<Self, Error> {
                Ok(Self { $( $name: value(effective, stringify!($name))?, )+ })
            }
        }
    };
}

fn value<T: Kind>(effective: &[Effective], name: &'static str) -> Result<T, Error> {
    let entry = effective.iter().find(|entry| entry.setting.name == name);
    let entry = entry.expect("every setting of the table has an entry");
    let read = match &entry.text {
        Some(text) => T::parse(text),
        None => T::absent(),
    };
    read.ok_or_else(|| Error::IllTyped {
        name: name.to_owned(),
        place: entry.source.to_string(),
        expected: T::EXPECTED,
    })
}

settings! {
    /// Addresses that the service listens on
    listen: Vec<SocketAddr> = Some("127.0.0.1:8080"), Open;
    /// URL for users, which is also the issuer of tokens; required unless `listen` is loopback only
    public_url: Option<PublicUrl> = None, Open;
    /// Proxies whose forwarded headers count, as addresses or networks
    trusted_proxies: Vec<IpNet> = None, Open;
    /// File with the certificate chain (PEM); read again when it changes
    tls_certificate: Option<PathBuf> = None, Open;
    /// File with the certificate's private key (PEM)
    tls_key: Option<PathBuf> = None, Open;
    /// Accept credentials over plain HTTP on addresses other than loopback; for development only
    insecure_http: bool = Some("false"), Open;
    /// SMTP server for emails that confirm sign-ups, reset passwords and sign in: `smtps://user:password@host` or `smtp://user:password@host:587?tls=required`
    smtp_url: Option<MailUrl> = None, Url;
    /// Sender of these emails, such as `Shop <shop@example.com>`; required with `smtp_url`
    mail_from: Option<String> = None, Open;
    /// Issuer of an OpenID provider with which people may sign in
    openid_issuer: Option<PublicUrl> = None, Open;
    /// Name of that provider on the pages
    openid_label: String = Some("OpenID"), Open;
    /// `client_id` at the OpenID provider
    openid_client_id: Option<String> = None, Open;
    /// Client secret at the OpenID provider
    openid_client_secret: Option<Secret> = None, Secret;
    /// `client_id` at Google
    google_client_id: Option<String> = None, Open;
    /// Client secret at Google
    google_client_secret: Option<Secret> = None, Secret;
    /// Address of GitHub for sign-in
    github_url: PublicUrl = Some("https://github.com"), Open;
    /// Address of GitHub's REST API; for GitHub Enterprise Server `https://HOST/api/v3`
    github_api_url: PublicUrl = Some("https://api.github.com"), Open;
    /// `client_id` at GitHub
    github_client_id: Option<String> = None, Open;
    /// Client secret at GitHub
    github_client_secret: Option<Secret> = None, Secret;
    /// Address of GitLab for sign-in
    gitlab_url: PublicUrl = Some("https://gitlab.com"), Open;
    /// `client_id` at GitLab
    gitlab_client_id: Option<String> = None, Open;
    /// Client secret at GitLab
    gitlab_client_secret: Option<Secret> = None, Secret;
    /// Contact for a forgotten password, shown if no emails are sent
    help_contact: Option<String> = None, Open;
    /// Allow sign-up at `/signup` without a confirmed email address, for clients with `allow_signup`
    open_signup: bool = Some("false"), Open;
    /// Ids of public clients, besides `tidegate`, through which users of every tenant sign in from programs on their own computer
    builtin_client_ids: Vec<ClientId> = Some("gc2-cli"), Open;
    /// Load keys of external issuers also from private addresses, and from this machine without encryption
    private_issuers: bool = Some("false"), Open;
    /// Origins of browser applications that may read responses
    cors_origins: Vec<CorsOrigin> = Some("*"), Open;
    /// File with the master key, created by `tidegate key init`
    master_key_file: Option<PathBuf> = None, Open;
    /// The master key itself: 32 bytes in base64url
    master_key: Option<Secret> = None, Secret;
    /// URL of the PostgreSQL cluster, with the role that creates databases and roles; several hosts for a cluster with standbys
    admin_url: Option<DatabaseUrl> = None, Url;
    /// Database in which the service stores tenants, users, clients, sessions and keys
    control_database: String = Some("tidegate"), Open;
    /// URL of the cluster, with the role that reads changes; `admin_url` if not set
    replication_url: Option<DatabaseUrl> = None, Url;
    /// URLs of standbys that answer reads, with the role of `admin_url`; each names one server
    replica_urls: Vec<DatabaseUrl> = None, Url;
    /// Source of change events: `logical` decoding of WAL, or an `outbox` filled by triggers, for servers whose `wal_level` cannot be changed
    feed_source: FeedSource = Some("logical"), Open;
    /// NATS servers with JetStream, separated by commas, over which one node reads the changes of a database for all: `nats://user:password@host:4222` or `tls://…`
    bus_url: Option<BusUrl> = None, Url;
    /// Maximum size of the changes of the last minutes that JetStream keeps, of all databases together. While nodes with different values run, the largest counts
    bus_bytes: Size = Some("1GiB"), Open;
    /// TLS to PostgreSQL, as in libpq; if not set, `verify-full` unless the host is loopback or a socket
    sslmode: Option<TlsMode> = None, Open;
    /// File with the certificate authorities (PEM) for PostgreSQL's certificate; the system's if not set
    sslrootcert: Option<PathBuf> = None, Open;
    /// Number of nodes that are expected to share the cluster's connections; more share them too
    nodes: u32 = Some("1"), Open;
    /// Tenant whose default user is used for requests that have no token and name no database
    anonymous_database: Option<String> = None, Open;
    /// Folder with the GraphiQL page that `npm run build` in `graphiql/` creates; if not set, browsers get a small built-in page
    graphiql_dir: Option<PathBuf> = None, Open;
    /// Serve the browser console at `/` and `/console/`, and the documentation at `/docs/`
    console: bool = Some("true"), Open;
    /// Maximum size of a request body
    body_limit: Size = Some("10MiB"), Open;
    /// Maximum size of an SQL text
    statement_limit: Size = Some("1MiB"), Open;
    /// Maximum size of a response that is not streamed
    response_limit: Size = Some("256MiB"), Open;
    /// Maximum memory of all requests together for large bodies and responses; one tenant gets at most half of it, all anonymous callers together a quarter
    memory_limit: Size = Some("1GiB"), Open;
    /// Maximum number of requests, calls or definitions in one array
    batch_limit: u32 = Some("1000"), Open;
    /// Maximum number of parameter sets in one request
    parameter_set_limit: u32 = Some("100000"), Open;
    /// Maximum number of nested selections in a GraphQL operation
    graphql_depth_limit: u32 = Some("15"), Open;
    /// Maximum number of fields in a GraphQL operation
    graphql_field_limit: u32 = Some("1000"), Open;
    /// Maximum number of root fields in a GraphQL operation
    graphql_root_limit: u32 = Some("20"), Open;
    /// Maximum size of a GraphQL document
    graphql_document_limit: Size = Some("1MiB"), Open;
    /// Maximum number of rows in a GraphQL list without `limit`
    graphql_page_size: u32 = Some("1000"), Open;
    /// Maximum number of rows in a GraphQL list with `limit`, and of groups in an aggregate
    graphql_row_limit: u32 = Some("10000"), Open;
    /// Maximum number of GraphQL requests in one array
    graphql_batch_limit: u32 = Some("50"), Open;
    /// GraphQL limits of single roles: `role=depth/fields/root fields`
    graphql_role_limits: Vec<RoleLimit> = None, Open;
    /// Maximum run time of a statement
    statement_timeout: Span = Some("60s"), Open;
    /// Maximum time to receive the head of a request
    header_timeout: Span = Some("10s"), Open;
    /// Time for a request body in addition to its size at 16 KiB a second; also its longest pause
    body_timeout: Span = Some("10s"), Open;
    /// Maximum time for which a client may read nothing of its response
    write_timeout: Span = Some("30s"), Open;
    /// Maximum idle time of a client connection
    idle_timeout: Span = Some("75s"), Open;
    /// How long a node behind a load balancer serves on after SIGTERM, while `/readyz` says that it will stop; if not set, it stops at once
    shutdown_delay: Option<Span> = None, Open;
    /// Maximum time for requests in progress to end at shutdown
    drain_timeout: Span = Some("30s"), Open;
    /// Maximum number of client connections
    connections: u32 = Some("10000"), Open;
    /// Maximum number of connections to PostgreSQL for the role of one user; a role that several callers share may have a quarter of all
    role_connections: u32 = Some("16"), Open;
    /// Multiplex quick reads on few connections to PostgreSQL while many run at once
    shared_reads: bool = Some("true"), Open;
    /// Maximum time that a request waits for a connection to PostgreSQL
    pool_timeout: Span = Some("5s"), Open;
    /// Number of threads that serve requests; if not set, half the processors (at least one) if PostgreSQL runs on this machine, otherwise all
    worker_threads: Option<u32> = None, Open;
    /// Number of threads that hash passwords; if not set, half the cores, at least one
    password_threads: Option<u32> = None, Open;
    /// Separate address for `/metrics`, `/healthz` and `/readyz`, over plain HTTP
    metrics_listen: Option<SocketAddr> = None, Open;
    /// Bearer token that `/metrics` requires on every address; at least 16 characters
    metrics_token: Option<MetricsToken> = None, Secret;
    /// Lowest level of log lines
    log_level: LogLevel = Some("info"), Open;
    /// Format of log lines: `text` or `json`
    log_format: LogFormat = Some("text"), Open;
    /// OpenTelemetry collector for the spans of requests, such as `http://127.0.0.1:4318`; needs a build with the feature `otlp`
    otlp_url: Option<PublicUrl> = None, Open;
    /// Folder of the demo's database; if not set, a folder in the user's data folder
    data_dir: Option<PathBuf> = None, Open;
    /// Folder of the PostgreSQL server's programs for `demo`; searched for if not set
    bin_dir: Option<PathBuf> = None, Open;
    /// Download PostgreSQL for `demo` if none is installed; `--no-fetch` is short for `false`
    fetch_postgresql: bool = Some("true"), Open;
    /// Address from which PostgreSQL is downloaded: the releases of `theseus-rs/postgresql-binaries`, or a mirror with the same paths
    postgresql_download_url: PublicUrl = Some(tidegate_download::DEFAULT_URL), Open;
    /// SHA-256 of the downloaded PostgreSQL archive; if not set, the checksum built into Tidegate
    postgresql_download_sha256: Option<Checksum> = None, Open;
    /// Folder of the downloaded PostgreSQL; if not set, a folder in the user's cache folder
    cache_dir: Option<PathBuf> = None, Open;
}

impl Setting {
    /// The environment variable of the setting.
    pub(crate) fn variable(&self) -> String {
        format!("{}{}", super::PREFIX, self.name.to_ascii_uppercase())
    }

    /// The flag of the setting, without the dashes.
    pub(crate) fn flag(&self) -> String {
        self.name.replace('_', "-")
    }

    /// The setting with this name; `None` if there is no such setting.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        TABLE.iter().find(|setting| setting.name == name)
    }
}
