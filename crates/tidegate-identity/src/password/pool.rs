//! The hashing threads and their queue.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::sync::{Semaphore, oneshot};

use crate::{Error, Result};

/// The capacity of the queue. With 50 ms for a hash, the job at the end of the queue waits less
/// than two seconds.
const QUEUE_CAPACITY: usize = 32;
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// After this idle time, the memory that was used for hashing is returned to the operating system.
const IDLE: Duration = Duration::from_secs(2);

type Job = Box<dyn FnOnce() + Send>;

/// A bounded thread pool. When it is dropped, its threads finish the queue and end.
pub(crate) struct Pool {
    queue: SyncSender<Job>,
    /// A permit for each job of [`Pool::submit_in_turn`] that is queued or running.
    turns: Arc<Semaphore>,
    completed: Arc<AtomicU64>,
}

impl Pool {
    pub(crate) fn start(threads: usize) -> Result<Self> {
        let (queue, jobs) = sync_channel::<Job>(QUEUE_CAPACITY);
        let jobs = Arc::new(Mutex::new(jobs));
        let threads = threads.max(1);
        for _ in 0..threads {
            let jobs = Arc::clone(&jobs);
            thread::Builder::new()
                .name("password-hasher".to_owned())
                .spawn(move || work(&jobs))
                .map_err(|_| Error::HasherFailed)?;
        }
        Ok(Self {
            queue,
            turns: Arc::new(Semaphore::new(threads.min(QUEUE_CAPACITY / 2))),
            completed: Arc::default(),
        })
    }

    pub(crate) fn completed(&self) -> u64 {
        self.completed.load(Ordering::Relaxed)
    }

    /// Runs `job` on one of the threads; [`Error::Busy`] when the queue is full. A queued job is
    /// skipped if the future that this function returned was dropped before the job began.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        let response = self.submit(job)?;
        response.await.map_err(|_| Error::HasherFailed)
    }

    /// Queues one job of a long series, such as the hashing of one of many passwords. At most one
    /// job of this function for each thread is queued or running at a time; further calls wait.
    /// This keeps the queue short for the jobs of [`Self::run`]. Returns a receiver for the result.
    /// If the receiver is dropped before the job starts, the job is skipped.
    ///
    /// Errors: [`Error::Busy`] when the queue is full.
    pub(crate) async fn submit_in_turn<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<oneshot::Receiver<T>> {
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        let turn = turn.map_err(|_| Error::HasherFailed)?;
        self.submit(move || {
            let _turn = turn;
            job()
        })
    }

    fn submit<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<oneshot::Receiver<T>> {
        let (reply, response) = oneshot::channel();
        let completed = Arc::clone(&self.completed);
        let job: Job = Box::new(move || {
            if !reply.is_closed() {
                let result = job();
                completed.fetch_add(1, Ordering::Relaxed);
                // Sending fails if the receiver was dropped, and then the result is not needed.
                let _ = reply.send(result);
            }
        });
        self.queue.try_send(job).map_err(|error| match error {
            TrySendError::Full(_) => Error::Busy {
                retry_after: RETRY_AFTER,
            },
            TrySendError::Disconnected(_) => Error::HasherFailed,
        })?;
        Ok(response)
    }
}

/// The niceness of hashing threads. With it, a thread gets about a third of the CPU time of a
/// thread that serves requests, when both are busy.
#[cfg(target_os = "linux")]
const NICE: i32 = 5;

fn work(jobs: &Mutex<Receiver<Job>>) {
    // On Linux, this sets the niceness of this thread only (nice(2)). If it fails, hashing still
    // works, but takes more CPU time from requests.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::nice(NICE);
    while let Some(job) = next_job(jobs) {
        job();
    }
}

/// Waits for the next job; `None` when the pool was dropped.
fn next_job(jobs: &Mutex<Receiver<Job>>) -> Option<Job> {
    let jobs = jobs.lock().unwrap_or_else(PoisonError::into_inner);
    match jobs.recv_timeout(IDLE) {
        Ok(job) => Some(job),
        Err(RecvTimeoutError::Disconnected) => None,
        Err(RecvTimeoutError::Timeout) => {
            return_memory();
            jobs.recv().ok()
        }
    }
}

