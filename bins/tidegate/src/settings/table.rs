//! The one table of settings. Names of environment variables and flags, `tidegate settings` and
//! the table in `docs/OPERATIONS.md` all derive from it.

use std::net::SocketAddr;
use std::path::PathBuf;

use ipnet::IpNet;
use tidegate_postgres::TlsMode;

use super::kind::{
    DatabaseUrl, FeedSource, Kind, LogFormat, LogLevel, MailUrl, MetricsToken, Origin, PublicUrl,
    RoleLimit, Secret, Shape, Size, Span,
};
use super::{Effective, Error};

/// How much of a setting's value others may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exposure {
    /// All of it.
    Open,
    /// All but a password inside it, which no flag may carry.
    Url,
    /// Nothing; it comes from the environment only.
    Secret,
}

/// A setting as data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// The name in a file.
    pub(crate) name: &'static str,
    /// How it is written in a file.
    pub(crate) shape: Shape,
    /// What an error says was expected.
    pub(crate) expected: &'static str,
    /// The value that it has when nobody gives one.
    pub(crate) default: Option<&'static str>,
    /// What others may see of it.
    pub(crate) exposure: Exposure,
    /// What it is for.
    pub(crate) doc: &'static str,
}

macro_rules! settings {
    ($( #[doc = $doc:literal] $name:ident : $kind:ty = $default:expr, $exposure:ident; )+) => {
        /// The effective settings.
        #[derive(Clone, Debug)]
        pub(crate) struct Settings {
            $( #[doc = $doc] pub(crate) $name: $kind, )+
        }

        /// Every setting, in the order in which it is shown.
        pub(crate) const TABLE: &[Setting] = &[
            $( Setting {
                name: stringify!($name),
                shape: <$kind as Kind>::SHAPE,
                expected: <$kind as Kind>::EXPECTED,
                default: $default,
                exposure: Exposure::$exposure,
                doc: $doc.trim_ascii(),
            }, )+
        ];

        impl Settings {
            /// Reads the effective text of each setting.
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
    /// Address at which users reach the service, the issuer of its tokens; needed unless `listen` is loopback only
    public_url: Option<PublicUrl> = None, Open;
    /// Proxies whose forwarded headers count, as addresses or networks
    trusted_proxies: Vec<IpNet> = None, Open;
    /// File with the certificate chain (PEM); read again when it changes
    tls_certificate: Option<PathBuf> = None, Open;
    /// File with the certificate's private key (PEM)
    tls_key: Option<PathBuf> = None, Open;
    /// Serve tokens over plain HTTP beyond loopback: for development only
    insecure_http: bool = Some("false"), Open;
    /// SMTP server for letters that confirm sign-ups and reset passwords: `smtps://user:password@host`, or `smtp://user:password@host:587?tls=required`
    smtp_url: Option<MailUrl> = None, Url;
    /// From whom those letters come, such as `Shop <shop@example.com>`; needed with `smtp_url`
    mail_from: Option<String> = None, Open;
    /// Issuer of an OpenID provider with whose accounts people may sign in
    openid_issuer: Option<PublicUrl> = None, Open;
    /// Name of that provider for people
    openid_label: String = Some("OpenID"), Open;
    /// `client_id` that the OpenID provider gave
    openid_client_id: Option<String> = None, Open;
    /// Secret that the OpenID provider gave
    openid_client_secret: Option<Secret> = None, Secret;
    /// `client_id` that Google gave
    google_client_id: Option<String> = None, Open;
    /// Secret that Google gave
    google_client_secret: Option<Secret> = None, Secret;
    /// Address of GitHub, where people sign in
    github_url: PublicUrl = Some("https://github.com"), Open;
    /// Address of GitHub's REST API; of a GitHub Enterprise Server `https://HOST/api/v3`
    github_api_url: PublicUrl = Some("https://api.github.com"), Open;
    /// `client_id` that GitHub gave
    github_client_id: Option<String> = None, Open;
    /// Secret that GitHub gave
    github_client_secret: Option<Secret> = None, Secret;
    /// Address of GitLab
    gitlab_url: PublicUrl = Some("https://gitlab.com"), Open;
    /// `client_id` that GitLab gave
    gitlab_client_id: Option<String> = None, Open;
    /// Secret that GitLab gave
    gitlab_client_secret: Option<Secret> = None, Secret;
    /// How people reach somebody who can give them a new password, where no letters are sent
    help_contact: Option<String> = None, Open;
    /// Let people make accounts at `/signup` where a client allows it, without a confirmed e-mail address
    open_signup: bool = Some("false"), Open;
    /// Origins of browser applications that may read answers
    cors_origins: Vec<Origin> = Some("*"), Open;
    /// File with the master key, made by `tidegate key init`
    master_key_file: Option<PathBuf> = None, Open;
    /// The master key itself: 32 bytes in base64url
    master_key: Option<Secret> = None, Secret;
    /// The PostgreSQL cluster, as the role that makes databases and roles
    admin_url: Option<DatabaseUrl> = None, Url;
    /// Database in which the service keeps tenants, users, clients, sessions and keys
    control_database: String = Some("tidegate"), Open;
    /// The cluster as the role that reads changes; the same as `admin_url` when left out
    replication_url: Option<DatabaseUrl> = None, Url;
    /// From where change events come: `logical` decoding of PostgreSQL's log, or an `outbox` that triggers fill, for servers whose `wal_level` cannot be changed
    feed_source: FeedSource = Some("logical"), Open;
    /// TLS to PostgreSQL; verify-full unless the host is loopback or a socket
    sslmode: Option<TlsMode> = None, Open;
    /// File with the authorities (PEM) that PostgreSQL's certificate is checked against; the system's when left out
    sslrootcert: Option<PathBuf> = None, Open;
    /// How many nodes share the cluster's connections
    nodes: u32 = Some("1"), Open;
    /// Tenant whose default user serves requests that name no database
    anonymous_database: Option<String> = None, Open;
    /// Folder with the GraphiQL page that `npm run build` in `graphiql/` makes; browsers get a small page of our own when left out
    graphiql_dir: Option<PathBuf> = None, Open;
    /// Largest request body
    body_limit: Size = Some("10MiB"), Open;
    /// Longest SQL text
    statement_limit: Size = Some("1MiB"), Open;
    /// Largest answer in a format that is not streamed
    response_limit: Size = Some("256MiB"), Open;
    /// Most memory that all requests together hold in large bodies and answers; one tenant gets at most half of it, all anonymous callers together a quarter
    memory_limit: Size = Some("1GiB"), Open;
    /// Most requests, calls or definitions in one array
    batch_limit: u32 = Some("1000"), Open;
    /// Most parameter sets in one request
    parameter_set_limit: u32 = Some("100000"), Open;
    /// Most levels of selections in a GraphQL operation
    graphql_depth_limit: u32 = Some("15"), Open;
    /// Most fields of a GraphQL operation
    graphql_field_limit: u32 = Some("1000"), Open;
    /// Most root fields of a GraphQL operation
    graphql_root_limit: u32 = Some("20"), Open;
    /// Longest GraphQL document
    graphql_document_limit: Size = Some("1MiB"), Open;
    /// Most rows of a GraphQL list that asks for no number
    graphql_page_size: u32 = Some("1000"), Open;
    /// Most rows of a GraphQL list, whatever it asks for
    graphql_row_limit: u32 = Some("10000"), Open;
    /// Most GraphQL requests in one array
    graphql_batch_limit: u32 = Some("50"), Open;
    /// Roles with limits of GraphQL of their own: `role=depth/fields/root fields`
    graphql_role_limits: Vec<RoleLimit> = None, Open;
    /// Longest time that a statement may run
    statement_timeout: Span = Some("60s"), Open;
    /// Longest time that the head of a request may take
    header_timeout: Span = Some("10s"), Open;
    /// Longest time that the body of a request may be behind 16 KiB a second
    body_timeout: Span = Some("10s"), Open;
    /// Longest time that a caller may take none of its answer
    write_timeout: Span = Some("30s"), Open;
    /// Longest time that a connection may be idle
    idle_timeout: Span = Some("75s"), Open;
    /// Longest time that requests in flight may take after a signal to stop
    drain_timeout: Span = Some("30s"), Open;
    /// Most connections of callers at one time
    connections: u32 = Some("10000"), Open;
    /// Most connections to PostgreSQL for one role; the default user, whom strangers share, has a quarter of all instead
    role_connections: u32 = Some("16"), Open;
    /// Whether the quick reads of a session share a connection to PostgreSQL while many run at once
    shared_reads: bool = Some("true"), Open;
    /// Longest time that a request waits for a connection to PostgreSQL
    pool_timeout: Span = Some("5s"), Open;
    /// Threads that hash passwords; half the cores, at least one, when left out
    password_threads: Option<u32> = None, Open;
    /// Address of its own for `/metrics`, `/healthz` and `/readyz`, over plain HTTP
    metrics_listen: Option<SocketAddr> = None, Open;
    /// Bearer token that `/metrics` asks for on every address, 16 characters at least
    metrics_token: Option<MetricsToken> = None, Secret;
    /// From which level on events are logged
    log_level: LogLevel = Some("info"), Open;
    /// How log lines look
    log_format: LogFormat = Some("text"), Open;
    /// OpenTelemetry collector that gets the spans of requests, such as `http://127.0.0.1:4318`; needs a build with the feature `otlp`
    otlp_url: Option<PublicUrl> = None, Open;
    /// Where `demo` keeps its database; a folder in the user's data folder when left out
    data_dir: Option<PathBuf> = None, Open;
    /// Folder of the PostgreSQL server's programs for `demo`; looked for when left out
    bin_dir: Option<PathBuf> = None, Open;
}

impl Setting {
    /// The environment variable that gives it.
    pub(crate) fn variable(&self) -> String {
        format!("{}{}", super::PREFIX, self.name.to_ascii_uppercase())
    }

    /// The flag that gives it, without the dashes.
    pub(crate) fn flag(&self) -> String {
        self.name.replace('_', "-")
    }

    /// The setting with this name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        TABLE.iter().find(|setting| setting.name == name)
    }
}
