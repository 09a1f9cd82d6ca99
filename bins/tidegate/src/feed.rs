//! Opens the feed of change events, and reports its state.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use tidegate_admin::RoleCredentials;
use tidegate_admin::doctor::ChangeSource;
use tidegate_bus::Bus;
use tidegate_capture::{Outbox, OutboxSettings, Replication, ReplicationSettings};
use tidegate_changelog::ChangeLog;
use tidegate_feed::{DatabaseStatus, Feed, FeedSettings};
use tidegate_server::text_format::{begin_family, escape};
use tidegate_server::{MetricsSource, Probe};
use tidegate_sql::{BoxFuture, DatabaseName, Executor};
use tidegate_wire::Config;

use crate::bus;
use crate::cli_error::Result;
use crate::service::{self, Service};
use crate::settings::{FeedSource, Settings};

/// Opens the feed, and the bus if the settings name one. If the feed's source cannot be used, logs
/// the reason and opens nothing.
pub(crate) async fn open(
    service: &Service,
    settings: &Settings,
    executor: Arc<dyn Executor>,
) -> Result<(Option<Feed>, Option<Arc<Bus>>)> {
    let reader = service::replication_config(settings)?;
    let source = change_source(settings, &reader);
    if let Some(reason) = service.admin.why_no_changes(source).await? {
        tracing::warn!(reason, "change events are not available");
        return Ok((None, None));
    }
    let mut bus = None;
    let log: Arc<dyn ChangeLog> = match settings.feed_source {
        FeedSource::Logical => {
            let log = Arc::new(replication(service, settings).await?);
            bus = bus::open(service, settings, log.clone());
            match &bus {
                Some(bus) => bus.clone(),
                None => log,
            }
        }
        FeedSource::Outbox => {
            if settings.bus_url.is_some() {
                tracing::warn!("bus_url is ignored; an outbox is read by every node");
            }
            Arc::new(outbox(service).await?)
        }
    };
    let feed = Feed::new(log, executor, FeedSettings::default());
    Ok((Some(feed), bus))
}

/// Whether the feed has left publications or replica identities in a database. `false` if this
/// cannot be determined, or if the source of change events in the settings is not `logical`.
pub(crate) async fn has_left_anything(
    service: &Service,
    settings: &Settings,
    database: &DatabaseName,
) -> bool {
    if settings.feed_source != FeedSource::Logical {
        return false;
    }
    let Ok(log) = replication(service, settings).await else {
        return false;
    };
    let captured = log.captured(database).await;
    captured.is_ok_and(|capture| !capture.publications.is_empty() || !capture.raised.is_empty())
}

/// The source of change events, as an argument of the doctor's checks. `reader` has the login that
/// reads the WAL.
pub(crate) fn change_source<'a>(settings: &Settings, reader: &'a Config) -> ChangeSource<'a> {
    match settings.feed_source {
        FeedSource::Logical if settings.bus_url.is_some() => ChangeSource::LogicalOverBus(reader),
        FeedSource::Logical => ChangeSource::Logical(reader),
        FeedSource::Outbox => ChangeSource::Outbox,
    }
}

/// Opens the change log for `feed_source = outbox`, which reads the tables that triggers fill.
pub(crate) async fn outbox(service: &Service) -> Result<Outbox> {
    let owners = Arc::new(owner_credentials(service).await?);
    let admin = (*service.config).clone();
    let outbox = OutboxSettings {
        node: Some(service.node),
        ..OutboxSettings::default()
    };
    Ok(Outbox::new(admin, Some(owners), outbox))
}

async fn owner_credentials(service: &Service) -> Result<RoleCredentials> {
    let version = service.admin.server().await?.version;
    let control: Arc<dyn Executor> = service.control.clone();
    Ok(RoleCredentials::new(
        control,
        service.passwords.clone(),
        version,
    )?)
}

