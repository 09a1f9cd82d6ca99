//! The settings of the bus.

use std::fmt;
use std::time::Duration;

use zeroize::Zeroizing;

use crate::seal::SealSession;

/// The settings of the bus.
pub struct BusSettings {
    /// The addresses of the NATS servers of one cluster, separated by commas. An address may
    /// contain a user name and a password.
    pub url: Zeroizing<String>,
    /// The key that protects the messages, derived from the master key. Nodes with the same key
    /// share their readers.
    pub key: Zeroizing<[u8; 32]>,
    /// Random bytes, new for each run of the process.
    pub session: SealSession,
    /// How long JetStream keeps a message.
    pub window: Duration,
    /// How many bytes of messages JetStream keeps at most.
    pub bytes: u64,
    /// How many bytes of log PostgreSQL keeps at most while JetStream keeps no messages.
    pub retention: u64,
}

impl fmt::Debug for BusSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BusSettings")
            .field("window", &self.window)
            .field("bytes", &self.bytes)
            .field("retention", &self.retention)
            .finish_non_exhaustive()
    }
}
