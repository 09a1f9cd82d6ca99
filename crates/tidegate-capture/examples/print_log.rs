//! Captures a table on a throw-away PostgreSQL and prints the messages of an INSERT.

#![expect(clippy::print_stdout, reason = "the example's output")]

use std::error::Error;
use std::time::Duration;

use tidegate_capture::{Replication, ReplicationSettings};
use tidegate_changelog::{ChangeLog, Demand, LogMessage, LogStart};
use tidegate_embedded::testing;
use tidegate_wire::Config;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut config = Config::from_url(&testing::cluster().url("postgres"))?;
    config.control_database = config.admin_database.clone();
    let database = config.admin_database.clone();
    let sql = tidegate_service::open(&config, &database).await?;
    sql.batch_execute("CREATE TABLE public.notes (id int PRIMARY KEY, text text)")
        .await?;
    let relation = sql
        .query_one("SELECT 'public.notes'::regclass::oid", &[])
        .await?;

    let log = Replication::new(config.clone(), config, None, ReplicationSettings::default());
    let mut stream = log.open(&database, LogStart::Now).await?;
    let demand = Demand {
        relation: relation.get(0),
        changes: true,
        old_rows: false,
        timeout: Duration::from_secs(10),
    };
    log.capture(&database, &demand).await?;
    sql.batch_execute("INSERT INTO public.notes VALUES (1, 'hello')")
        .await?;
    let mut batch = Vec::new();
    loop {
        stream.next(&mut batch).await?;
        for message in batch.drain(..) {
            match message {
                LogMessage::Reached(position) => println!("reached {position}"),
                LogMessage::Change(bytes) => {
                    println!("{}", bytes.escape_ascii());
                    if bytes.first() == Some(&b'I') {
                        return Ok(());
                    }
                }
            }
        }
    }
}
