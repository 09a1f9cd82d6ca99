//! Opens the replicas that the settings name, and shows their state.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use tidegate_pool::Pool;
use tidegate_postgres::{Authentication, PrimaryDecisions, ReplicaStatus, Replicas, UserExecutor};
use tidegate_server::text_format::{begin_family, escape};
use tidegate_server::{AppBuilder, MetricsSource, Probe, ReplicaReads};
use tidegate_service::StandbyTerminator;
use tidegate_sql::BoxFuture;
use tidegate_wire::Config;

use crate::cli_error::Result;
use crate::connector::connector_to;
use crate::ports;
use crate::service::{self, Service};
use crate::settings::{FeedSource, Settings};

/// How long a read waits for a connection to a replica before it runs on the primary.
const WAIT: std::time::Duration = std::time::Duration::from_millis(100);

/// The longest lifetime of a connection to a replica. It is short, because a connection may start
/// with outdated settings of its role: the replica may replay a change of the settings up to a
/// second late.
const MAX_LIFETIME: std::time::Duration = std::time::Duration::from_mins(1);

/// Opens the replicas of the settings, each with a pool of at most `capacity` connections.
/// `decisions` are the decisions about shared connections on the primary. Returns `None` if the
/// settings name no replicas.
pub(crate) fn open(
    service: &Service,
    settings: &Settings,
    capacity: usize,
    decisions: &Arc<dyn Authentication>,
) -> Result<Option<Arc<Replicas>>> {
    let mut replicas = Vec::new();
    for config in service::replica_configs(settings)? {
        let config = Arc::new(config);
        let terminator = Arc::new(StandbyTerminator::new(&config));
        let connector = connector_to(service, config.clone(), terminator)?.for_replica();
        let mut limits = service::pool_settings(capacity, settings);
        limits.wait = limits.wait.min(WAIT);
        limits.max_lifetime = MAX_LIFETIME;
        let passwords = service.passwords.clone();
        let users = UserExecutor::new(Pool::new(connector, limits, ports::jitter()))
            .with_service(service.control.clone())
            .with_authentication(Arc::new(PrimaryDecisions(decisions.clone())))
            .with_claims_keys(move |database, generation| {
                passwords.claims_key(database.as_str(), generation)
            });
        replicas.push((config, users));
    }
    if replicas.is_empty() {
        return Ok(None);
    }
    let primary = service.config.clone();
    Ok(Some(Replicas::start(primary, replicas)))
}

/// Lets requests read from the replicas, and shows their state on `/readyz` and `/metrics`.
pub(crate) fn show(
    app: AppBuilder,
    (service, settings): (&Service, &Settings),
    replicas: Option<&Arc<Replicas>>,
) -> AppBuilder {
    let Some(replicas) = replicas else {
        return app;
    };
    let reads = ReplicaReads {
        cursors_in_wal: matches!(settings.feed_source, FeedSource::Logical),
    };
    let status = Arc::new(ReplicaProbe {
        primary: service.config.clone(),
        replicas: replicas.clone(),
    });
    app.replica_reads(Some(reads))
        .probe(status.clone())
        .metrics(status)
}

struct ReplicaProbe {
    primary: Arc<Config>,
    replicas: Arc<Replicas>,
}

impl ReplicaProbe {
    /// The replicas, except the server that is the primary now. If every server of the cluster may
    /// become the primary, `replica_urls` names all servers, including the present primary.
    fn standbys(&self) -> Vec<ReplicaStatus> {
        let primary = self.primary.primary().map(ToString::to_string);
        let mut replicas = self.replicas.status();
        replicas.retain(|replica| Some(&replica.address) != primary.as_ref());
        replicas
    }
}

impl Probe for ReplicaProbe {
    fn name(&self) -> &'static str {
        "replicas"
    }

    /// The replicas are not essential, because the primary can run all reads.
    fn is_essential(&self) -> bool {
        false
    }

    fn is_ready(&self) -> BoxFuture<'_, bool> {
        let used = self.standbys().iter().all(|replica| replica.used);
        Box::pin(std::future::ready(used))
    }
}

impl MetricsSource for ReplicaProbe {
    fn write(&self, text: &mut String) -> fmt::Result {
        let replicas = self.standbys();
        for (name, kind, help) in [
            (
                "tidegate_replica_used",
                "gauge",
                "1 while reads go to the replica, 0 while it is unreachable or too far behind.",
            ),
            (
                "tidegate_replica_lag_bytes",
                "gauge",
                "The primary's WAL that the replica has not replayed; absent while it does not answer.",
            ),
            (
                "tidegate_replica_reads_total",
                "counter",
                "Reads that the replica answered.",
            ),
            (
                "tidegate_replica_failed_reads_total",
                "counter",
                "Reads that failed on the replica and ran on the primary.",
            ),
        ] {
            begin_family(text, name, kind, help)?;
            for replica in &replicas {
                let value = match name {
                    "tidegate_replica_used" => Some(u64::from(replica.used)),
                    "tidegate_replica_lag_bytes" => replica.lag,
                    "tidegate_replica_reads_total" => Some(replica.answered),
                    _ => Some(replica.failed),
                };
                let Some(value) = value else { continue };
                let address = escape(&replica.address);
                writeln!(text, "{name}{{replica=\"{address}\"}} {value}")?;
            }
        }
        Ok(())
    }
}
