//! The receive buffer, in which messages are found without copying.

use std::io;

use bytes::{Buf, BytesMut};

/// The length in bytes of a message's tag and length field together.
const HEADER: usize = 5;
/// The free space in bytes that the buffer gets when it is grown for a read.
const READ: usize = 32 << 10;
/// An empty buffer is freed if its capacity exceeds this number of bytes, because it was grown for
/// a long row.
const MAX_IDLE_CAPACITY: usize = 256 << 10;
/// The longest message in bytes that is accepted. A longer value could not be returned to a client
/// anyway.
pub const MAX_MESSAGE: usize = 256 << 20;

/// The receive buffer.
#[derive(Debug, Default)]
pub struct Inbound {
    buffer: BytesMut,
    /// The offset of the current message. The messages before it are removed from the buffer
    /// together, when no complete message follows.
    start: usize,
    /// The length of the current message including its header; 0 if there is no current message.
    current: usize,
}

impl Inbound {
    /// Moves to the next message and returns its tag. Returns `None` if the next message has not
    /// arrived completely. Fails if its length is invalid.
    #[inline]
    pub fn advance(&mut self) -> io::Result<Option<u8>> {
        self.start += std::mem::take(&mut self.current);
        let rest = self.buffer.get(self.start..).unwrap_or_default();
        let Some((&[tag, a, b, c, d], _)) = rest.split_first_chunk::<HEADER>() else {
            self.buffer.advance(std::mem::take(&mut self.start));
            return Ok(None);
        };
        let length = usize::try_from(i32::from_be_bytes([a, b, c, d])).unwrap_or(0);
        if !(4..=MAX_MESSAGE).contains(&length) {
            let kind = if length > MAX_MESSAGE {
                io::ErrorKind::FileTooLarge
            } else {
                io::ErrorKind::InvalidData
            };
            return Err(io::Error::new(
                kind,
                format!(
                    "a message `{}` of {length} bytes",
                    char::from(tag).escape_default()
                ),
            ));
        }
        if rest.len() <= length {
            self.buffer.advance(std::mem::take(&mut self.start));
            self.buffer.reserve(length + 1 + READ - self.buffer.len());
            return Ok(None);
        }
        self.current = length + 1;
        Ok(Some(tag))
    }

    /// The body of the current message; empty if there is no current message.
    #[inline]
    pub fn body(&self) -> &[u8] {
        self.message().get(HEADER..).unwrap_or_default()
    }

    /// The current message with its tag and length.
    #[inline]
    pub fn message(&self) -> &[u8] {
        let end = self.start + self.current;
        self.buffer.get(self.start..end).unwrap_or_default()
    }

    /// The buffer, to which a read appends. It has free space for a read.
    pub fn read_buffer(&mut self) -> &mut BytesMut {
        if self.buffer.capacity() - self.buffer.len() < READ / 4 {
            self.buffer.reserve(READ);
        }
        &mut self.buffer
    }

    /// Whether unread bytes follow the current message.
    pub fn has_more(&self) -> bool {
        self.buffer.len() > self.start + self.current
    }

    /// Frees a large buffer if no unread bytes follow the current message. Call it between
    /// statements.
    pub fn shrink(&mut self) {
        if self.buffer.capacity() > MAX_IDLE_CAPACITY && !self.has_more() {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_one_by_one_however_the_bytes_arrive() {
        let bytes = b"C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I";
        for cut in 0..bytes.len() {
            let (mut inbound, mut seen) = (Inbound::default(), Vec::new());
            for part in [&bytes[..cut], &bytes[cut..]] {
                inbound.read_buffer().extend_from_slice(part);
                while let Some(tag) = inbound.advance().unwrap() {
                    seen.push((tag, inbound.body().to_vec()));
                }
            }
            assert_eq!(
                seen,
                [(b'C', b"SELECT 1\0".to_vec()), (b'Z', b"I".to_vec())],
                "{cut}"
            );
            assert!(!inbound.has_more());
        }
    }

    #[test]
    fn a_length_that_cannot_be_is_an_error() {
        for length in [[0, 0, 0, 3], [0xff; 4], [0x7f, 0, 0, 0]] {
            let mut inbound = Inbound::default();
            inbound
                .read_buffer()
                .extend_from_slice(&[b'D', length[0], length[1], length[2], length[3]]);
            assert!(inbound.advance().is_err(), "{length:?}");
        }
    }
}
