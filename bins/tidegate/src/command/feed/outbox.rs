//! `tidegate feed …` if the setting `feed_source` is `outbox`.

use std::fmt::Write as _;

use tidegate_capture::{Outbox, OutboxReader, OutboxRemoval, OutboxStatus};
use tidegate_sql::DatabaseName;

use super::{cli_error, print, size};
use crate::cli::FeedCommand;
use crate::cli_error::{CliError, Result};
use crate::service::Service;

/// Runs a subcommand of `tidegate feed` for outboxes.
pub(super) async fn run(command: FeedCommand, service: &Service) -> Result {
    let outbox = crate::feed::outbox(service).await?;
    match command {
        FeedCommand::Status { database } => {
            let databases = if let Some(database) = database {
                vec![database]
            } else {
                let tenants = service.tenants.list().await?;
                tenants.into_iter().map(|tenant| tenant.name).collect()
            };
            status(&outbox, &databases).await
        }
        FeedCommand::Drop {
            database,
            end_streams,
            confirmation,
        } => {
            let what = format!("the outbox of {database}");
            confirmation.confirm(&what, &database)?;
            drop_outbox(&outbox, &DatabaseName::new(&database), end_streams).await
        }
    }
}

async fn status(outbox: &Outbox, databases: &[String]) -> Result {
    print("feed_source = outbox\n")?;
    for database in databases {
        // An error of one database must not hide the state of the others.
        let name = DatabaseName::new(database);
        match outbox.status(&name).await {
            Ok(Some(status)) => print(described(database, &status))?,
            Ok(None) => print(format_args!("\n{database}\n  no outbox\n"))?,
            Err(error) if databases.len() == 1 => return Err(cli_error(&name, error)),
            Err(error) => {
                let text = cli_error(&name, error).text();
                print(format_args!("\n{database}: {text}\n"))?;
            }
        }
    }
    Ok(())
}

fn described(database: &str, status: &OutboxStatus) -> String {
    let mut text = format!("\n{database}\n");
    let _ = writeln!(
        text,
        "  {} transactions with {} of changes, {} on disk",
        status.transactions,
        size(status.bytes),
        size(status.disk)
    );
    let _ = match status.lease {
        0 => writeln!(
            text,
            "  no node renews its lease: triggers do not write to it"
        ),
        left => writeln!(
            text,
            "  writers fill it for {left} s more if no server runs"
        ),
    };
    for reader in &status.readers {
        let _ = writeln!(text, "  {}", reader_line(reader));
    }
    for table in &status.tables {
        let _ = writeln!(text, "  triggers on {table}");
    }
    text
}

fn reader_line(reader: &OutboxReader) -> String {
    let from = reader.address.as_deref().unwrap_or("this machine");
    let process = reader.process;
    format!("process {process} of PostgreSQL reads it for {from}")
}

async fn drop_outbox(outbox: &Outbox, database: &DatabaseName, end_streams: bool) -> Result {
    let removed = outbox.remove(database, end_streams).await;
    match removed.map_err(|error| cli_error(database, error))? {
        OutboxRemoval::Done(None) => print("-- there was nothing\n"),
        OutboxRemoval::Done(Some(_)) => print("DROP SCHEMA tidegate_outbox CASCADE;\n"),
        OutboxRemoval::Recreated => Err(CliError::Refused(format!(
            "a server that runs reads the outbox of {database} again, and has created it again; stop \
             it first"
        ))),
        OutboxRemoval::Streaming(readers) => {
            let mut text = format!("the outbox of {database} is still read:\n");
            for reader in &readers {
                let _ = writeln!(text, "  {}", reader_line(reader));
            }
            text.push_str(
                "nothing was dropped; stop those servers, or let --end-streams end sessions whose \
                 server is gone",
            );
            Err(CliError::Refused(text))
        }
    }
}