/// Opens the change log for `feed_source = logical`, which decodes the WAL.
pub(crate) async fn replication(service: &Service, settings: &Settings) -> Result<Replication> {
    let owners = owner_credentials(service).await?;
    let mut reader = service::replication_config(settings)?;
    reader.sessions = service.config.sessions.clone();
    Ok(Replication::new(
        reader,
        (*service.config).clone(),
        Some(Arc::new(owners)),
        ReplicationSettings {
            node: Some(service.node),
            ..ReplicationSettings::default()
        },
    ))
}

/// Reports the state of the feed on `/readyz` and `/metrics`.
pub(crate) struct FeedStatus {
    feed: Option<Feed>,
    source: FeedSource,
}

impl FeedStatus {
    pub(crate) fn new(feed: Option<Feed>, settings: &Settings) -> Self {
        Self {
            feed,
            source: settings.feed_source,
        }
    }
}

impl Probe for FeedStatus {
    fn name(&self) -> &'static str {
        "feed"
    }

    fn source(&self) -> Option<&'static str> {
        Some(match self.source {
            FeedSource::Logical => "logical",
            FeedSource::Outbox => "outbox",
        })
    }

    /// The feed is not essential, because requests succeed without it.
    fn is_essential(&self) -> bool {
        false
    }

    fn is_ready(&self) -> BoxFuture<'_, bool> {
        let live = |feed: &Feed| feed.status().iter().all(|database| database.live);
        Box::pin(std::future::ready(self.feed.as_ref().is_some_and(live)))
    }
}

impl MetricsSource for FeedStatus {
    fn write(&self, text: &mut String) -> fmt::Result {
        let status = self.feed.as_ref().map(Feed::status).unwrap_or_default();
        for Metric {
            name,
            kind,
            help,
            value,
        } in METRICS
        {
            begin_family(text, name, kind, help)?;
            for database in &status {
                let label = escape(database.database.as_str());
                writeln!(text, "{name}{{database=\"{label}\"}} {}", value(database))?;
            }
        }
        Ok(())
    }
}

/// A metric with a value for each database that has subscribers.
struct Metric {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    value: fn(&DatabaseStatus) -> f64,
}

#[expect(
    clippy::cast_precision_loss,
    reason = "Prometheus reads every value as a float of 64 bits"
)]
const METRICS: [Metric; 10] = [
    Metric {
        name: "tidegate_feed_subscriptions",
        kind: "gauge",
        help: "Open subscriptions to changes of the database.",
        value: |database| database.subscriptions as f64,
    },
    Metric {
        name: "tidegate_feed_live",
        kind: "gauge",
        help: "1 while the changes of the database are read, 0 otherwise.",
        value: |database| f64::from(u8::from(database.live)),
    },
    Metric {
        name: "tidegate_feed_position",
        kind: "gauge",
        help: "Position in the log (LSN as a number) up to which changes were handed out.",
        value: |database| database.reached.0 as f64,
    },
    Metric {
        name: "tidegate_feed_lag_bytes",
        kind: "gauge",
        help: "Bytes of log that were not handed out when its end was last looked at.",
        value: |database| database.lag_bytes as f64,
    },
    Metric {
        name: "tidegate_feed_lag_seconds",
        kind: "gauge",
        help: "Seconds for which there has been log that was not handed out.",
        value: |database| database.lag.as_secs_f64(),
    },
    Metric {
        name: "tidegate_feed_queue_events",
        kind: "gauge",
        help: "Events that wait for their subscribers.",
        value: |database| database.queued_events as f64,
    },
    Metric {
        name: "tidegate_feed_queue_bytes",
        kind: "gauge",
        help: "Bytes of the events that wait for their subscribers.",
        value: |database| database.queued_bytes as f64,
    },
    Metric {
        name: "tidegate_feed_events_total",
        kind: "counter",
        help: "Events that were queued for subscribers.",
        value: |database| database.events as f64,
    },
    Metric {
        name: "tidegate_feed_resyncs_total",
        kind: "counter",
        help: "Gaps (resync) that were reported to subscriptions.",
        value: |database| database.resyncs as f64,
    },
    Metric {
        name: "tidegate_feed_slow_consumers_total",
        kind: "counter",
        help: "Connections that were cut because they did not read their events.",
        value: |database| database.slow_consumers as f64,
    },
];
