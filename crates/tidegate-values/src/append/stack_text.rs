//! Short texts that are built on the stack, so that the output needs one copy instead of one for
//! each piece.

use bytes::BytesMut;

/// A buffer to which text is appended in pieces.
pub(crate) trait Push {
    fn push(&mut self, text: &[u8]);

    /// Removes `bytes` bytes from the end.
    fn cut(&mut self, bytes: usize);
}

impl Push for BytesMut {
    #[inline]
    fn push(&mut self, text: &[u8]) {
        self.extend_from_slice(text);
    }

    fn cut(&mut self, bytes: usize) {
        self.truncate(self.len().saturating_sub(bytes));
    }
}

/// A text of at most [`StackText::CAPACITY`] bytes. A piece that does not fit would be left out,
/// but the callers never append more than fits.
#[derive(Debug)]
pub(crate) struct StackText {
    bytes: [u8; Self::CAPACITY],
    length: usize,
}

impl StackText {
    /// The capacity in bytes, which is more than any date, time or short number needs.
    pub(crate) const CAPACITY: usize = 64;

    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl Default for StackText {
    #[inline]
    fn default() -> Self {
        Self {
            bytes: [0; Self::CAPACITY],
            length: 0,
        }
    }
}

impl Push for StackText {
    #[inline]
    fn push(&mut self, text: &[u8]) {
        let end = self.length + text.len();
        if let Some(free) = self.bytes.get_mut(self.length..end) {
            free.copy_from_slice(text);
            self.length = end;
        }
    }

    #[inline]
    fn cut(&mut self, bytes: usize) {
        self.length = self.length.saturating_sub(bytes);
    }
}
