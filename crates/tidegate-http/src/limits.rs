//! What one caller may take, and how long anything may last.

use std::time::Duration;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// The limits of the edge. All of them are settings; the defaults are those of the API's contract.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The largest request body, in bytes.
    pub request_body: u64,
    /// The longest SQL text, in bytes.
    pub sql_text: usize,
    /// The largest answer in a format that is not streamed, in bytes.
    pub response: u64,
    /// What all requests together may hold in bodies of more than 64 KiB and answers of more than
    /// 256 KiB. One tenant gets at most half of it, all anonymous callers together a quarter.
    pub memory: u64,
    /// Requests of an array of SQL requests.
    pub batch: usize,
    /// Parameter sets in all requests of a body together.
    pub parameter_sets: usize,
    /// What a GraphQL request may ask for; its answer is bounded by `response` too.
    pub graphql: tidegate_graphql::Limits,
    /// Requests of an array of GraphQL requests.
    pub graphql_batch: usize,
    /// How long a statement may run; a request may ask for less.
    pub statement: Duration,
    /// Connections at once.
    pub connections: usize,
    /// Requests at once on one HTTP/2 connection.
    pub streams: u32,
    /// How long things may take on a connection.
    pub timeouts: Timeouts,
}

/// How long things may take on a connection.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// The TLS handshake.
    pub handshake: Duration,
    /// From the first byte of a request's head to its last; also until a connection's first byte.
    pub header: Duration,
    /// A connection without a request.
    pub idle: Duration,
    /// How far a request body may be behind `body_rate`: that long after its last bytes it is given
    /// up, however many came before.
    pub body: Duration,
    /// The slowest rate at which a request body may come, in bytes a second.
    pub body_rate: u64,
    /// How long the peer may take none of the bytes that wait for it.
    pub write: Duration,
    /// How long requests may go on after the shutdown began.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request_body: 10 * MIB,
            sql_text: 1 << 20,
            response: 256 * MIB,
            memory: 1024 * MIB,
            batch: 1_000,
            parameter_sets: 100_000,
            graphql: tidegate_graphql::Limits::default(),
            graphql_batch: 50,
            statement: Duration::from_mins(1),
            connections: 10_000,
            streams: 128,
            timeouts: Timeouts::default(),
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(10),
            header: Duration::from_secs(10),
            idle: Duration::from_secs(75),
            body: Duration::from_secs(10),
            body_rate: 16 * KIB,
            write: Duration::from_secs(30),
            drain: Duration::from_secs(30),
        }
    }
}
