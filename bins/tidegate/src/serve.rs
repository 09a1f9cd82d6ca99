//! `tidegate serve`, and the code that `tidegate demo` and `tidegate up` use too.

mod shutdown;
mod sign_in_url;
mod sockets;

use std::sync::Arc;
use std::time::Duration;

use tidegate_admin::doctor::Severity;
use tidegate_bus::Bus;
use tidegate_catalog::CatalogCache;
use tidegate_identity::{Mailer, Secret};
use tidegate_mail::SmtpMailer;
use tidegate_methods::Registry;
use tidegate_oauth::Issuer;
use tidegate_server::{App, AppBuilder, Graphiql, Limits, Listener, Origins, RoleLimits};
use tidegate_sql::DatabaseName;
use tidegate_wire::backoff::Backoff;

use crate::authenticators::RoleMaintenance;
use crate::catalog_watch::{CatalogProbe, CatalogWatch};
use crate::cli_error::{CliError, Result};
use crate::feed::{self, FeedStatus};
use crate::maintenance::Maintenance;
use crate::node_share::ShareKeeper;
use crate::password_metrics::PasswordMetrics;
use crate::pool::{ControlProbe, UserPool};
use crate::service::{self, Service};
use crate::settings::{CorsOrigin, RoleLimit, Settings};
use crate::signal::StopSignals;
use crate::traces::Traces;
use crate::{builtin_clients, bus, graphiql, identity, ports, replicas};

pub(crate) use sockets::Sockets;

/// How long a shutdown waits until cancelled statements have ended.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);
/// The interval between checks of the certificate's files for changes.
const CERTIFICATE_INTERVAL: Duration = Duration::from_secs(10);

/// Runs `tidegate serve` until the process receives a stop signal.
pub(crate) async fn run(settings: &Settings) -> Result {
    let mut signals = StopSignals::listen()?;
    require_safe_address(settings)?;
    let graphiql = graphiql::read(settings)?;
    let sockets = Sockets::bind(settings).await?;
    let (service, sockets) = match Service::open(settings).await {
        Err(outage) if outage.is_outage() => {
            // While the service waits for PostgreSQL, connections must be refused. If the sockets
            // stayed open, clients would connect and wait for a response.
            drop(sockets);
            let service = tokio::select! {
                service = wait_for_postgresql(settings, outage) => service?,
                _ = signals.next() => return Ok(()),
            };
            (service, Sockets::bind(settings).await?)
        }
        opened => (opened?, sockets),
    };
    log_missing(&service, settings).await?;
    let issuer = match &settings.public_url {
        Some(url) => url.0.clone(),
        None => sockets.url(),
    };
    let node = Node::start(&service, settings, &issuer, graphiql).await?;
    let addresses: Vec<_> = sockets.addresses.iter().map(ToString::to_string).collect();
    let addresses = addresses.join(", ");
    let version = env!("CARGO_PKG_VERSION");
    tracing::info!(addresses, issuer, version, "listening");
    node.serve(sockets, signals).await
}

/// Fails if the service listens on an address other than loopback and `public_url` is missing. Also
/// fails if credentials would cross a network unencrypted and `insecure_http` is false.
pub(crate) fn require_safe_address(settings: &Settings) -> Result {
    let loopback = settings
        .listen
        .iter()
        .all(|address| address.ip().is_loopback());
    if settings.public_url.is_none() && !loopback {
        return Err(CliError::Usage(
            "the setting public_url is missing: the address at which users reach this service, \
             such as https://api.example.com; it is the issuer of its tokens"
                .to_owned(),
        ));
    }
    if let Some(url) = &settings.public_url
        && url.is_insecure()
        && !settings.insecure_http
    {
        return Err(CliError::Usage(format!(
            "the setting public_url is {}: passwords and tokens would cross the network in the \
             clear; use https:// (tls_certificate and tls_key, or a proxy named in \
             trusted_proxies), or insecure_http = true for a network that is private",
            url.0
        )));
    }
    Ok(())
}

/// Retries until PostgreSQL is reachable, because after a boot PostgreSQL may start later than the
/// service.
async fn wait_for_postgresql(settings: &Settings, mut outage: CliError) -> Result<Service> {
    let mut backoff = Backoff::new(ports::jitter());
    loop {
        let delay = backoff.fail();
        tracing::warn!(error = outage.text(), retry_in = ?delay, "cannot reach PostgreSQL; retrying");
        tokio::time::sleep(delay).await;
        match Service::open(settings).await {
            Err(still) if still.is_outage() => outage = still,
            opened => return opened,
        }
    }
}

