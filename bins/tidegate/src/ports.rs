//! The clock and the random source, which the binary passes to the other crates.

use std::sync::Arc;
use std::time::SystemTime;

use tidegate_identity::{Clock, SecureRandom, SystemRandom};
use tidegate_wire::backoff::Jitter;

#[expect(
    clippy::disallowed_methods,
    reason = "the binary is where the clock is read"
)]
pub(crate) fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemTime::now)
}

/// Returns the random source of the system.
pub(crate) fn random() -> Arc<dyn SecureRandom> {
    Arc::new(SystemRandom::new())
}

/// Returns the time in seconds since 1970.
pub(crate) fn seconds() -> u64 {
    clock().now().seconds().unsigned_abs()
}

/// Returns random bytes.
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.expect("the operating system has randomness");
    bytes
}

/// Returns a source of random jitter, so that several nodes do not retry at the same time.
pub(crate) fn jitter() -> Jitter {
    Jitter::new(|| f64::from(u32::from_be_bytes(bytes())) / f64::from(u32::MAX))
}
