//! The hashing threads and their queue.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::{Error, Result};

/// The capacity of the queue. At 50 ms a hash, the last job waits less than two seconds.
const QUEUE: usize = 32;
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// After this idle time, the memory that the last hash used is returned to the operating system.
const REST: Duration = Duration::from_secs(2);

type Job = Box<dyn FnOnce() + Send>;

/// A bounded thread pool. When it is dropped, its threads finish the queue and end.
pub(crate) struct Pool {
    queue: SyncSender<Job>,
    completed: Arc<AtomicU64>,
}

impl Pool {
    pub(crate) fn start(threads: usize) -> Result<Self> {
        let (queue, jobs) = sync_channel::<Job>(QUEUE);
        let jobs = Arc::new(Mutex::new(jobs));
        for _ in 0..threads.max(1) {
            let jobs = Arc::clone(&jobs);
            thread::Builder::new()
                .name("password-hasher".to_owned())
                .spawn(move || work(&jobs))
                .map_err(|_| Error::HasherFailed)?;
        }
        Ok(Self {
            queue,
            completed: Arc::default(),
        })
    }

    pub(crate) fn completed(&self) -> u64 {
        self.completed.load(Ordering::Relaxed)
    }

    /// Runs `job` on one of the threads; [`Error::Busy`] when the queue is full. A queued job is
    /// skipped if the future of its `run` was dropped before.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let completed = Arc::clone(&self.completed);
        let job: Job = Box::new(move || {
            if !reply.is_closed() {
                let result = job();
                completed.fetch_add(1, Ordering::Relaxed);
                // Sending fails if the future of `run` was dropped, and then the result is not
                // needed.
                let _ = reply.send(result);
            }
        });
        self.queue.try_send(job).map_err(|error| match error {
            TrySendError::Full(_) => Error::Busy {
                retry_after: RETRY_AFTER,
            },
            TrySendError::Disconnected(_) => Error::HasherFailed,
        })?;
        answer.await.map_err(|_| Error::HasherFailed)
    }
}

/// The niceness of hashing threads. With it, a thread gets about a third of the CPU time of a
/// thread that serves requests, when both are busy.
#[cfg(target_os = "linux")]
const NICE: i32 = 5;

fn work(jobs: &Mutex<Receiver<Job>>) {
    // On Linux niceness is per thread (nice(2)). If the change is refused, hashing only takes more
    // CPU time.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::nice(NICE);
    while let Some(job) = next(jobs) {
        job();
    }
}

/// Waits for the next job; `None` when the pool was dropped.
fn next(jobs: &Mutex<Receiver<Job>>) -> Option<Job> {
    let jobs = jobs.lock().unwrap_or_else(PoisonError::into_inner);
    match jobs.recv_timeout(REST) {
        Ok(job) => Some(job),
        Err(RecvTimeoutError::Disconnected) => None,
        Err(RecvTimeoutError::Timeout) => {
            return_memory();
            jobs.recv().ok()
        }
    }
}

/// Makes the allocator return the memory that a hash used (19 MiB at the default cost). Allocators
/// scan for free memory only when something large is freed, so this allocates and frees 1 MiB.
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
        let (release, held) = std::sync::mpsc::channel::<()>();
        let (started, running) = oneshot::channel();
        let first = Arc::clone(&pool);
        let first = tokio::spawn(async move {
            first
                .run(move || started.send(()).is_ok() && held.recv().is_ok())
                .await
        });
        running.await.unwrap();
        let mut waiting: Vec<_> = (0..QUEUE).map(|_| Box::pin(pool.run(|| ()))).collect();
        for job in &mut waiting {
            assert!(futures_poll(job).is_none(), "a queued job waits");
        }
        assert!(matches!(pool.run(|| ()).await, Err(Error::Busy { .. })));
        release.send(()).unwrap();
        assert!(first.await.unwrap().unwrap());
        for job in waiting {
            job.await.unwrap();
        }
    }

    fn futures_poll<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match std::pin::Pin::new(future).poll(&mut context) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        }
    }
}
