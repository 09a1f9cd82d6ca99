//! Opens the bus and reports its state. One node reads the changes of a database and sends them
//! over the bus to the other nodes.

use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use tidegate_bus::{Bus, BusReport, BusSettings, BusStatus};
use tidegate_capture::{Replication, ReplicationSettings};
use tidegate_feed::FeedSettings;
use tidegate_identity::MasterKey;
use tidegate_server::text_format::{begin_family, escape, write_metric};
use tidegate_server::{AppBuilder, MetricsSource, Probe};
use tidegate_sql::BoxFuture;
use zeroize::Zeroizing;

use crate::cli_error::{CliError, Result};
use crate::service::Service;
use crate::settings::Settings;
use crate::{master_key, ports};

/// The time for which JetStream keeps changes in addition to the retention window. With this
/// margin, a client can resume from a cursor at the start of the window.
const MARGIN: Duration = Duration::from_mins(1);

/// Opens a bus over which nodes share the changes of `log`; `None` if the settings name no bus.
pub(crate) fn open(
    service: &Service,
    settings: &Settings,
    log: Arc<Replication>,
) -> Option<Arc<Bus>> {
    let bus = bus_settings(&service.master, settings)?;
    Some(Arc::new(Bus::new(log, bus)))
}

/// The settings of the bus; `None` if `settings` names no bus.
fn bus_settings(master: &MasterKey, settings: &Settings) -> Option<BusSettings> {
    let url = settings.bus_url.as_ref()?;
    Some(BusSettings {
        url: Zeroizing::new(url.0.clone()),
        key: master.derive("bus"),
        session: ports::bytes(),
        window: FeedSettings::default().retention_window + MARGIN,
        bytes: settings.bus_bytes.0,
        retention: ReplicationSettings::default().retention.unwrap_or_default(),
    })
}

/// Reads the state of the bus from NATS, for an operator; `None` if the settings name no bus.
///
/// # Errors
///
/// If NATS cannot be used, or if the master key cannot be read: the names that the bus uses in NATS
/// are derived from the master key.
pub(crate) async fn report(settings: &Settings) -> Option<Result<BusReport>> {
    settings.bus_url.as_ref()?;
    let bus = match master_key::read(settings) {
        Ok(master) => bus_settings(&master, settings)?,
        Err(error) => return Some(Err(error)),
    };
    Some(BusReport::read(&bus).await.map_err(CliError::Bus))
}

/// Shows the state of the bus on `/readyz` and `/metrics`.
pub(crate) fn show(app: AppBuilder, bus: Option<Arc<Bus>>) -> AppBuilder {
    match bus.map(|bus| Arc::new(BusProbe(bus))) {
        Some(probe) => app.probe(probe.clone()).metrics(probe),
        None => app,
    }
}

struct BusProbe(Arc<Bus>);

impl Probe for BusProbe {
    fn name(&self) -> &'static str {
        "bus"
    }

    /// The bus is not essential, because without it every node reads the changes itself.
    fn is_essential(&self) -> bool {
        false
    }

    fn is_ready(&self) -> BoxFuture<'_, bool> {
        Box::pin(std::future::ready(works(&self.0.status())))
    }
}

fn works(status: &BusStatus) -> bool {
    status.connected && status.problem.is_none()
}

impl MetricsSource for BusProbe {
    fn write(&self, text: &mut String) -> fmt::Result {
        let status = self.0.status();
        let name = "tidegate_bus_reader";
        let help = "1 for each database whose changes this node reads for all nodes, 0 for each \
                    that it follows.";
        begin_family(text, name, "gauge", help)?;
        for role in &status.databases {
            let database = escape(role.database.as_str());
            let reads = u8::from(role.reads);
            writeln!(text, "{name}{{database=\"{database}\"}} {reads}")?;
        }
        for (name, kind, help, value) in METRICS {
            write_metric(text, (name, kind), help, value(&status))?;
        }
        Ok(())
    }
}

/// The name, type (`gauge` or `counter`), help text and value of a metric.
type Metric = (
    &'static str,
    &'static str,
    &'static str,
    fn(&BusStatus) -> u64,
);

const METRICS: [Metric; 8] = [
    (
        "tidegate_bus_connected",
        "gauge",
        "1 while there is a connection to a NATS server, 0 otherwise.",
        |status| u64::from(status.connected),
    ),
    (
        "tidegate_bus_degraded",
        "gauge",
        "1 while the bus does not work completely, as on /readyz, 0 otherwise.",
        |status| u64::from(!works(status)),
    ),
    (
        "tidegate_bus_sent_total",
        "counter",
        "Messages that this node has sent as a reader.",
        |status| status.sent,
    ),
    (
        "tidegate_bus_unsent_total",
        "counter",
        "Messages that could not be sent because the connection was broken or too slow.",
        |status| status.unsent,
    ),
    (
        "tidegate_bus_received_total",
        "counter",
        "Messages of readers that this node has received.",
        |status| status.received,
    ),
    (
        "tidegate_bus_refused_total",
        "counter",
        "Messages that were not sealed with this cluster's key.",
        |status| status.refused,
    ),
    (
        "tidegate_bus_from_store_total",
        "counter",
        "Missing messages that were read from JetStream.",
        |status| status.from_store,
    ),
    (
        "tidegate_bus_from_slot_total",
        "counter",
        "Gaps that a stream of this node's own has filled.",
        |status| status.from_slot,
    ),
];
