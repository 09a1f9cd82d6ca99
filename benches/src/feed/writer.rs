//! Writers: pgbench, flat out or at a fixed rate.

use std::process::Output;

use tokio::process::Command;

use crate::Result;
use crate::floor::number;
use crate::service::Service;

/// A table that nobody else writes to, and what is inserted into it.
pub(crate) const TABLE: &str = "create table bench_feed (id bigint generated always as identity \
    primary key, key int not null, at bigint not null, note text not null)";

/// How changes are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writer {
    /// Keys are between 1 and this.
    pub(crate) keys: usize,
    /// Rows of each transaction.
    pub(crate) rows: u32,
    /// Connections.
    pub(crate) clients: u32,
    /// Transactions a second, or as many as there can be.
    pub(crate) rate: Option<u32>,
}

/// What was written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    /// Transactions.
    pub(crate) transactions: usize,
    /// Transactions a second.
    pub(crate) rate: f64,
    /// Milliseconds a transaction took, on average.
    pub(crate) latency: f64,
}

impl Writer {
    /// Writes for so many seconds. The column `at` takes the clock at the insert, in
    /// microseconds.
    pub(crate) async fn run(&self, service: &Service, seconds: u64) -> Result<Written> {
        let file = service.path.join("writer.sql");
        std::fs::write(&file, self.script())?;
        let mut command = Command::new(&service.pgbench);
        command.args(["-n", "-M", "prepared", "-j", "1"]);
        command.args(["-c", &self.clients.to_string()]);
        command.args(["-T", &seconds.max(1).to_string()]);
        if let Some(rate) = self.rate {
            command.args(["-R", &rate.to_string()]);
        }
        command.arg("-f").arg(&file).arg(&service.floor_url);
        let Output {
            status,
            stdout,
            stderr,
        } = command.kill_on_drop(true).output().await?;
        if !status.success() {
            return Err(format!("pgbench: {}", String::from_utf8_lossy(&stderr)).into());
        }
        let text = String::from_utf8_lossy(&stdout);
        let transactions = number(&text, "number of transactions actually processed: ")?;
        Ok(Written {
            transactions: transactions as usize,
            rate: number(&text, "tps = ")?,
            latency: number(&text, "latency average = ")?,
        })
    }

    fn script(&self) -> String {
        let Self { keys, rows, .. } = self;
        let now = "(extract(epoch from clock_timestamp()) * 1000000)::bigint";
        let from = if *rows == 1 {
            String::new()
        } else {
            format!(" from generate_series(1, {rows})")
        };
        format!(
            "\\set key random(1, {keys})\ninsert into bench_feed (key, at, note) \
             select :key, {now}, 'a note of thirty characters, 30'{from};\n"
        )
    }
}
