//! The settings of the bus.

use std::fmt;
use std::time::Duration;

use zeroize::Zeroizing;

use crate::seal::Session;

/// The settings of the bus.
pub struct BusSettings {
    /// The addresses of the NATS servers of one cluster, separated by commas. An address may
    /// contain a user name and a password.
    pub url: Zeroizing<String>,
    /// The key for everything that is sent, derived from the master key. Nodes with the same key
    /// share their readers.
    pub key: Zeroizing<[u8; 32]>,
    /// Random bytes, new for each run of the process.
    pub session: Session,
    /// The number of copies that JetStream keeps of each message.
    pub replicas: u8,
    /// How long JetStream keeps messages.
    pub window: Duration,
    /// How many bytes of messages JetStream keeps.
    pub bytes: u64,
}

impl BusSettings {
    /// The settings with their defaults: one copy, 5 minutes, 256 MiB.
    pub fn new(url: String, key: Zeroizing<[u8; 32]>, session: Session) -> Self {
        Self {
            url: Zeroizing::new(url),
            key,
            session,
            replicas: 1,
            window: Duration::from_mins(5),
            bytes: 256 << 20,
        }
    }
}

impl fmt::Debug for BusSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BusSettings")
            .field("replicas", &self.replicas)
            .field("window", &self.window)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}
