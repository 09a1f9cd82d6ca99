//! The parts of the service that endpoints use.

mod builder;
mod default_user;
mod origins;
mod probe;
mod read_slots;
mod shutdown;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::{HeaderMap, HeaderValue};
use ipnet::IpNet;
use tidegate_catalog::CatalogCache;
use tidegate_feed::Feed;
use tidegate_graphql::ApiCache;
use tidegate_identity::{Accounts, IdentityProviders, Mailer, Secret, StoreError};
use tidegate_issuers::{IssuerDirectory, IssuerRecord};
use tidegate_methods::Registry;
use tidegate_oauth::{Issuer, IssuerStore};
use tidegate_rpc::Dispatcher;
use tidegate_sql::{DatabaseName, Executor};

use crate::activity::Activity;
use crate::console::Console;
use crate::docs::Docs;
use crate::external::ExternalTokens;
use crate::graphiql::Graphiql;
use crate::limits::Limits;
use crate::memory::MemoryBudget;
use crate::metrics::{Metrics, MetricsSource};
use crate::statement_cache::StatementCache;
use crate::trace::{SpanContext, SpanSink};

pub use builder::AppBuilder;
pub(crate) use default_user::DefaultUsers;
pub use origins::Origins;
pub use probe::Probe;
pub(crate) use read_slots::{ReadSlot, ReadSlots};
use shutdown::Shutdown;
pub use shutdown::{Departure, ShutdownWatch};

/// How a node with replicas reads the header `Tidegate-After`, which names the changes that a
/// response must show.
#[derive(Clone, Copy, Debug)]
pub struct ReplicaReads {
    /// Whether the cursors of events are positions in the WAL. The cursors of an outbox are not.
    pub cursors_in_wal: bool,
}

/// The parts of the service, shared by all connections. Cloning is cheap.
#[derive(Clone)]
pub struct App(Arc<Parts>);

struct Parts {
    executor: Arc<dyn Executor>,
    replica_reads: Option<ReplicaReads>,
    apis: ApiCache,
    feed: Option<Feed>,
    catalogs: Arc<CatalogCache>,
    issuer: Arc<Issuer>,
    store: Arc<dyn IssuerStore>,
    accounts: Option<Arc<Accounts>>,
    limits: Limits,
    trusted_proxies: Vec<IpNet>,
    origins: Origins,
    anonymous_database: Option<DatabaseName>,
    insecure_http: bool,
    open_sign_up: bool,
    mailer: Option<Arc<dyn Mailer>>,
    providers: Option<Arc<dyn IdentityProviders>>,
    help: Option<String>,
    graphiql: Option<Graphiql>,
    console: Option<Console>,
    docs: Option<Docs>,
    probes: Vec<Arc<dyn Probe>>,
    metrics_sources: Vec<Arc<dyn MetricsSource>>,
    metrics: Metrics,
    activity: Activity,
    metrics_token: Option<Secret>,
    spans: Option<Arc<dyn SpanSink>>,
    default_users: DefaultUsers,
    external_tokens: Option<ExternalTokens>,
    external_issuers: Option<IssuerDirectory>,
    dispatcher: Dispatcher,
    methods: Arc<Registry>,
    memory: MemoryBudget,
    read_slots: ReadSlots,
    statement_cache: StatementCache,
    node: u64,
    requests: AtomicU64,
    traced: AtomicU64,
    shutdown: Shutdown,
}

impl App {
    /// Starts to build an app from its three required parts: the executor, the issuer, and the
    /// store of users and OAuth clients.
    pub fn builder(
        executor: Arc<dyn Executor>,
        issuer: Arc<Issuer>,
        store: Arc<dyn IssuerStore>,
    ) -> AppBuilder {
        AppBuilder::new(executor, issuer, store)
    }

    /// Removes the cached users of `database`: the default user, and the users that tokens of
    /// external issuers name. This function must be called when the tenant's users or settings have
    /// changed. Without the call, the change takes effect within five seconds.
    pub fn forget_users(&self, database: &str) {
        self.0.default_users.forget(database);
        if let Some(tokens) = &self.0.external_tokens {
            tokens.forget_users(database);
        }
    }

    /// Reads the external issuers of all tenants again if they have changed. This function must be
    /// called when any node has changed an issuer, and also every few seconds, because a
    /// notification may be lost.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails. In this case the issuers of the previous read remain in
    /// use.
    pub async fn reload_issuers(&self) -> Result<(), StoreError> {
        match &self.0.external_tokens {
            Some(tokens) => tokens.issuers().reload().await,
            None => Ok(()),
        }
    }

    /// The directory in which owners manage external issuers; `None` if the app accepts no tokens
    /// of external issuers.
    pub fn external_issuers(&self) -> Option<&IssuerDirectory> {
        self.0.external_issuers.as_ref()
    }

    /// The reason why this node could not load the keys of an external issuer; `None` if there is
    /// no failure. See
    /// [`IssuerRegistry::problem`](tidegate_issuers::IssuerRegistry::problem).
    pub fn issuer_problem(&self, record: &IssuerRecord) -> Option<String> {
        let tokens = self.0.external_tokens.as_ref()?;
        tokens.issuers().problem(record)
    }

    pub(crate) fn external_tokens(&self) -> Option<&ExternalTokens> {
        self.0.external_tokens.as_ref()
    }

    /// The executor of statements.
    pub fn executor(&self) -> &Arc<dyn Executor> {
        &self.0.executor
    }

    /// How `Tidegate-After` is read; `None` if the executor has no replicas.
    pub fn replica_reads(&self) -> Option<ReplicaReads> {
        self.0.replica_reads
    }

    /// The cached GraphQL APIs of the schemas, as the roles see them.
    pub fn apis(&self) -> &ApiCache {
        &self.0.apis
    }

