//! The output of responses.

use bytes::BytesMut;
use tidegate_sql::{Error, Result};

/// The port that takes the bytes of a response.
///
/// If a call fails, the whole response is replaced. So nothing may be sent before the response is
/// complete.
pub trait Output: Send {
    /// The buffer to which the response is appended.
    fn bytes(&mut self) -> &mut BytesMut;

    /// Checks whether the response may continue. Called at least once for each row. The
    /// implementation may take the bytes out of the buffer.
    ///
    /// # Errors
    ///
    /// [`Error::ResultTooLarge`] if the response exceeds its limit, or any other reason to end the
    /// call.
    fn check(&mut self) -> Result<()>;

    /// Discards all bytes that were written.
    fn clear(&mut self);
}

/// A response that is collected in memory, up to a limit.
#[derive(Debug)]
pub struct OutputBuffer {
    bytes: BytesMut,
    limit: u64,
}

impl OutputBuffer {
    /// An empty buffer for a response of at most `limit` bytes.
    pub fn new(limit: u64) -> Self {
        Self {
            bytes: BytesMut::new(),
            limit,
        }
    }

    /// The bytes of the response.
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
