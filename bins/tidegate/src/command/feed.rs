//! `tidegate feed …`: shows and drops the objects that change events need in PostgreSQL.

mod outbox;

use std::fmt::Write as _;

use tidegate_capture::{
    ClusterCapture, DatabaseCapture, Removal, Replication, SlotStatus, StreamingNode,
};
use tidegate_changelog::LogError;
use tidegate_sql::DatabaseName;

use super::{print, print_table};
use crate::cli::FeedCommand;
use crate::cli_error::{CliError, Result};
use crate::service::Service;
use crate::settings::{FeedSource, Settings};

/// Runs a subcommand of `tidegate feed`, for the source of change events in the settings.
pub(crate) async fn run(command: FeedCommand, settings: &Settings) -> Result {
    let service = Service::open(settings).await?;
    if settings.feed_source == FeedSource::Outbox {
        return outbox::run(command, &service).await;
    }
    let log = crate::feed::replication(&service, settings).await?;
    match command {
        FeedCommand::Status { database } => status(&service, &log, database.as_deref()).await,
        FeedCommand::Drop {
            database,
            end_streams,
            confirmation,
        } => {
            let what = format!("everything of the feed in {database}");
            confirmation.confirm(&what, &database)?;
            drop_feed(&log, &DatabaseName::new(&database), end_streams).await
        }
    }
}

/// Prints the state of the cluster, and the state of one database. Without a name, prints the state
/// of all tenants and of all other databases that have slots.
async fn status(service: &Service, log: &Replication, database: Option<&str>) -> Result {
    let cluster = log.cluster().await?;
    let named = |name: &str| database.is_none_or(|database| database == name);
    let slots: Vec<&SlotStatus> = cluster
        .slots
        .iter()
        .filter(|slot| named(slot.database.as_str()))
        .collect();
    if let Some(database) = database {
        let database = DatabaseName::new(database);
        let capture = log.captured(&database).await;
        let capture = capture.map_err(|error| cli_error(&database, error))?;
        print(settings_of(&cluster))?;
        print_slots(&slots)?;
        return print(captured(database.as_str(), &capture));
    }
    let tenants = service.tenants.list().await?;
    let mut databases: Vec<String> = tenants.into_iter().map(|tenant| tenant.name).collect();
    databases.extend(slots.iter().map(|slot| slot.database.to_string()));
    databases.sort();
    databases.dedup();
    print(settings_of(&cluster))?;
    print_slots(&slots)?;
    for database in databases {
        // An error of one database must not hide the state of the others.
        let name = DatabaseName::new(&database);
        match log.captured(&name).await {
            Ok(capture) => print(captured(&database, &capture))?,
            Err(error) => {
                let text = cli_error(&name, error).text();
                print(format_args!("\n{database}: {text}\n"))?;
            }
        }
    }
    Ok(())
}

fn settings_of(cluster: &ClusterCapture) -> String {
    let mut text = String::new();
    for (name, value) in &cluster.settings {
        let remark = match (name.as_str(), value.as_str()) {
            ("wal_level", "logical") => String::new(),
            ("wal_level", _) => "  (change events need logical)".to_owned(),
            ("max_slot_wal_keep_size", "-1") => {
                "  (no limit: an unread slot fills the disk)".to_owned()
            }
            ("max_replication_slots", _) => format!("  ({} in use)", cluster.slots_used),
            ("max_wal_senders", _) => format!("  ({} in use)", cluster.senders_used),
            _ => String::new(),
        };
        let _ = writeln!(text, "{name} = {value}{remark}");
    }
    text
}

fn print_slots(slots: &[&SlotStatus]) -> Result {
    if slots.is_empty() {
        return print("\nno slots\n");
    }
    print("\n")?;
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let row = |slot: &&SlotStatus| {
        vec![
            slot.database.to_string(),
            slot.name.clone(),
            slot.active
                .map_or_else(|| "no".to_owned(), |process| format!("process {process}")),
            or_dash(slot.restart.map(|at| at.to_string())),
            or_dash(slot.confirmed.map(|at| at.to_string())),
            or_dash(slot.retained.map(size)),
            or_dash(slot.wal_status.clone()),
            slot.safe_size.map_or_else(|| "no limit".to_owned(), size),
        ]
    };
    let rows: Vec<_> = slots.iter().map(row).collect();
    let heading = [
        "DATABASE",
        "SLOT",
        "ACTIVE",
        "RESTART",
        "CONFIRMED",
        "KEPT",
        "STATUS",
        "SAFE",
    ];
    print_table(&heading, &rows)
}

