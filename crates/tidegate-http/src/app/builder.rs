//! Builds an [`App`].

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use ipnet::IpNet;
use tidegate_catalog::CatalogCache;
use tidegate_feed::Feed;
use tidegate_graphql::{ApiCache, RoleLimits};
use tidegate_identity::{Accounts, IdentityProviders, Mailer, Secret};
use tidegate_issuers::{GroupLogins, IssuerDirectory, IssuerRegistry};
use tidegate_methods::{MemoryMethodStore, Registry};
use tidegate_oauth::{Issuer, IssuerStore};
use tidegate_rpc::Dispatcher;
use tidegate_sql::{DatabaseName, Executor};

use super::{App, DefaultUsers, Origins, Parts, Probe, ReadSlots, ReplicaReads, Shutdown};
use crate::activity::Activity;
use crate::base_path::base_of;
use crate::console::Console;
use crate::docs::Docs;
use crate::external::ExternalTokens;
use crate::graphiql::Graphiql;
use crate::limits::Limits;
use crate::memory::MemoryBudget;
use crate::metrics::{Metrics, MetricsSource};
use crate::statement_cache::StatementCache;
use crate::trace::SpanSink;

/// Builds an [`App`]. A part that is not set has a default. The second field has the roles with
/// their own limits on GraphQL requests.
pub struct AppBuilder(Parts, Vec<RoleLimits>);

impl AppBuilder {
    pub(super) fn new(
        executor: Arc<dyn Executor>,
        issuer: Arc<Issuer>,
        store: Arc<dyn IssuerStore>,
    ) -> Self {
        let methods = Arc::new(Registry::new(Arc::new(MemoryMethodStore::new())));
        let parts = Parts {
            catalogs: Arc::new(CatalogCache::new(Arc::clone(&executor), Arc::new(()))),
            dispatcher: Dispatcher::new(Arc::clone(&methods), Arc::clone(&executor)),
            methods,
            executor,
            replica_reads: None,
            apis: graphql(false, &Limits::default(), Vec::new()),
            feed: None,
            issuer,
            store: store.clone(),
            accounts: None,
            limits: Limits::default(),
            trusted_proxies: Vec::new(),
            origins: Origins::Any,
            anonymous_database: None,
            insecure_http: false,
            open_sign_up: false,
            mailer: None,
            providers: None,
            help: None,
            graphiql: None,
            console: None,
            docs: None,
            probes: Vec::new(),
            metrics_sources: Vec::new(),
            metrics: Metrics::default(),
            activity: Activity::default(),
            metrics_token: None,
            spans: None,
            default_users: DefaultUsers::new(store),
            external_tokens: None,
            external_issuers: None,
            memory: MemoryBudget::new(Limits::default().memory),
            read_slots: ReadSlots::default(),
            statement_cache: StatementCache::default(),
            node: 0,
            requests: AtomicU64::new(0),
            traced: AtomicU64::new(0),
            shutdown: Shutdown::default(),
        };
        Self(parts, Vec::new())
    }

    /// Lets reads run on the replicas of the executor. With `None`, the default, all reads run on
    /// the primary.
    pub fn replica_reads(mut self, reads: Option<ReplicaReads>) -> Self {
        self.0.replica_reads = reads;
        self
    }

    /// Sets the cache of schemas. By default, schemas are loaded once and never refreshed.
    pub fn catalogs(mut self, catalogs: Arc<CatalogCache>) -> Self {
        self.0.catalogs = catalogs;
        self
    }

    /// Sets the registry of methods. By default, methods are stored in memory and lost when the app
    /// ends.
    pub fn methods(mut self, methods: Arc<Registry>) -> Self {
        let executor = Arc::clone(&self.0.executor);
        self.0.dispatcher = Dispatcher::new(Arc::clone(&methods), executor);
        self.0.methods = methods;
        self
    }

    /// Sets the number of this node, which should be random. It makes the request ids of nodes
    /// differ.
    pub fn node(mut self, node: u64) -> Self {
        self.0.node = node;
        self
    }

    /// Lets owners manage the users and OAuth clients of their tenants. By default, the paths for
    /// this do not exist.
    pub fn accounts(mut self, accounts: Arc<Accounts>) -> Self {
        self.0.accounts = Some(accounts);
        self
    }

    /// Accepts tokens of external issuers, which owners manage through `directory`. `groups` makes
    /// the roles of groups able to log in.
    pub fn external_issuers(
        mut self,
        issuers: Arc<IssuerRegistry>,
        directory: IssuerDirectory,
        groups: Arc<dyn GroupLogins>,
    ) -> Self {
        let users = Arc::clone(&self.0.store);
        self.0.external_tokens = Some(ExternalTokens::new(issuers, groups, users));
        self.0.external_issuers = Some(directory);
        self
    }

