//! Writers of changes: pgbench at full speed or at a fixed rate.

use std::process::Output;

use tokio::process::Command;

use crate::Result;
use crate::floor::number;
use crate::service::Service;

/// The SQL that creates the table to which the writers write.
pub(crate) const TABLE: &str = "create table bench_feed (id bigint generated always as identity \
    primary key, key int not null, at bigint not null, note text not null)";

/// The parameters of a run of the writers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writer {
    /// The highest key. Keys start at 1.
    pub(crate) keys: usize,
    /// The number of rows of each transaction.
    pub(crate) rows: u32,
    /// The number of connections.
    pub(crate) clients: u32,
    /// The number of transactions per second; `None` for full speed.
    pub(crate) rate: Option<u32>,
}

/// The result of a run of the writers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteResult {
    /// The number of transactions.
    pub(crate) transactions: usize,
    /// The number of transactions per second.
    pub(crate) rate: f64,
    /// The average latency of a transaction in milliseconds.
    pub(crate) latency: f64,
}

impl Writer {
    /// Inserts rows for `seconds` seconds. The column `at` gets the time of the insert in
    /// microseconds since 1970.
    pub(crate) async fn run(&self, service: &Service, seconds: u64) -> Result<WriteResult> {
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
        Ok(WriteResult {
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
