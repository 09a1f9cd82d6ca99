//! Why the bus cannot be used.

/// The result of the crate's functions.
pub type BusResult<T> = Result<T, BusError>;

/// Why the bus cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BusError {
    /// An address is malformed. The error does not contain the address, which may contain a
    /// password.
    #[error(
        "address {number} of bus_url is malformed; an address is nats://HOST:4222 or \
         tls://USER:PASSWORD@HOST:4222"
    )]
    Address {
        /// The number of the address in the list, counted from 1.
        number: usize,
    },
    /// The addresses have different logins, but a NATS client uses one login for all servers.
    #[error("the addresses of bus_url have different user names or passwords")]
    Logins,
    /// No NATS server answers.
    #[error("no NATS server of bus_url can be reached ({servers}): {reason}")]
    Unreachable {
        /// The hosts and ports of the servers in `bus_url`.
        servers: String,
        /// The error text of the NATS client.
        reason: String,
    },
    /// The NATS server refuses the login.
    #[error("the NATS server refuses the user name or the password of bus_url ({servers})")]
    Refused {
        /// The hosts and ports of the servers in `bus_url`.
        servers: String,
    },
    /// The NATS server is too old.
    #[error("the NATS server has version {version}; the bus needs 2.9.0 or later")]
    TooOld {
        /// The server's version.
        version: String,
    },
    /// The NATS server or the account has no JetStream.
    #[error(
        "the NATS server offers no JetStream to this login; start nats-server with --jetstream, \
         or enable it for the account"
    )]
    NoJetStream,
    /// JetStream has no room for the stream.
    #[error(
        "JetStream has no room for a stream of {bytes} bytes ({reason}); lower bus_bytes, or raise \
         max_file_store of the NATS server"
    )]
    Full {
        /// The size that was requested.
        bytes: u64,
        /// The error text of the NATS server.
        reason: String,
    },
    /// JetStream does not keep the messages.
    #[error(
        "JetStream does not keep the changes that are sent; the log of the NATS server says why, for \
         example that its disk is full"
    )]
    NotStored,
    /// JetStream cannot keep the requested number of copies.
    #[error(
        "JetStream cannot keep {replicas} copies ({reason}); name fewer servers in bus_url, or start more \
         NATS servers in the cluster"
    )]
    Replicas {
        /// The number of copies that was requested.
        replicas: usize,
        /// The error text of the NATS server.
        reason: String,
    },
    /// JetStream refuses a request for another reason.
    #[error("JetStream refuses a request: {reason} ({code})")]
    JetStream {
        /// The error text of the NATS server.
        reason: String,
        /// The code of the error.
        code: u64,
    },
    /// The NATS server did not answer, or the connection is broken.
    #[error("the NATS server does not answer, for example because its disk is full: {0}")]
    Request(String),
}