/// Makes the allocator return the memory that a hash used (19 MiB at the default cost). Allocators
/// scan for free memory only when something large is freed, so this function allocates and frees 1
/// MiB.
fn return_memory() {
    drop(std::hint::black_box(Vec::<u8>::with_capacity(1 << 20)));
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("completed", &self.completed)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_full_queue_refuses_jobs_at_once() {
        let pool = Arc::new(Pool::start(1).unwrap());
        let release = occupy(&pool).await;
        let mut waiting: Vec<_> = (0..QUEUE_CAPACITY)
            .map(|_| Box::pin(pool.run(|| ())))
            .collect();
        for job in &mut waiting {
            assert!(futures_poll(job).is_none(), "a queued job waits");
        }
        assert!(matches!(pool.run(|| ()).await, Err(Error::Busy { .. })));
        release.send(()).unwrap();
        for job in waiting {
            job.await.unwrap();
        }
    }

    /// Starts a job that runs until the returned sender is used or dropped. Returns after the job
    /// has started.
    async fn occupy(pool: &Arc<Pool>) -> std::sync::mpsc::Sender<()> {
        let (release, held) = std::sync::mpsc::channel::<()>();
        let (started, running) = oneshot::channel();
        let job = pool.submit(move || started.send(()).is_ok() && held.recv().is_ok());
        // The receiver is kept, because the job would be skipped without it.
        tokio::spawn(job.unwrap());
        running.await.unwrap();
        release
    }

    #[tokio::test]
    async fn jobs_in_turn_run_on_all_threads() {
        let pool = Pool::start(2).unwrap();
        let (one, other) = (std::sync::mpsc::channel(), std::sync::mpsc::channel());
        // Each job waits for the other, so both end only if they run at the same time.
        let meet = |mine: std::sync::mpsc::Sender<()>, theirs: std::sync::mpsc::Receiver<()>| {
            move || mine.send(()).is_ok() && theirs.recv_timeout(Duration::from_secs(10)).is_ok()
        };
        let first = pool.submit_in_turn(meet(one.0, other.1)).await.unwrap();
        let second = pool.submit_in_turn(meet(other.0, one.1)).await.unwrap();
        assert!(first.await.unwrap() && second.await.unwrap());
    }

    #[tokio::test]
    async fn a_single_job_overtakes_jobs_in_turn() {
        let pool = Arc::new(Pool::start(1).unwrap());
        let release = occupy(&pool).await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let note = |name| {
            let order = Arc::clone(&order);
            move || order.lock().unwrap().push(name)
        };
        let many: Vec<_> = (0..2 * QUEUE_CAPACITY)
            .map(|_| note("one of many"))
            .collect();
        let mut submitting = Box::pin(async {
            let mut responses = Vec::new();
            for job in many {
                responses.push(pool.submit_in_turn(job).await.unwrap());
            }
            responses
        });
        assert!(futures_poll(&mut submitting).is_none());
        let mut single = Box::pin(pool.run(note("single")));
        assert!(futures_poll(&mut single).is_none());
        release.send(()).unwrap();
        let (responses, single) = tokio::join!(submitting, single);
        single.unwrap();
        for response in responses {
            response.await.unwrap();
        }
        let order = order.lock().unwrap();
        assert_eq!(order.len(), 2 * QUEUE_CAPACITY + 1);
        assert_eq!(order[1], "single", "{order:?}");
    }

    #[tokio::test]
    async fn jobs_in_turn_are_skipped_if_their_receiver_is_dropped() {
        let pool = Arc::new(Pool::start(1).unwrap());
        let release = occupy(&pool).await;
        let skipped = pool.submit_in_turn(|| ()).await.unwrap();
        drop(skipped);
        release.send(()).unwrap();
        // This job gets the only permit in `turns` after the skipped job has returned it.
        pool.submit_in_turn(|| ()).await.unwrap().await.unwrap();
        assert_eq!(pool.completed(), 2);
    }

    fn futures_poll<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match std::pin::Pin::new(future).poll(&mut context) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        }
    }
}