/// Formats a number of bytes. Uses the largest unit in which the number is at least 10, or else
/// bytes.
fn size(bytes: i64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let unit = units
        .into_iter()
        .find(|(_, shift)| bytes.unsigned_abs() >> shift >= 10);
    match unit {
        Some((unit, shift)) => format!("{} {unit}", bytes >> shift),
        None => format!("{bytes} B"),
    }
}

fn captured(database: &str, capture: &DatabaseCapture) -> String {
    let mut text = format!("\n{database}\n");
    if capture.publications.is_empty() {
        text.push_str("  no publications\n");
    }
    for publication in &capture.publications {
        let _ = writeln!(
            text,
            "  publication {} of {}: {}",
            publication.name,
            publication.owner,
            match publication.tables.len() {
                0 => "no tables".to_owned(),
                1 => "1 table".to_owned(),
                count => format!("{count} tables"),
            }
        );
        for table in &publication.tables {
            let _ = writeln!(text, "    {table}");
        }
    }
    for raised in &capture.raised {
        let _ = writeln!(
            text,
            "  replica identity of {} raised from {} to FULL",
            raised.table,
            raised.before()
        );
    }
    text
}

async fn drop_feed(log: &Replication, database: &DatabaseName, end_streams: bool) -> Result {
    let removed = log.remove(database, end_streams).await;
    match removed.map_err(|error| cli_error(database, error))? {
        Removal::Done { removed, slots } => print(dropped(&removed, &slots)),
        Removal::Streaming(servers) => Err(CliError::Refused(still_streaming(database, &servers))),
        Removal::Recreated => Err(CliError::Refused(format!(
            "a server that runs reads the changes of {database} again, and has created again what was \
             dropped; stop it first"
        ))),
        Removal::Left(left) => Err(CliError::Refused(remaining_objects(database, &left))),
    }
}

/// Converts an error of the change log to an error with a text for this command.
fn cli_error(database: &DatabaseName, error: LogError) -> CliError {
    match error {
        LogError::Gone => CliError::Refused(format!("there is no database {database}")),
        error => error.into(),
    }
}

fn dropped(removed: &DatabaseCapture, slots: &[String]) -> String {
    let mut text = String::new();
    for raised in &removed.raised {
        let _ = writeln!(text, "{}", raised.sql);
    }
    for publication in &removed.publications {
        let _ = writeln!(text, "DROP PUBLICATION {};", publication.name);
    }
    for slot in slots {
        let _ = writeln!(text, "SELECT pg_drop_replication_slot('{slot}');");
    }
    if text.is_empty() {
        text.push_str("-- there was nothing\n");
    }
    text
}

fn still_streaming(database: &DatabaseName, servers: &[StreamingNode]) -> String {
    let mut text = format!("changes of {database} are still read:\n");
    for server in servers {
        let from = server.address.as_deref().unwrap_or("this machine");
        let _ = writeln!(
            text,
            "  process {} of PostgreSQL serves the slot {} to {from}",
            server.process, server.slot
        );
    }
    text.push_str(
        "nothing was dropped; stop those servers, or let --end-streams end streams whose server \
         is gone",
    );
    text
}

fn remaining_objects(database: &DatabaseName, left: &DatabaseCapture) -> String {
    let mut text = format!(
        "neither the administrator nor the owner of {database} may change everything; run this as \
         a superuser there, and this command again:"
    );
    for raised in &left.raised {
        let _ = write!(text, "\n  {}", raised.sql);
    }
    if left.raised.is_empty() {
        for publication in &left.publications {
            let _ = write!(text, "\n  DROP PUBLICATION {};", publication.name);
        }
    }
    text
}
