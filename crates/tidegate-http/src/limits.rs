//! Limits on requests, and timeouts.

use std::time::Duration;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// The limits on requests. Each limit is a setting or has a fixed value.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The largest request body, in bytes.
    pub request_body: u64,
    /// The longest SQL text, in bytes.
    pub sql_text: usize,
    /// The largest response in a format that is not streamed, in bytes.
    pub response: u64,
    /// The memory budget of all requests, in bytes. Only bodies of more than 64 KiB and responses
    /// of at least 256 KiB are charged to it. One tenant gets at most half of the budget, and all
    /// anonymous callers together get at most a quarter.
    pub memory: u64,
    /// The largest number of requests in an array of SQL requests or JSON-RPC calls.
    pub batch: usize,
    /// The largest number of parameter sets in all requests of a body.
    pub parameter_sets: usize,
    /// Limits on a GraphQL request; its response is also limited by `response`.
    pub graphql: tidegate_graphql::Limits,
    /// The largest number of requests in an array of GraphQL requests.
    pub graphql_batch: usize,
    /// How long a statement may run. A request may set a shorter time.
    pub statement: Duration,
    /// The largest number of concurrent connections.
    pub connections: usize,
    /// The largest number of concurrent requests on one HTTP/2 connection.
    pub streams: u32,
    /// The timeouts of a connection.
    pub timeouts: Timeouts,
}

/// The timeouts of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// How long the TLS handshake may take.
    pub handshake: Duration,
    /// The timeout for the head of a request, from its first byte to its last. It is also the
    /// timeout for the first byte of a new connection.
    pub header: Duration,
    /// How long a connection may exist without a request.
    pub idle: Duration,
    /// How long a request body may take in addition to the time that it takes at `body_rate`. It is
    /// also the longest allowed wait for the next bytes, however fast the earlier bytes came.
    pub body: Duration,
    /// The lowest rate of a request body, in bytes per second.
    pub body_rate: u64,
    /// The connection is closed if the client reads no bytes of a response for this time.
    pub write: Duration,
    /// How long running requests may continue after the last phase of the shutdown has begun.
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
