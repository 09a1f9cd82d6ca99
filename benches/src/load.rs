//! A load generator that costs little beside what it measures: raw HTTP/1.1 requests of callers
//! at random.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::task::LocalSet;

use crate::Result;
use crate::connection::Connection;
use crate::shape::body::Body;
use crate::shape::value::Random;

/// Who sends a request.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// The access token; none for a server that asks for none.
    pub(crate) token: Option<String>,
    /// Its number among the users of its tenant.
    pub(crate) number: u32,
}

/// What is sent where by whom.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The server.
    pub(crate) address: SocketAddr,
    /// The path of the requests.
    pub(crate) path: String,
    /// The media type that is asked for.
    pub(crate) accept: String,
    /// One of these sends each request, chosen at random.
    pub(crate) callers: Arc<[Caller]>,
    /// The bodies.
    pub(crate) body: Body,
}

impl Plan {
    /// Writes a whole request of a random caller; `body` is only memory to work in.
    pub(crate) fn write(&self, random: &mut Random, body: &mut Vec<u8>, into: &mut Vec<u8>) {
        use std::io::Write as _;
        body.clear();
        into.clear();
        let caller = &self.callers[random.below(self.callers.len() as u32) as usize];
        self.body.write(random, caller.number, body);
        // Writing to a vector cannot fail.
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

/// How hard, and how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Connections, each with one request at a time.
    pub(crate) connections: usize,
    /// Threads that share them.
    pub(crate) threads: usize,
    /// How long requests are sent.
    pub(crate) time: Duration,
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The time of each request, in no order.
    pub(crate) latencies: Vec<Duration>,
    /// From the first request to the last answer.
    pub(crate) elapsed: Duration,
    /// Requests that were answered with an error.
    pub(crate) failures: usize,
}

/// Sends requests over all connections until the time is over.
pub(crate) async fn run(plan: &Arc<Plan>, load: Load) -> Result<Outcome> {
    let started = Instant::now();
    let threads = load.threads.clamp(1, load.connections.max(1));
    let running: Vec<_> = (0..threads)
        .map(|thread| {
            let plan = plan.clone();
            let connections = (load.connections + thread) / threads;
            tokio::task::spawn_blocking(move || one_thread(&plan, connections, load.time))
        })
        .collect();
    let mut whole = Outcome::default();
    for thread in running {
        let part = thread.await??;
        whole.latencies.extend(part.latencies);
        whole.failures += part.failures;
    }
    whole.elapsed = started.elapsed();
    Ok(whole)
}

/// The connections of one thread, on a runtime of its own.
fn one_thread(plan: &Plan, connections: usize, time: Duration) -> Result<Outcome, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
        .map_err(|error| error.to_string())?;
    let plan = Rc::new(plan.clone());
    let outcome = Rc::new(RefCell::new(Outcome::default()));
    let local = LocalSet::new();
    let end = Instant::now() + time;
    let tasks: Vec<_> = (0..connections)
        .map(|_| local.spawn_local(one_connection(plan.clone(), outcome.clone(), end)))
        .collect();
    let all = async {
        for task in tasks {
            task.await.map_err(|error| error.to_string())??;
        }
        Ok::<_, String>(())
    };
    runtime.block_on(local.run_until(all))?;
    drop(local);
    Ok(outcome.take())
}

async fn one_connection(
    plan: Rc<Plan>,
    outcome: Rc<RefCell<Outcome>>,
    end: Instant,
) -> Result<(), String> {
    static SEED: AtomicU64 = AtomicU64::new(1);
    let mut random = Random::new(SEED.fetch_add(1, Ordering::Relaxed));
    let (mut body, mut request) = (Vec::new(), Vec::new());
    let connection = Connection::open(plan.address).await;
    let mut connection = connection.map_err(|error| error.to_string())?;
    let mut sent = Instant::now();
    while sent < end {
        plan.write(&mut random, &mut body, &mut request);
        let exchange = connection.exchange(&request).await;
        let exchange = exchange.map_err(|error| error.to_string())?;
        let done = Instant::now();
        let mut outcome = outcome.borrow_mut();
        outcome.latencies.push(done - sent);
        outcome.failures += usize::from(exchange.failed);
        sent = done;
    }
    Ok(())
}
