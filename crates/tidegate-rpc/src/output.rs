//! The output of responses.

use bytes::BytesMut;
use tidegate_sql::{Error, Result};

/// Takes the bytes of a response.
///
/// If a call fails, the whole response is replaced, so nothing may be sent before it is complete.
pub trait Output: Send {
    /// The buffer at the end of the response.
    fn bytes(&mut self) -> &mut BytesMut;

    /// Called at least once for each row. It may take the bytes out of the buffer.
    ///
    /// # Errors
    ///
    /// [`Error::ResultTooLarge`] if the response exceeds its limit, or any other reason to end the
    /// call.
    fn check(&mut self) -> Result<()>;

    /// Drops everything that was written.
    fn clear(&mut self);
}

/// A response in memory, up to a limit.
#[derive(Debug)]
pub struct OutputBuffer {
    bytes: BytesMut,
    limit: u64,
}

impl OutputBuffer {
    /// An empty buffer for at most `limit` bytes.
    pub fn new(limit: u64) -> Self {
        Self {
            bytes: BytesMut::new(),
            limit,
        }
    }

    /// The response.
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
