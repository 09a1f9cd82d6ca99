//! A running stream: a task reads the outbox and sends pages of messages to the stream.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tidegate_changelog::{Lineage, LogError, LogMessage, LogPosition, LogResult, LogStream};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::reader::OutboxTailer;

/// The maximum number of pages that the task has read and the stream's caller has not received yet.
const PAGES: usize = 2;

/// A stream of pgoutput messages. The task reads independently of the caller, so dropping the
/// future of `next` interrupts no statement.
pub(super) struct Stream {
    lineage: Lineage,
    start: LogPosition,
    confirmed: Arc<AtomicU64>,
    pages: mpsc::Receiver<LogResult<Vec<LogMessage>>>,
    requested: Arc<Notify>,
    task: JoinHandle<()>,
}

/// The shortest and the longest poll interval. The interval is the shortest after a change was
/// read, and grows while nothing is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct PollIntervals(pub(super) Duration, pub(super) Duration);

impl Stream {
    /// Starts to read. `confirmed` holds the position at which the stream starts, and later the
    /// position that was confirmed.
    pub(super) fn new(
        tailer: OutboxTailer,
        lineage: Lineage,
        confirmed: Arc<AtomicU64>,
        intervals: PollIntervals,
    ) -> Self {
        let start = LogPosition(confirmed.load(Ordering::Acquire));
        let (sender, pages) = mpsc::channel(PAGES);
        let requested = Arc::new(Notify::new());
        let task = tokio::spawn(run(tailer, sender, requested.clone(), intervals));
        Self {
            lineage,
            start,
            confirmed,
            pages,
            requested,
            task,
        }
    }
}

async fn run(
    mut tailer: OutboxTailer,
    pages: mpsc::Sender<LogResult<Vec<LogMessage>>>,
    requested: Arc<Notify>,
    intervals: PollIntervals,
) {
    let (mut pause, mut is_requested) = (intervals.0, false);
    loop {
        let begun = Instant::now();
        match tailer.read(is_requested).await {
            Ok(batch) if batch.is_empty() => {
                // The pause is at least nine times the duration of a poll, so polling takes at most
                // a tenth of the time.
                let rest = pause.max(begun.elapsed() * 9);
                pause = (pause * 2).min(intervals.1);
                is_requested = timeout(rest, requested.notified()).await.is_ok();
            }
            Ok(batch) => {
                let found = batch.len() > 1;
                if pages.send(Ok(batch)).await.is_err() {
                    return;
                }
                is_requested = false;
                if found {
                    pause = intervals.0;
                }
            }
            Err(error) => {
                let _ = pages.send(Err(error)).await;
                return;
            }
        }
    }
}

#[async_trait]
impl LogStream for Stream {
    fn lineage(&self) -> &Lineage {
        &self.lineage
    }

    fn start(&self) -> LogPosition {
        self.start
    }

    async fn next(&mut self, batch: &mut Vec<LogMessage>) -> LogResult<()> {
        let page = self.pages.recv().await;
        let ended = || LogError::Unavailable("reading the outbox ended".into());
        batch.append(&mut page.ok_or_else(ended)??);
        Ok(())
    }

    fn confirm(&mut self, position: LogPosition) {
        self.confirmed.fetch_max(position.0, Ordering::AcqRel);
    }

    fn request_position(&mut self) {
        self.requested.notify_one();
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.task.abort();
    }
}
