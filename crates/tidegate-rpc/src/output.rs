//! Where answers are written.

use bytes::BytesMut;
use tidegate_sql::{Error, Result};

/// Takes the bytes of an answer.
///
/// What fails in the middle is replaced as a whole, so nothing may leave before the answer is
/// complete.
pub trait Output: Send {
    /// The end of the answer, to append to.
    fn bytes(&mut self) -> &mut BytesMut;

    /// Called now and then, at least once for each row; the bytes may be taken away.
    ///
    /// # Errors
    ///
    /// [`Error::ResultTooLarge`] for an answer beyond its limit, and whatever else ends the call.
    fn check(&mut self) -> Result<()>;

    /// Forgets everything that was written.
    fn clear(&mut self);
}

/// An answer in one piece of memory, up to a limit.
#[derive(Debug)]
pub struct OutputBuffer {
    bytes: BytesMut,
    limit: u64,
}

impl OutputBuffer {
    /// Takes at most `limit` bytes.
    pub fn new(limit: u64) -> Self {
        Self {
            bytes: BytesMut::new(),
            limit,
        }
    }

    /// What was written.
    pub fn into_bytes(self) -> BytesMut {
        self.bytes
    }
}

impl Output for OutputBuffer {
    fn bytes(&mut self) -> &mut BytesMut {
        &mut self.bytes
    }

    fn check(&mut self) -> Result<()> {
        if u64::try_from(self.bytes.len()).is_ok_and(|length| length <= self.limit) {
            Ok(())
        } else {
            Err(Error::ResultTooLarge(self.limit))
        }
    }

    fn clear(&mut self) {
        self.bytes.clear();
    }
}
