//! The election of the node that reads a database. PostgreSQL gives the slot to one process, and
//! the node of that process is elected.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tracing::{debug, info};

use crate::database::{Database, SILENCE};
use crate::reader;

/// The silence after which a reader that still holds the slot is replaced.
const FROZEN: Duration = Duration::from_secs(3);
/// The pause after the first attempt to become the reader, and the longest pause.
const PAUSE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(5));
/// How long a node must have read before the pause is short again.
const STABLE: Duration = Duration::from_secs(30);
/// The interval at which the state of a broken connection to NATS is checked.
const RECONNECTION: Duration = Duration::from_millis(100);
/// The additional time that a node waits for each database that it already reads, and the maximum
/// number of databases that count. The waiting spreads the readers over the nodes.
const LOAD: (Duration, u32) = (Duration::from_millis(20), 20);

/// Becomes the reader of a database whenever there is no reader.
pub(crate) async fn run(database: Arc<Database>) {
    let mut pause = PAUSE.0;
    loop {
        wait_for_silence(&database).await;
        let shared = &database.shared;
        match shared.log.open_reader(&database.name).await {
            Ok(Some(stream)) => {
                let began = Instant::now();
                let _role = Role::new(&database);
                info!(database = %database.name, "this node reads the changes for all nodes");
                let error = reader::run(&database, stream).await;
                info!(database = %database.name, %error, "this node no longer reads the changes for all nodes");
                if began.elapsed() >= STABLE {
                    pause = PAUSE.0;
                }
            }
            Ok(None) => {
                if database.silence() > FROZEN && shared.connected().is_some() {
                    close_reader(&database).await;
                    sleep(pause).await;
                    // The pause grows, because this node may not receive the messages of a healthy
                    // reader, which must not be terminated again and again.
                    pause = (pause * 2).min(PAUSE.1);
                } else {
                    sleep(PAUSE.0).await;
                }
            }
            Err(error) => {
                debug!(database = %database.name, %error, "could not become the reader");
                sleep(pause).await;
                pause = (pause * 2).min(PAUSE.1);
            }
        }
    }
}

/// Terminates the reader. Does nothing if the NATS server does not answer, because then every
/// reader seems silent.
async fn close_reader(database: &Database) {
    if database.shared.is_mute.load(Ordering::Relaxed) {
        return;
    }
    let closed = database
        .shared
        .log
        .close_reader(&database.name, FROZEN)
        .await;
    if let Err(error) = closed {
        debug!(database = %database.name, %error, "could not close the reader");
    }
}

/// Waits until the reader has been silent for too long while this node is connected to NATS.
async fn wait_for_silence(database: &Database) {
    loop {
        let reading = database.shared.reading.load(Ordering::Relaxed);
        let load = u32::try_from(reading).unwrap_or(LOAD.1).min(LOAD.1);
        let limit = SILENCE + LOAD.0 * load;
        if database.shared.connected().is_none() {
            database.shared.first_connection().await;
            sleep(RECONNECTION).await;
            continue;
        }
        match limit.checked_sub(database.silence()) {
            Some(rest) if !rest.is_zero() => sleep(rest).await,
            _ => return,
        }
    }
}

/// The role of the reader. Dropping it ends the role.
struct Role<'a>(&'a Database);

impl<'a> Role<'a> {
    fn new(database: &'a Database) -> Self {
        database.reads.store(true, Ordering::Relaxed);
        database.shared.reading.fetch_add(1, Ordering::Relaxed);
        Self(database)
    }
}

impl Drop for Role<'_> {
    fn drop(&mut self) {
        self.0.reads.store(false, Ordering::Relaxed);
        self.0.shared.reading.fetch_sub(1, Ordering::Relaxed);
        self.0.shared.note_unstored(&self.0.name, false);
    }
}
