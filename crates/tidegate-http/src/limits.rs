//! Limits on requests, and timeouts.

use std::time::Duration;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// The limits. Each is a setting or has a fixed default, which the API's contract defines.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The largest request body, in bytes.
    pub request_body: u64,
    /// The longest SQL text, in bytes.
    pub sql_text: usize,
    /// The largest response in a format that is not streamed, in bytes.
    pub response: u64,
    /// The memory budget of all requests, for bodies of more than 64 KiB and responses of more than
    /// 256 KiB. One tenant gets at most half of it, all anonymous callers together a quarter.
    pub memory: u64,
    /// Requests in an array of SQL requests.
    pub batch: usize,
    /// Parameter sets in all requests of a body.
    pub parameter_sets: usize,
    /// Limits on a GraphQL request; its response is also limited by `response`.
    pub graphql: tidegate_graphql::Limits,
    /// Requests in an array of GraphQL requests.
    pub graphql_batch: usize,
    /// The run time of a statement; a request may ask for less.
    pub statement: Duration,
    /// Concurrent connections.
    pub connections: usize,
    /// Concurrent requests on one HTTP/2 connection.
    pub streams: u32,
    /// Timeouts of a connection.
    pub timeouts: Timeouts,
}

/// Timeouts of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// The TLS handshake.
    pub handshake: Duration,
    /// From the first byte of a request's head to the last; also up to the first byte of a
    /// connection.
    pub header: Duration,
    /// Of a connection without a request.
    pub idle: Duration,
    /// How long a request body may lag behind `body_rate`; also the longest time without a byte of
    /// it, however many bytes came before.
    pub body: Duration,
    /// The lowest rate of a request body, in bytes per second.
    pub body_rate: u64,
    /// How long the client may accept no bytes of a response.
    pub write: Duration,
    /// How long requests may continue after the shutdown has begun.
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
