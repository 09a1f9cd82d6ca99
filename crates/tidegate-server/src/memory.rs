//! How much memory all requests together may hold in bodies and collected answers, so that many
//! large ones cannot take the process down.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Nothing is left; what is held now comes back when its requests end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("all memory for large bodies and answers is in use")]
pub(crate) struct Exhausted;

/// The memory of all requests.
#[derive(Clone, Debug)]
pub(crate) struct Memory(Arc<AtomicU64>);

impl Memory {
    pub(crate) fn new(bytes: u64) -> Self {
        Self(Arc::new(AtomicU64::new(bytes)))
    }

    /// A request's share, which is empty at first.
    pub(crate) fn share(&self) -> Share {
        Share {
            left: Arc::clone(&self.0),
            held: 0,
        }
    }
}

/// What one request holds; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    left: Arc<AtomicU64>,
    held: u64,
}

impl Share {
    /// Takes more.
    ///
    /// # Errors
    ///
    /// [`Exhausted`] when that much is not left; then nothing was taken.
    pub(crate) fn take(&mut self, bytes: u64) -> Result<(), Exhausted> {
        let taken = self
            .left
            .fetch_update(Relaxed, Relaxed, |left| left.checked_sub(bytes));
        taken.map_err(|_| Exhausted)?;
        self.held += bytes;
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if self.held > 0 {
            self.left.fetch_add(self.held, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_that_ends_gives_back_what_it_held() {
        let memory = Memory::new(10);
        let (mut one, mut two) = (memory.share(), memory.share());
        one.take(4).unwrap();
        one.take(4).unwrap();
        assert_eq!(two.take(3), Err(Exhausted));
        two.take(2).unwrap();
        drop(one);
        two.take(8).unwrap();
        assert_eq!(two.take(1), Err(Exhausted));
    }
}
