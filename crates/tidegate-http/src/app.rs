//! What the endpoints work with.

mod builder;
mod default_user;
mod origins;
mod probe;
mod read_slots;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use http::{HeaderMap, HeaderValue};
use ipnet::IpNet;
use tidegate_catalog::Catalogs;
use tidegate_feed::Feed;
use tidegate_graphql::Apis;
use tidegate_identity::{Accounts, IdentityProviders, Mailer, Secret};
use tidegate_methods::Registry;
use tidegate_oauth::{Issuer, IssuerStore};
use tidegate_rpc::Dispatcher;
use tidegate_sql::{DatabaseName, Executor};

use crate::activity::Activity;
use crate::console::Console;
use crate::graphiql::Graphiql;
use crate::limits::Limits;
use crate::memory::Memory;
use crate::metrics::{Metrics, MetricsSource};
use crate::statements::Statements;
use crate::trace::{Place, SpanSink};

pub use builder::AppBuilder;
pub(crate) use default_user::DefaultUsers;
pub use origins::Origins;
pub use probe::Probe;
pub(crate) use read_slots::{ReadSlot, ReadSlots};

/// The service's parts, shared by all connections. Cloning it is cheap.
#[derive(Clone)]
pub struct App(Arc<Parts>);

struct Parts {
    executor: Arc<dyn Executor>,
    apis: Apis,
    feed: Option<Feed>,
    catalogs: Arc<Catalogs>,
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
    probes: Vec<Arc<dyn Probe>>,
    metrics_sources: Vec<Arc<dyn MetricsSource>>,
    metrics: Metrics,
    activity: Activity,
    metrics_token: Option<Secret>,
    spans: Option<Arc<dyn SpanSink>>,
    default_users: DefaultUsers,
    dispatcher: Dispatcher,
    methods: Arc<Registry>,
    memory: Memory,
    read_slots: ReadSlots,
    statements: Statements,
    node: u64,
    requests: AtomicU64,
    traced: AtomicU64,
    draining: AtomicBool,
}

impl App {
    /// Begins to put an app together: what runs statements, what issues tokens, and the store that
    /// knows each database's default user are the parts without which there is none.
    pub fn builder(
        executor: Arc<dyn Executor>,
        issuer: Arc<Issuer>,
        store: Arc<dyn IssuerStore>,
    ) -> AppBuilder {
        AppBuilder::new(executor, issuer, store)
    }

    /// Says that the node will stop: `/readyz` answers 503 from now on, so that nobody sends it
    /// new work.
    pub fn drain(&self) {
        self.0.draining.store(true, Ordering::Relaxed);
    }

    /// Forgets who the default user of `database` is and what it may do: to be called when the
    /// tenant's users or its settings have changed. Without it a change is seen after five seconds.
    pub fn forget_default_user(&self, database: &str) {
        self.0.default_users.forget(database);
    }

    /// Whether the node is shutting down.
    pub fn is_draining(&self) -> bool {
        self.0.draining.load(Ordering::Relaxed)
    }

    /// Runs statements.
    pub fn executor(&self) -> &Arc<dyn Executor> {
        &self.0.executor
    }

    /// The GraphQL APIs of the schemas.
    pub fn apis(&self) -> &Apis {
        &self.0.apis
    }

    /// The changes of rows, where they are fed.
    pub fn feed(&self) -> Option<&Feed> {
        self.0.feed.as_ref()
    }

    /// The catalogs of the tenants.
    pub fn catalogs(&self) -> &Catalogs {
        &self.0.catalogs
    }

    /// Issues and checks tokens.
    pub fn issuer(&self) -> &Issuer {
        &self.0.issuer
    }

    /// The store of users, clients and tokens.
    pub fn store(&self) -> &dyn IssuerStore {
        &*self.0.store
    }

    /// What manages users and clients, where this app does.
    pub fn accounts(&self) -> Option<&Accounts> {
        self.0.accounts.as_deref()
    }

    /// The limits.
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

    /// The database of requests that name none.
    pub fn anonymous_database(&self) -> Option<&DatabaseName> {
        self.0.anonymous_database.as_ref()
    }

    /// Whether credentials are accepted over plain HTTP.
    pub fn insecure_http(&self) -> bool {
        self.0.insecure_http
    }

    /// Whether people may make accounts: without letters only if the operator says so.
    pub fn takes_sign_ups(&self) -> bool {
        self.0.accounts.is_some() && (self.0.mailer.is_some() || self.0.open_sign_up)
    }

    /// What carries letters, where there is something.
    pub fn mailer(&self) -> Option<&dyn Mailer> {
        self.0.mailer.as_deref()
    }

    /// Who knows people by their accounts elsewhere.
    pub fn providers(&self) -> Option<&dyn IdentityProviders> {
        self.0.providers.as_deref()
    }

    /// How people reach somebody who can help them.
    pub fn help(&self) -> Option<&str> {
        self.0.help.as_deref()
    }

    /// GraphiQL, where it was built.
    pub fn graphiql(&self) -> Option<&Graphiql> {
        self.0.graphiql.as_ref()
    }

    /// The browser console, unless it is switched off.
    pub fn console(&self) -> Option<&Console> {
        self.0.console.as_ref()
    }

    /// The checks of `/readyz`.
    pub fn probes(&self) -> &[Arc<dyn Probe>] {
        &self.0.probes
    }

    /// The recent requests of each tenant.
    pub fn activity(&self) -> &Activity {
        &self.0.activity
    }

    /// The counters.
    pub fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// What must be shown to read the metrics.
    pub fn metrics_token(&self) -> Option<&Secret> {
        self.0.metrics_token.as_ref()
    }

    /// The metrics of other parts.
    pub fn metrics_sources(&self) -> impl Iterator<Item = &dyn MetricsSource> {
        self.0.metrics_sources.iter().map(|source| &**source)
    }

    /// The memory budget.
    pub fn memory(&self) -> &Memory {
        &self.0.memory
    }

    /// The places for statements of anonymous callers.
    pub(crate) fn read_slots(&self) -> &ReadSlots {
        &self.0.read_slots
    }

    pub(crate) fn statements(&self) -> &Statements {
        &self.0.statements
    }

    pub(crate) fn default_users(&self) -> &DefaultUsers {
        &self.0.default_users
    }

    /// The methods that callers define.
    pub fn methods(&self) -> &Registry {
        &self.0.methods
    }

    /// What calls them.
    pub fn dispatcher(&self) -> &Dispatcher {
        &self.0.dispatcher
    }

    /// Where spans go, if they are collected.
    pub fn spans(&self) -> Option<&dyn SpanSink> {
        self.0.spans.as_deref()
    }

    /// Where a request stands in its trace, when somebody collects spans and the caller does not
    /// forbid it.
    pub fn place(&self, headers: &HeaderMap) -> Option<Place> {
        self.0.spans.as_ref()?;
        let number = self.0.traced.fetch_add(1, Ordering::Relaxed);
        Place::below(headers, self.0.node, number)
    }

    /// A new request id, unique over all nodes whose number differs.
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