    /// Sets the limits on requests.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.0.limits = limits;
        self.0.memory = MemoryBudget::new(limits.memory);
        self
    }

    /// Sets the roles that have their own limits on GraphQL requests.
    pub fn graphql_roles(mut self, roles: Vec<RoleLimits>) -> Self {
        self.1 = roles;
        self
    }

    /// Sets the feed of change events. Without a feed there are no subscriptions.
    pub fn feed(mut self, feed: Option<Feed>) -> Self {
        self.0.feed = feed;
        self
    }

    /// Sets the proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are trusted.
    pub fn trusted_proxies(mut self, proxies: Vec<IpNet>) -> Self {
        self.0.trusted_proxies = proxies;
        self
    }

    /// Sets the origins whose pages may call the API.
    pub fn origins(mut self, origins: Origins) -> Self {
        self.0.origins = origins;
        self
    }

    /// Sets the database for anonymous requests that name no database.
    pub fn anonymous_database(mut self, database: Option<DatabaseName>) -> Self {
        self.0.anonymous_database = database;
        self
    }

    /// Sets whether credentials are accepted over plain HTTP from other machines, for private
    /// networks.
    pub fn insecure_http(mut self, allowed: bool) -> Self {
        self.0.insecure_http = allowed;
        self
    }

    /// Sets the mailer, which sends emails to confirm sign-ups and to reset passwords. Without a
    /// mailer, no emails are sent.
    pub fn mailer(mut self, mailer: Option<Arc<dyn Mailer>>) -> Self {
        self.0.mailer = mailer;
        self
    }

    /// Lets people sign in with identity providers.
    pub fn providers(mut self, providers: Option<Arc<dyn IdentityProviders>>) -> Self {
        self.0.providers = providers;
        self
    }

    /// Sets the text that tells people how to get help. It matters most if no emails are sent,
    /// because people then cannot reset a forgotten password themselves.
    pub fn help(mut self, help: Option<String>) -> Self {
        self.0.help = help;
        self
    }

    /// Sets a GraphiQL build for browsers. Without one, browsers get a small built-in page.
    pub fn graphiql(mut self, built: Option<Graphiql>) -> Self {
        self.0.graphiql = built;
        self
    }

    /// Sets whether the console is served at `/` and `/console/`, and the documentation at
    /// `/docs/`. By default they are not served.
    pub fn console(mut self, served: bool) -> Self {
        let base = base_of(self.0.issuer.address());
        self.0.console = served.then(|| Console::new(base));
        self.0.docs = served.then(|| Docs::new(base));
        self
    }

    /// Sets whether people can sign up even if there is no mailer for confirmation emails. The
    /// OAuth client must allow sign-up. Sign-up also needs [`accounts`](Self::accounts).
    pub fn open_sign_up(mut self, open: bool) -> Self {
        self.0.open_sign_up = open;
        self
    }

    /// Adds a check to `/readyz`.
    pub fn probe(mut self, probe: Arc<dyn Probe>) -> Self {
        self.0.probes.push(probe);
        self
    }

    /// Adds a source of metrics to `/metrics`.
    pub fn metrics(mut self, source: Arc<dyn MetricsSource>) -> Self {
        self.0.metrics_sources.push(source);
        self
    }

    /// Sets the bearer token that `/metrics` requires. Without one, `/metrics` requires no token.
    pub fn metrics_token(mut self, token: Option<Secret>) -> Self {
        self.0.metrics_token = token;
        self
    }

    /// Sends the span of each request to `sink`.
    pub fn spans(mut self, sink: Arc<dyn SpanSink>) -> Self {
        self.0.spans = Some(sink);
        self
    }

    /// Builds the app.
    pub fn build(self) -> App {
        let Self(mut parts, roles) = self;
        parts.apis = graphql(parts.feed.is_some(), &parts.limits, roles);
        App(Arc::new(parts))
    }
}

/// An empty cache of GraphQL APIs. If `feed` is true, the APIs have subscriptions.
fn graphql(feed: bool, limits: &Limits, roles: Vec<RoleLimits>) -> ApiCache {
    let mut asked = limits.graphql;
    asked.rows.bytes = limits.response;
    ApiCache::new(feed, asked, roles)
}

impl fmt::Debug for AppBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AppBuilder")
            .field("limits", &self.0.limits)
            .finish_non_exhaustive()
    }
}