    /// The feed of change events; `None` if the node has no feed.
    pub fn feed(&self) -> Option<&Feed> {
        self.0.feed.as_ref()
    }

    /// The cached catalogs of the tenants.
    pub fn catalogs(&self) -> &CatalogCache {
        &self.0.catalogs
    }

    /// The service's own issuer, which issues, checks and revokes tokens.
    pub fn issuer(&self) -> &Issuer {
        &self.0.issuer
    }

    /// The store of users, OAuth clients and tokens.
    pub fn store(&self) -> &dyn IssuerStore {
        &*self.0.store
    }

    /// The management of users and OAuth clients; `None` if they cannot be managed over HTTP.
    pub fn accounts(&self) -> Option<&Accounts> {
        self.0.accounts.as_deref()
    }

    /// The limits on requests, and the timeouts.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Proxies whose `X-Forwarded-*` headers are trusted.
    pub fn trusted_proxies(&self) -> &[IpNet] {
        &self.0.trusted_proxies
    }

    /// Origins whose pages may call the API.
    pub fn origins(&self) -> &Origins {
        &self.0.origins
    }

    /// The database for anonymous requests that name no database; `None` if such requests are
    /// refused.
    pub fn anonymous_database(&self) -> Option<&DatabaseName> {
        self.0.anonymous_database.as_ref()
    }

    /// Whether credentials are accepted over plain HTTP from other machines.
    pub fn insecure_http(&self) -> bool {
        self.0.insecure_http
    }

    /// Whether people may sign up. Sign-up needs a mailer for confirmation emails, unless the
    /// operator allows sign-up without confirmation.
    pub fn allows_sign_up(&self) -> bool {
        self.0.accounts.is_some() && (self.0.mailer.is_some() || self.0.open_sign_up)
    }

    /// The mailer; `None` if no emails are sent.
    pub fn mailer(&self) -> Option<&dyn Mailer> {
        self.0.mailer.as_deref()
    }

    /// The identity providers; `None` if none are configured.
    pub fn providers(&self) -> Option<&dyn IdentityProviders> {
        self.0.providers.as_deref()
    }

    /// The text that tells people how to get help; `None` if the operator set none.
    pub fn help(&self) -> Option<&str> {
        self.0.help.as_deref()
    }

    /// The GraphiQL build; `None` if the operator provides none.
    pub fn graphiql(&self) -> Option<&Graphiql> {
        self.0.graphiql.as_ref()
    }

    /// The browser console; `None` if it is switched off.
    pub fn console(&self) -> Option<&Console> {
        self.0.console.as_ref()
    }

    /// The documentation; `None` if it is switched off. It is switched off together with the
    /// console.
    pub fn docs(&self) -> Option<&Docs> {
        self.0.docs.as_ref()
    }

    /// The checks of `/readyz`.
    pub fn probes(&self) -> &[Arc<dyn Probe>] {
        &self.0.probes
    }

    /// The recent requests of each tenant.
    pub fn activity(&self) -> &Activity {
        &self.0.activity
    }

    /// The counters of the HTTP server.
    pub fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// The bearer token that `/metrics` requires; `None` if it requires no token.
    pub fn metrics_token(&self) -> Option<&Secret> {
        self.0.metrics_token.as_ref()
    }

    /// The sources of metrics in other parts of the service.
    pub fn metrics_sources(&self) -> impl Iterator<Item = &dyn MetricsSource> {
        self.0.metrics_sources.iter().map(|source| &**source)
    }

    /// The memory budget of all requests.
    pub fn memory(&self) -> &MemoryBudget {
        &self.0.memory
    }

    /// The limits on concurrent SQL statements of anonymous callers, one for each database.
    pub(crate) fn read_slots(&self) -> &ReadSlots {
        &self.0.read_slots
    }

    pub(crate) fn statement_cache(&self) -> &StatementCache {
        &self.0.statement_cache
    }

    pub(crate) fn default_users(&self) -> &DefaultUsers {
        &self.0.default_users
    }

    /// The registry of the methods of all tenants.
    pub fn methods(&self) -> &Registry {
        &self.0.methods
    }

    /// The dispatcher of JSON-RPC calls.
    pub fn dispatcher(&self) -> &Dispatcher {
        &self.0.dispatcher
    }

    /// The receiver of spans; `None` if no spans are collected.
    pub fn spans(&self) -> Option<&dyn SpanSink> {
        self.0.spans.as_deref()
    }

    /// Makes the span context of a new request; `None` if no spans are collected, or if the
    /// client's trace is not sampled.
    pub fn span_context(&self, headers: &HeaderMap) -> Option<SpanContext> {
        self.0.spans.as_ref()?;
        let number = self.0.traced.fetch_add(1, Ordering::Relaxed);
        SpanContext::below(headers, self.0.node, number)
    }

    /// Makes a new request id from the number of this node and the number of the request. The id is
    /// unique among nodes with different numbers.
    #[expect(
        clippy::missing_panics_doc,
        reason = "hex digits and a dash are visible ASCII"
    )]
    pub fn request_id(&self) -> HeaderValue {
        let number = self.0.requests.fetch_add(1, Ordering::Relaxed);
        let mut id = [b'-'; 33];
        write_hex(self.0.node, &mut id[..16]);
        write_hex(number, &mut id[17..]);
        HeaderValue::from_bytes(&id).expect("hex digits and a dash are visible ASCII")
    }
}

fn write_hex(number: u64, digits: &mut [u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (pair, byte) in digits.chunks_exact_mut(2).zip(number.to_be_bytes()) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App")
            .field("limits", &self.0.limits)
            .finish_non_exhaustive()
    }
}
