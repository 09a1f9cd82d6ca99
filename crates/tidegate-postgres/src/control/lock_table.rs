//! What is done when PostgreSQL's lock table is full.
//!
//! The table is shared by all databases of the cluster (PostgreSQL, `max_locks_per_transaction`).
//! One transaction that makes thousands of tables fills it, and then no transaction of anybody can
//! write, and nobody can log in. PostgreSQL has no bound for one session.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use tokio_postgres::{Client, SimpleQueryMessage};
use tracing::{debug, warn};

use super::connect::{CONTROL, connect};
use crate::backoff::{Backoff, Jitter};
use crate::config::Config;
use crate::connection::ConnectError;
use crate::role_mark::ROLE_MARK;

/// How often a statement is tried that found the table full.
pub(super) const TRIES: u32 = 5;
/// How long a statement waits for room.
const WAIT: Duration = Duration::from_secs(2);
/// How long one look may take.
const LOOK: Duration = Duration::from_secs(5);
/// How long a session that was told to end may take until its locks are gone.
const ENDING: Duration = Duration::from_secs(2);
/// The pause between attempts to take the reserve again, and between looks.
const PAUSE: Duration = Duration::from_millis(50);
/// The longest pause between attempts to connect again.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Entries of the table that are given up when it is full, so that there is room for the look. Locks
/// of the session: an open transaction would alarm whoever watches for those.
const RESERVE: &str = "SELECT pg_catalog.count(pg_catalog.pg_try_advisory_lock( \
    pg_catalog.pg_backend_pid(), entry)) FROM pg_catalog.generate_series(1, 64) entry";

/// Shares the table's state with the statements that found it full.
pub(super) struct LockTable {
    wanted: Arc<Notify>,
    looks: watch::Sender<u64>,
}

impl LockTable {
    pub(super) fn new() -> Self {
        Self {
            wanted: Arc::default(),
            looks: watch::Sender::new(0),
        }
    }

    /// Asks for room without waiting for it.
    pub(super) fn request(&self) {
        self.wanted.notify_one();
    }

    /// Asks for room and waits until somebody has looked.
    pub(super) async fn relieve(&self) {
        let mut looks = self.looks.subscribe();
        self.request();
        // Without an answer the statement is tried all the same.
        let _ = timeout(WAIT, looks.changed()).await;
    }

    /// Keeps a connection ready and makes room whenever it is asked to, for as long as it is polled.
    pub(super) fn guard(
        &self,
        config: Arc<Config>,
        jitter: Jitter,
    ) -> impl Future<Output = ()> + Send + use<> {
        let (wanted, looks) = (self.wanted.clone(), self.looks.clone());
        async move {
            let mut backoff = Backoff::new(jitter);
            loop {
                if let Err(error) = stand_by(&config, &wanted, &looks).await {
                    debug!(%error, "no connection that could make room in the lock table");
                }
                tokio::time::sleep(backoff.fail().min(LONGEST_PAUSE)).await;
            }
        }
    }
}

async fn stand_by(
    config: &Config,
    wanted: &Notify,
    looks: &watch::Sender<u64>,
) -> Result<(), ConnectError> {
    let (client, connection) = connect(config, &config.control_database, CONTROL).await?;
    let mut ended = tokio::spawn(connection);
    reserve(&client).await;
    loop {
        tokio::select! {
            _ = &mut ended => return Ok(()),
            () = wanted.notified() => {
                let looked = timeout(LOOK, make_room(&client)).await;
                if !matches!(looked, Ok(Ok(()))) {
                    warn!(?looked, "could not make room in PostgreSQL's lock table");
                }
                looks.send_modify(|looks| *looks += 1);
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Ends the session that holds the most locks, if it is a user's and holds more than its share.
async fn make_room(client: &Client) -> Result<(), tokio_postgres::Error> {
    let end = format!(
        "SELECT pg_catalog.pg_advisory_unlock_all(); \
         SELECT most.*, pg_catalog.pg_terminate_backend(most.pid) FROM ( \
             SELECT a.usename, a.datname, held.locks, a.pid FROM ( \
                 SELECT l.pid, pg_catalog.count(*) AS locks FROM pg_catalog.pg_locks l \
                 WHERE NOT l.fastpath GROUP BY l.pid) held \
             JOIN pg_catalog.pg_stat_activity a ON a.pid = held.pid \
             JOIN pg_catalog.pg_roles r ON r.oid = a.usesysid \
             WHERE a.backend_type = 'client backend' AND NOT r.rolsuper AND NOT r.rolreplication \
               AND pg_catalog.starts_with( \
                   pg_catalog.shobj_description(r.oid, 'pg_authid'), '{ROLE_MARK}') \
               AND held.locks > \
                   pg_catalog.current_setting('max_locks_per_transaction')::pg_catalog.int4 \
             ORDER BY held.locks DESC LIMIT 1) most"
    );
    let messages = client.simple_query(&end).await?;
    for message in &messages {
        if let SimpleQueryMessage::Row(row) = message
            && row.len() > 1
        {
            warn!(
                role = row.get(0),
                database = row.get(1),
                locks = row.get(2),
                "PostgreSQL's lock table is full; ended the session that holds the most locks"
            );
        }
    }
    // Its locks are there until it has ended.
    let reserved = async {
        while !reserve(client).await {
            tokio::time::sleep(PAUSE).await;
        }
    };
    if timeout(ENDING, reserved).await.is_err() {
        debug!("the lock table is still full");
    }
    Ok(())
}

/// Takes the reserve; whether there was room for it.
async fn reserve(client: &Client) -> bool {
    client.simple_query(RESERVE).await.is_ok()
}
