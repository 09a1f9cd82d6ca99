//! Reads the position up to which the primary has written its WAL.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tidegate_service::{PrimaryWal, WrittenWal};
use tidegate_sql::WalPosition;
use tidegate_wire::{Config, ConnectError};
use tokio::sync::Mutex;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

/// The maximum time by which a replica may lag behind the primary and still be used. The sum of
/// this time, twice [`INTERVAL`], and the time that the primary takes to respond is less than a
/// second. So a revoked right takes effect within a second on all replicas that are used.
const LAG: Duration = Duration::from_millis(750);
/// The interval at which the position of the primary is recorded, so that the position of [`LAG`]
/// ago is known.
const INTERVAL: Duration = Duration::from_millis(50);
/// The timeout of each of two steps: connecting to the primary, and reading its position.
const LIMIT: Duration = Duration::from_millis(500);

pub(super) struct Primary {
    config: Arc<Config>,
    connection: Mutex<Option<Arc<PrimaryWal>>>,
    /// The position that the primary had reached [`LAG`] ago. Replicas must have replayed at least
    /// this position. Before the first measurement it is the largest possible position, so no
    /// replica is used.
    required: AtomicU64,
    /// The position up to which the WAL was on disk, according to the primary's most recent
    /// response.
    flushed: AtomicU64,
}

impl Primary {
    pub(super) fn new(config: Arc<Config>) -> Self {
        Self {
            config,
            connection: Mutex::default(),
            required: AtomicU64::new(u64::MAX),
            flushed: AtomicU64::new(0),
        }
    }

    /// The position up to which a replica must have replayed the WAL.
    pub(super) fn required(&self) -> WalPosition {
        WalPosition(self.required.load(Ordering::Relaxed))
    }

    /// The position up to which the WAL was on disk, according to the primary's most recent
    /// response.
    pub(super) fn flushed(&self) -> WalPosition {
        WalPosition(self.flushed.load(Ordering::Relaxed))
    }

    /// The end of the WAL, which is after every completed commit. Returns the largest possible
    /// position if the primary does not respond.
    pub(super) async fn inserted(&self) -> WalPosition {
        // The first attempt may fail because the connection has ended; the second attempt opens a
        // new connection.
        for _ in 0..2 {
            if let Ok(written) = self.query_positions().await {
                return written.inserted;
            }
        }
        WalPosition(u64::MAX)
    }

    pub(super) async fn query_positions(&self) -> Result<WrittenWal, ConnectError> {
        let timed_out = Err(ConnectError::TimedOut(LIMIT));
        let connection = match timeout(LIMIT, self.connection()).await {
            Ok(connection) => connection?,
            Err(_) => return timed_out,
        };
        let written = timeout(LIMIT, connection.written()).await;
        let written = written.unwrap_or(timed_out);
        if written.is_err() {
            self.discard(&connection).await;
        }
        written
    }

    /// The number that all servers of the cluster share (`system_identifier`).
    pub(super) async fn cluster(&self) -> Result<i64, ConnectError> {
        Ok(self.connection().await?.cluster())
    }

    async fn connection(&self) -> Result<Arc<PrimaryWal>, ConnectError> {
        let mut connection = self.connection.lock().await;
        if let Some(open) = &*connection {
            return Ok(open.clone());
        }
        let opened = Arc::new(PrimaryWal::open(&self.config).await?);
        *connection = Some(opened.clone());
        Ok(opened)
    }

    async fn discard(&self, broken: &Arc<PrimaryWal>) {
        let mut connection = self.connection.lock().await;
        if connection
            .as_ref()
            .is_some_and(|it| Arc::ptr_eq(it, broken))
        {
            *connection = None;
        }
    }

    /// Keeps [`Self::required`] up to date until the future is dropped. While the primary does not
    /// respond, the required position rises to the position that the primary has most recently
    /// reported.
    pub(super) async fn sample(self: Arc<Self>) {
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut samples = VecDeque::new();
        loop {
            ticks.tick().await;
            let began = Instant::now();
            if let Ok(written) = self.query_positions().await {
                self.flushed.store(written.flushed.0, Ordering::Relaxed);
                samples.push_back((began, written.flushed));
            }
            while let Some((began, flushed)) = samples.front()
                && began.elapsed() >= LAG
            {
                self.required.store(flushed.0, Ordering::Relaxed);
                samples.pop_front();
            }
        }
    }
}
