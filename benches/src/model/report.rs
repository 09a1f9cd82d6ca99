//! Prints the resources that a size needs.

use std::fmt::Write as _;

use super::arguments::{Limits, ModelSize};
use super::constants::Constants;
use super::needs::{Limited, Needs};

/// A line: the name of a resource, its amount with a bus and without, and its limit.
type ReportRow = (&'static str, fn(&Needs) -> Option<f64>, Option<f64>);

/// The needs of a size on a number of nodes.
pub(crate) struct Report<'a> {
    pub(crate) size: &'a ModelSize,
    pub(crate) limits: &'a Limits,
    pub(crate) constants: &'a Constants,
    pub(crate) nodes: u32,
    pub(crate) with_bus: Needs,
    pub(crate) without: Needs,
}

impl Report<'_> {
    /// The report as text.
    pub(crate) fn text(&self) -> String {
        let ModelSize {
            sockets,
            tenants,
            changes,
            events_per_change,
            row_bytes,
            requests,
            ..
        } = self.size;
        let mut out = format!(
            "{sockets} sockets, {tenants} tenants with subscribers, {changes} changes/s of {row_bytes} \
             bytes,\n{events_per_change} events a change, {requests} requests/s; constants of {}: {}\n\n",
            self.constants.date, self.constants.source
        );
        self.table(&mut out);
        let first = |needs: &Needs| needs.first(self.limits).map(sentence).unwrap_or_default();
        // Writing to a String does not fail.
        let _ = write!(
            out,
            "\nfirst limit with a bus: {}\nfirst limit without: {}\n",
            first(&self.with_bus),
            first(&self.without)
        );
        out
    }

    fn table(&self, out: &mut String) {
        let head = ["with a bus", "without", "has"].map(str::to_owned);
        // Writing to a String does not fail.
        let _ = writeln!(out, "{}\neach of {} nodes", line("", head), self.nodes);
        let rows = self.node_rows().into_iter().chain(self.database_rows());
        for (what, of, has) in rows.chain(self.nats_rows()) {
            let columns = [of(&self.with_bus), of(&self.without), has].map(number);
            let _ = writeln!(out, "{}", line(what, columns));
        }
    }

    fn node_rows(&self) -> [ReportRow; 3] {
        let has = self.limits;
        [
            ("  cores", |it| Some(it.node.cores), Some(has.node_cores)),
            (
                "  memory, MiB",
                |it| Some(it.node.memory_mib),
                Some(has.node_memory),
            ),
            (
                "  connections",
                |it| Some(it.node.connections),
                Some(has.connections),
            ),
        ]
    }

    fn database_rows(&self) -> [ReportRow; 5] {
        let has = self.limits;
        [
            (
                "PostgreSQL: cores",
                |it| Some(it.postgresql.cores),
                Some(has.postgresql_cores),
            ),
            (
                "  of them for decoding",
                |it| Some(it.postgresql.decoding_cores),
                None,
            ),
            (
                "  max_connections",
                |it| Some(it.postgresql.max_connections),
                Some(has.max_connections),
            ),
            (
                "  max_wal_senders",
                |it| Some(it.postgresql.max_wal_senders),
                Some(has.max_wal_senders),
            ),
            (
                "  max_replication_slots",
                |it| Some(it.postgresql.max_replication_slots),
                Some(has.max_replication_slots),
            ),
        ]
    }

    fn nats_rows(&self) -> [ReportRow; 4] {
        let has = self.limits;
        [
            (
                "each of 3 NATS servers: cores",
                |it| Some(it.nats?.cores),
                Some(has.nats_cores),
            ),
            ("  messages a second", |it| Some(it.nats?.messages), None),
            ("  MiB a second", |it| Some(it.nats?.mib_per_second), None),
            (
                "  bus_bytes, MiB",
                |it| Some(it.nats?.bus_mib),
                Some(has.bus_bytes),
            ),
        ]
    }

    /// The report as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        let first = |needs: &Needs| needs.first(self.limits).map(|it| it.what);
        serde_json::json!({
            "nodes": self.nodes,
            "with_bus": self.with_bus,
            "without_bus": self.without,
            "first_limit_with_bus": first(&self.with_bus),
            "first_limit_without_bus": first(&self.without),
        })
    }
}

fn line(what: &str, [bus, without, has]: [String; 3]) -> String {
    format!("{what:<30} {bus:>10} {without:>10} {has:>10}")
        .trim_end()
        .to_owned()
}

/// A number with two decimals if it is below 10 and no integer, otherwise without decimals; `-` for
/// `None`.
fn number(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if value < 10.0 && value.fract() != 0.0 => format!("{value:.2}"),
        Some(value) => format!("{value:.0}"),
    }
}

fn sentence(Limited { what, needed, has }: Limited) -> String {
    let (shown, limit) = (number(Some(needed)), number(Some(has)));
    if needed > has {
        format!("{what}: {limit}, and {shown} are needed")
    } else {
        format!(
            "{what}: {shown} of {limit}; at {:.1} times this size",
            has / needed
        )
    }
}
