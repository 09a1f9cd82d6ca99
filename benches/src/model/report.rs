//! Prints what a size needs.

use std::fmt::Write as _;

use super::arguments::{Limits, Size};
use super::constants::Constants;
use super::needs::{Need, Needs};

/// The needs of a size on a number of nodes.
pub(crate) struct Report<'a> {
    pub(crate) size: &'a Size,
    pub(crate) limits: &'a Limits,
    pub(crate) constants: &'a Constants,
    pub(crate) nodes: u32,
    pub(crate) with_bus: Needs,
    pub(crate) without: Needs,
}

impl Report<'_> {
    /// The report as text.
    pub(crate) fn text(&self) -> String {
        let Size {
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
        let (bus, without, limits) = (&self.with_bus, &self.without, self.limits);
        let mut head = |what: &str| {
            let _ = writeln!(out, "{what}");
        };
        head(&line(
            "",
            ["with a bus", "without", "has"].map(str::to_owned),
        ));
        head(&format!("each of {} nodes", self.nodes));
        let mut row = |what: &str, of: &dyn Fn(&Needs) -> Option<f64>, has: Option<f64>| {
            let columns = [of(bus), of(without), has].map(number);
            head(&line(what, columns));
        };
        row(
            "  cores",
            &|it| Some(it.node.cores),
            Some(limits.node_cores),
        );
        row(
            "  memory, MiB",
            &|it| Some(it.node.memory_mib),
            Some(limits.node_memory),
        );
        row(
            "  connections",
            &|it| Some(it.node.connections),
            Some(limits.connections),
        );
        row(
            "PostgreSQL: cores",
            &|it| Some(it.postgresql.cores),
            Some(limits.postgresql_cores),
        );
        row(
            "  of them for decoding",
            &|it| Some(it.postgresql.decoding_cores),
            None,
        );
        row(
            "  max_connections",
            &|it| Some(it.postgresql.max_connections),
            Some(limits.max_connections),
        );
        row(
            "  max_wal_senders",
            &|it| Some(it.postgresql.max_wal_senders),
            Some(limits.max_wal_senders),
        );
        row(
            "  max_replication_slots",
            &|it| Some(it.postgresql.max_replication_slots),
            Some(limits.max_replication_slots),
        );
        row(
            "each of 3 NATS servers: cores",
            &|it| Some(it.nats?.cores),
            Some(limits.nats_cores),
        );
        row("  messages a second", &|it| Some(it.nats?.messages), None);
        row("  MiB a second", &|it| Some(it.nats?.mib_per_second), None);
        row(
            "  bus_bytes, MiB",
            &|it| Some(it.nats?.bus_mib),
            Some(limits.bus_bytes),
        );
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

/// A number with three digits at least; `-` without one.
fn number(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if value < 10.0 && value.fract() != 0.0 => format!("{value:.2}"),
        Some(value) => format!("{value:.0}"),
    }
}

fn sentence(Need { what, need, has }: Need) -> String {
    let (shown, limit) = (number(Some(need)), number(Some(has)));
    if need > has {
        format!("{what}: {limit}, and {shown} are needed")
    } else {
        format!(
            "{what}: {shown} of {limit}; at {:.1} times this size",
            has / need
        )
    }
}
