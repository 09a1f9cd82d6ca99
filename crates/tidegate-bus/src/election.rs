//! The election of the node that reads a database. PostgreSQL lets only one connection at a time
//! read the slot. The node of that connection is elected.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tidegate_changelog::LogStream;
use tokio::time::{Instant, sleep};
use tracing::{debug, info};

use crate::backoff::ElectionBackoff;
use crate::database::{Database, ELECTION_SILENCE};
use crate::reader;

/// The silence after which the connection of a reader that still uses the slot is terminated.
const FROZEN_SILENCE: Duration = Duration::from_secs(3);
/// The delay before the next attempt if another process uses the slot.
const HELD_DELAY: Duration = Duration::from_millis(500);
/// The interval at which the state of a broken connection to NATS is checked.
const RECONNECTION: Duration = Duration::from_millis(100);
/// A node that already reads other databases waits this much longer for each of them, so that the
/// readers spread over the nodes. The second value is the maximum number of databases that count.
const LOAD: (Duration, u32) = (Duration::from_millis(20), 20);

/// Becomes the reader of a database whenever there is no reader.
pub(crate) async fn run(database: Arc<Database>) {
    let mut backoff = ElectionBackoff::new();
    loop {
        if wait_for_silence(&database).await {
            backoff.reset();
        }
        let shared = &database.shared;
        match shared.log.open_reader(&database.name).await {
            Ok(Some(stream)) => {
                if read(&database, stream).await {
                    backoff.reset();
                } else {
                    backoff.wait(database.next_message()).await;
                }
            }
            Ok(None) => {
                if database.silence() > FROZEN_SILENCE && shared.connected().is_some() {
                    close_reader(&database).await;
                    // The next attempt is delayed, because the reader may be healthy although this
                    // node does not receive its messages.
                    backoff.wait(database.next_message()).await;
                } else {
                    sleep(HELD_DELAY).await;
                }
            }
            Err(error) => {
                debug!(database = %database.name, %error, "could not become the reader");
                backoff.wait(database.next_message()).await;
            }
        }
    }
}

/// Reads for all nodes until the stream breaks. Returns whether PostgreSQL has sent anything.
async fn read(database: &Arc<Database>, stream: Box<dyn LogStream>) -> bool {
    let _role = Role::new(database);
    info!(database = %database.name, "this node reads the changes for all nodes");
    let ended = reader::run(database, stream).await;
    info!(database = %database.name, error = %ended.error, "this node no longer reads the changes for all nodes");
    ended.has_read
}

/// Terminates the reader's connection to PostgreSQL. Does nothing if the NATS server does not
/// answer, because then every reader seems silent.
async fn close_reader(database: &Database) {
    if database.shared.is_mute.load(Ordering::Relaxed) {
        return;
    }
    let closed = database
        .shared
        .log
        .close_reader(&database.name, FROZEN_SILENCE)
        .await;
    if let Err(error) = closed {
        debug!(database = %database.name, %error, "could not close the reader");
    }
}

/// Waits until this node is connected to NATS and the reader has been silent for
/// [`ELECTION_SILENCE`] plus the delay of [`LOAD`]. Returns whether a reader sent a message during
/// the wait.
async fn wait_for_silence(database: &Database) -> bool {
    let began = Instant::now();
    loop {
        let databases_read = database.shared.databases_read.load(Ordering::Relaxed);
        let load = u32::try_from(databases_read).unwrap_or(LOAD.1).min(LOAD.1);
        let limit = ELECTION_SILENCE + LOAD.0 * load;
        if database.shared.connected().is_none() {
            database.shared.first_connection().await;
            sleep(RECONNECTION).await;
            continue;
        }
        match limit.checked_sub(database.silence()) {
            Some(rest) if !rest.is_zero() => sleep(rest).await,
            _ => return database.silence() < began.elapsed(),
        }
    }
}

/// Marks this node as the reader of a database until this value is dropped.
struct Role<'a>(&'a Database);

impl<'a> Role<'a> {
    fn new(database: &'a Database) -> Self {
        database.reads.store(true, Ordering::Relaxed);
        database
            .shared
            .databases_read
            .fetch_add(1, Ordering::Relaxed);
        Self(database)
    }
}

impl Drop for Role<'_> {
    fn drop(&mut self) {
        self.0.reads.store(false, Ordering::Relaxed);
        self.0.shared.databases_read.fetch_sub(1, Ordering::Relaxed);
        self.0.shared.note_unstored(&self.0.name, false);
    }
}