/// Logs the findings that `tidegate doctor` reports with the severity `Missing`. The node starts
/// anyway, because many requests work without the missing objects.
async fn log_missing(service: &Service, settings: &Settings) -> Result {
    let replication = service::replication_config(settings)?;
    for finding in service
        .admin
        .examine(feed::change_source(settings, &replication))
        .await?
    {
        if finding.severity == Severity::Missing {
            tracing::warn!(
                problem = finding.text,
                sql = finding.sql,
                "tidegate doctor found a problem"
            );
        }
    }
    Ok(())
}

/// The parts of a node that is ready to serve.
pub(crate) struct Node {
    app: App,
    maintenance: Maintenance,
    role_maintenance: RoleMaintenance,
    keeper: ShareKeeper,
    traces: Traces,
    shutdown_delay: Option<Duration>,
}

impl Node {
    /// Creates the parts of a node and connects them.
    pub(crate) async fn start(
        service: &Service,
        settings: &Settings,
        issuer: &str,
        graphiql: Option<Graphiql>,
    ) -> Result<Self> {
        let mut identity = tidegate_oauth::Settings::new(issuer)?;
        identity.builtin = builtin_clients::of_service(settings, issuer);
        let issuer = Issuer::start(service.ports.clone(), service.master.clone(), identity).await?;
        let issuer = Arc::new(issuer);
        let keeper = ShareKeeper::register(service, settings).await?;
        let pool = UserPool::open(service, settings, keeper.for_users())?;
        let methods = Arc::new(Registry::new(service.methods.clone()));
        let catalogs = CatalogCache::new(service.control.clone(), Arc::new(pool.clone()));
        let catalogs = Arc::new(catalogs);
        let (feed, bus) = feed::open(service, settings, pool.primary()).await?;
        let status = Arc::new(FeedStatus::new(feed.clone(), settings));
        let app = App::builder(pool.executor(), issuer.clone(), service.store.clone())
            .accounts(Arc::new(service.accounts()))
            .methods(methods.clone())
            .catalogs(catalogs.clone())
            .node(u64::from_be_bytes(ports::bytes()))
            .limits(limits(settings)?)
            .graphql_roles(role_limits(&settings.graphql_role_limits)?)
            .trusted_proxies(settings.trusted_proxies.clone())
            .origins(origins(&settings.cors_origins)?)
            .anonymous_database(settings.anonymous_database.as_ref().map(DatabaseName::new))
            .insecure_http(settings.insecure_http)
            .open_sign_up(settings.open_signup)
            .mailer(mail(settings)?)
            .providers(identity::providers(settings)?)
            .help(settings.help_contact.clone())
            .graphiql(graphiql)
            .console(settings.console)
            .probe(Arc::new(ControlProbe(service.control.clone())))
            .feed(feed.clone())
            .probe(Arc::new(CatalogProbe(catalogs.clone())))
            .probe(status.clone())
            .metrics(Arc::new(pool.clone()))
            .metrics(keeper.published())
            .metrics(status)
            .metrics_token(metrics_token(settings));
        let app = service.accept_external_issuers(show(app, bus, (service, settings), &pool))?;
        let (app, traces) = crate::traces::export(app, settings)?;
        let app = app.build();
        app.reload_issuers().await?;
        let maintenance = Maintenance {
            issuer,
            control: service.control.clone(),
            app: app.clone(),
            methods,
            pool: pool.clone(),
            catalogs,
            feed,
        };
        Ok(Self {
            app,
            maintenance,
            role_maintenance: RoleMaintenance::new(service, pool),
            keeper,
            traces,
            shutdown_delay: settings.shutdown_delay.map(|delay| delay.0),
        })
    }

    /// Serves until a signal stops the node. Then finishes the requests in progress.
    pub(crate) async fn serve(self, sockets: Sockets, signals: StopSignals) -> Result {
        let mut beside = tokio::task::JoinSet::new();
        let (catalogs, control) = (
            self.maintenance.catalogs.clone(),
            self.maintenance.control.clone(),
        );
        let users = self.maintenance.pool.clone();
        let feed = self.maintenance.feed.clone();
        beside.spawn(CatalogWatch::new(catalogs, control, users.clone(), feed.clone()).run());
        beside.spawn(self.maintenance.run());
        beside.spawn(self.role_maintenance.run());
        beside.spawn(self.keeper.run(users.clone()));
        beside.spawn(self.traces);
        if let Some(certificate) = sockets.certificate.clone() {
            beside.spawn(certificate.watch(CERTIFICATE_INTERVAL));
        }
        let listener = |socket| match &sockets.certificate {
            Some(certificate) => Listener::tls(socket, certificate.clone()),
            None => Listener::plain(socket),
        };
        let operations = sockets.operations.map(Listener::operations);
        let listeners = sockets.bound.into_iter().map(listener);
        let listeners = listeners.chain(operations).collect();
        // When the node is to stop, the feed ends the event streams, because event streams do not
        // end by themselves and the node waits for all responses.
        let (app, delay) = (self.app.clone(), self.shutdown_delay);
        let stop = async move {
            shutdown::requested(signals, &app, delay).await;
            if let Some(feed) = feed {
                feed.stop();
            }
        };
        tidegate_server::serve(listeners, self.app, stop).await?;
        // The process must not exit before the CancelRequests for cancelled statements are sent.
        let _ = tokio::time::timeout(CANCEL_TIMEOUT, users.wait_idle()).await;
        Ok(())
    }
}

