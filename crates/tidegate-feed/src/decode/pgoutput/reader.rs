//! Reads numbers, strings and bytes from a message.

use bytes::Bytes;

use super::DecodeError;

/// A message and the offset of the next byte to read. Each method that reads moves the offset.
pub(super) struct MessageReader<'a> {
    message: &'a Bytes,
    at: usize,
}

impl<'a> MessageReader<'a> {
    pub(super) fn new(message: &'a Bytes) -> Self {
        Self { message, at: 0 }
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let rest = self.message.get(self.at..).unwrap_or_default();
        let (head, _) = rest
            .split_first_chunk::<N>()
            .ok_or(DecodeError::Truncated)?;
        self.at += N;
        Ok(*head)
    }

    pub(super) fn u8(&mut self) -> Result<u8, DecodeError> {
        Ok(u8::from_be_bytes(self.take()?))
    }

    pub(super) fn u16(&mut self) -> Result<u16, DecodeError> {
        Ok(u16::from_be_bytes(self.take()?))
    }

    pub(super) fn u32(&mut self) -> Result<u32, DecodeError> {
        Ok(u32::from_be_bytes(self.take()?))
    }

    pub(super) fn i32(&mut self) -> Result<i32, DecodeError> {
        Ok(i32::from_be_bytes(self.take()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64, DecodeError> {
        Ok(u64::from_be_bytes(self.take()?))
    }

    /// Reads a string that ends with a zero byte.
    pub(super) fn text(&mut self) -> Result<Box<str>, DecodeError> {
        let rest = self.message.get(self.at..).unwrap_or_default();
        let end = rest.iter().position(|byte| *byte == 0);
        let text = rest
            .get(..end.ok_or(DecodeError::Truncated)?)
            .unwrap_or_default();
        self.at += text.len() + 1;
        Ok(String::from_utf8_lossy(text).into())
    }

    /// Skips bytes. Returns their offset in the message.
    pub(super) fn skip(&mut self, length: usize) -> Result<usize, DecodeError> {
        let start = self.at;
        let end = start.checked_add(length).ok_or(DecodeError::Truncated)?;
        if end > self.message.len() {
            return Err(DecodeError::Truncated);
        }
        self.at = end;
        Ok(start)
    }

    /// Reads bytes, which share memory with the message.
    pub(super) fn bytes(&mut self, length: usize) -> Result<Bytes, DecodeError> {
        let start = self.skip(length)?;
        Ok(self.message.slice(start..self.at))
    }

    /// Fails unless the message ends here.
    pub(super) fn end(&self) -> Result<(), DecodeError> {
        if self.at == self.message.len() {
            Ok(())
        } else {
            Err(DecodeError::Trailing)
        }
    }
}
