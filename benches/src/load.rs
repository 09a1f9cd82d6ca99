//! A load generator that uses little CPU. It sends raw HTTP/1.1 requests of random callers.

use std::cell::RefCell;
use std::io::Write as _;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::task::LocalSet;

use crate::Result;
use crate::connection::Connection;
use crate::shape::body::Body;
use crate::shape::value::Random;

/// The caller of a request.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// The access token; `None` for a server without authentication.
    pub(crate) token: Option<String>,
    /// The number of the caller among the users of its tenant.
    pub(crate) number: u32,
}

/// Describes the requests of a load run: server, path, bodies and callers.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The address of the server.
    pub(crate) address: SocketAddr,
    /// The path to which the requests are sent.
    pub(crate) path: String,
    /// The media type in `Accept`.
    pub(crate) accept: String,
    /// The callers. Each request has a random caller.
    pub(crate) callers: Arc<[Caller]>,
    /// The bodies of the requests.
    pub(crate) body: Body,
}

impl Plan {
    /// Writes a request of the caller with this index to `into`. `body` is a buffer that is reused.
    pub(crate) fn write(
        &self,
        caller: usize,
        random: &mut Random,
        [body, into]: [&mut Vec<u8>; 2],
    ) {
        body.clear();
        into.clear();
        let caller = &self.callers[caller];
        self.body.write(random, caller.number, body);
        // Writing to a vector does not fail.
        let _ = write!(
            into,
            "POST {} HTTP/1.1\r\nHost: {}\r\nAccept: {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n",
            self.path,
            self.address,
            self.accept,
            body.len()
        );
        if let Some(token) = &caller.token {
            into.extend_from_slice(b"Authorization: Bearer ");
            into.extend_from_slice(token.as_bytes());
            into.extend_from_slice(b"\r\n");
        }
        into.extend_from_slice(b"\r\n");
        into.extend_from_slice(body);
    }
}

/// The amount of load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// The number of connections, each with one request at a time.
    pub(crate) connections: usize,
    /// The number of threads that share the connections.
    pub(crate) threads: usize,
    /// The maximum time for which requests are sent.
    pub(crate) time: Duration,
    /// The time between the starts of two requests on a connection. `None` sends each request as
    /// soon as the previous response has arrived.
    pub(crate) interval: Option<Duration>,
    /// Whether each caller sends exactly one request. Otherwise random callers send requests until
    /// the time is over.
    pub(crate) once: bool,
}

/// The result of a load run.
#[derive(Debug, Default)]
pub(crate) struct LoadResult {
    /// The time from each request to its response, unsorted.
    pub(crate) latencies: Vec<Duration>,
    /// The time from the first request to the final response.
    pub(crate) elapsed: Duration,
    /// The number of requests that had an error response.
    pub(crate) failures: usize,
}

/// Sends requests over all connections until the time is over or, with [`Load::once`], each caller
/// has sent one.
pub(crate) async fn run(plan: &Arc<Plan>, load: Load) -> Result<LoadResult> {
    let started = Instant::now();
    let threads = load.threads.clamp(1, load.connections.max(1));
    let turn = Arc::new(AtomicUsize::new(0));
    let running: Vec<_> = (0..threads)
        .map(|thread| {
            let plan = plan.clone();
            let connections = (load.connections + thread) / threads;
            let load = Load {
                connections,
                ..load
            };
            let turn = turn.clone();
            tokio::task::spawn_blocking(move || one_thread(&plan, load, &turn))
        })
        .collect();
    let mut whole = LoadResult::default();
    for thread in running {
        let part = thread.await??;
        whole.latencies.extend(part.latencies);
        whole.failures += part.failures;
    }
    whole.elapsed = started.elapsed();
    Ok(whole)
}

/// Runs the connections of one thread, on a runtime of its own.
fn one_thread(plan: &Plan, load: Load, turn: &Arc<AtomicUsize>) -> Result<LoadResult, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
        .map_err(|error| error.to_string())?;
    let work = Rc::new(ThreadState {
        plan: plan.clone(),
        turn: load.once.then(|| turn.clone()),
        end: Instant::now() + load.time,
        interval: load.interval,
        outcome: RefCell::default(),
    });
    let local = LocalSet::new();
    let tasks: Vec<_> = (0..load.connections)
        .map(|_| local.spawn_local(one_connection(work.clone())))
        .collect();
    let all = async {
        for task in tasks {
            task.await.map_err(|error| error.to_string())??;
        }
        Ok::<_, String>(())
    };
    runtime.block_on(local.run_until(all))?;
    drop(local);
    Ok(work.outcome.take())
}

/// State shared by the connections of one thread.
struct ThreadState {
    plan: Plan,
    /// The index of the next caller if each caller sends exactly one request; otherwise `None`.
    turn: Option<Arc<AtomicUsize>>,
    end: Instant,
    interval: Option<Duration>,
    outcome: RefCell<LoadResult>,
}

impl ThreadState {
    /// The index of the caller of the next request; `None` if every caller has sent its request.
    fn caller(&self, random: &mut Random) -> Option<usize> {
        let callers = self.plan.callers.len();
        match &self.turn {
            None => Some(random.below(callers as u32) as usize),
            Some(turn) => Some(turn.fetch_add(1, Ordering::Relaxed)).filter(|turn| *turn < callers),
        }
    }
}

async fn one_connection(work: Rc<ThreadState>) -> Result<(), String> {
    static SEED: AtomicU64 = AtomicU64::new(1);
    let mut random = Random::new(SEED.fetch_add(1, Ordering::Relaxed));
    let (mut body, mut request) = (Vec::new(), Vec::new());
    let connection = Connection::open(work.plan.address).await;
    let mut connection = connection.map_err(|error| error.to_string())?;
    let mut sent = Instant::now();
    // The connections send their first requests at different times.
    let mut due = sent + work.interval.unwrap_or_default() * random.below(1000) / 1000;
    while sent < work.end
        && let Some(caller) = work.caller(&mut random)
    {
        if let Some(interval) = work.interval {
            tokio::time::sleep_until(due.into()).await;
            due += interval;
            sent = Instant::now();
        }
        let buffers = [&mut body, &mut request];
        work.plan.write(caller, &mut random, buffers);
        let exchange = connection.exchange(&request).await;
        let exchange = exchange.map_err(|error| error.to_string())?;
        let done = Instant::now();
        let mut outcome = work.outcome.borrow_mut();
        outcome.latencies.push(done - sent);
        outcome.failures += usize::from(exchange.failed);
        sent = done;
    }
    Ok(())
}