/// Adds the number of hashed passwords to `/metrics`. If the settings name a bus or replicas, also
/// adds their state to `/metrics` and `/readyz`.
fn show(
    app: AppBuilder,
    bus: Option<Arc<Bus>>,
    (service, settings): (&Service, &Settings),
    pool: &UserPool,
) -> AppBuilder {
    let passwords = PasswordMetrics(service.ports.hasher.clone());
    let app = bus::show(app.metrics(Arc::new(passwords)), bus);
    replicas::show(app, (service, settings), pool.replicas())
}

fn metrics_token(settings: &Settings) -> Option<Secret> {
    let token = settings.metrics_token.as_ref()?;
    Some(Secret::new(token.0.as_str()))
}

/// The mailer; `None` if the settings name no SMTP server.
fn mail(settings: &Settings) -> Result<Option<Arc<dyn Mailer>>> {
    match (&settings.smtp_url, &settings.mail_from) {
        (Some(url), Some(from)) => {
            let mail = SmtpMailer::new(&url.0, from);
            let mail = mail.map_err(|error| CliError::Usage(error.to_string()))?;
            Ok(Some(Arc::new(mail)))
        }
        (None, None) => Ok(None),
        (Some(_), None) => Err(CliError::incomplete("smtp_url", "mail_from")),
        (None, Some(_)) => Err(CliError::incomplete("mail_from", "smtp_url")),
    }
}

fn fits(number: u64) -> Result<usize> {
    usize::try_from(number)
        .map_err(|_| CliError::Usage("a limit is too large for this machine".to_owned()))
}

fn role_limits(roles: &[RoleLimit]) -> Result<Vec<RoleLimits>> {
    let read = |own: &RoleLimit| {
        let [depth, fields, roots] = own.limits;
        Ok(RoleLimits {
            role: own.role.as_str().into(),
            depth: fits(depth.into())?,
            fields: fits(fields.into())?,
            roots: fits(roots.into())?,
        })
    };
    roles.iter().map(read).collect()
}

fn limits(settings: &Settings) -> Result<Limits> {
    let mut limits = Limits {
        request_body: settings.body_limit.0,
        sql_text: fits(settings.statement_limit.0)?,
        response: settings.response_limit.0,
        memory: settings.memory_limit.0,
        batch: fits(settings.batch_limit.into())?,
        parameter_sets: fits(settings.parameter_set_limit.into())?,
        statement: settings.statement_timeout.0,
        connections: fits(settings.connections.into())?,
        graphql_batch: fits(settings.graphql_batch_limit.into())?,
        ..Limits::default()
    };
    limits.graphql.depth = fits(settings.graphql_depth_limit.into())?;
    limits.graphql.fields = fits(settings.graphql_field_limit.into())?;
    limits.graphql.roots = fits(settings.graphql_root_limit.into())?;
    limits.graphql.document = fits(settings.graphql_document_limit.0)?;
    limits.graphql.rows.default_rows = settings.graphql_page_size.into();
    limits.graphql.rows.most_rows = settings.graphql_row_limit.into();
    limits.timeouts.header = settings.header_timeout.0;
    limits.timeouts.body = settings.body_timeout.0;
    limits.timeouts.write = settings.write_timeout.0;
    limits.timeouts.idle = settings.idle_timeout.0;
    limits.timeouts.drain = settings.drain_timeout.0;
    Ok(limits)
}

fn origins(origins: &[CorsOrigin]) -> Result<Origins> {
    if origins.iter().any(|origin| origin.0 == "*") {
        return Ok(Origins::Any);
    }
    let value = |origin: &CorsOrigin| {
        http::HeaderValue::from_str(&origin.0)
            .map_err(|_| CliError::Usage(format!("{} is not an origin", origin.0)))
    };
    Ok(Origins::Listed(
        origins.iter().map(value).collect::<Result<_>>()?,
    ))
}
