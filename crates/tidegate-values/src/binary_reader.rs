//! Reads big-endian fields from the start of a binary value.

use crate::error::{MalformedValue, Result};

/// Reads a value of exactly `N` bytes.
#[inline]
pub(crate) fn exact<const N: usize>(raw: &[u8]) -> Result<[u8; N]> {
    raw.try_into().map_err(|_| MalformedValue)
}

/// A reader of the fields of a binary value. It holds the bytes that were not read yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BinaryReader<'a> {
    rest: &'a [u8],
}

impl<'a> BinaryReader<'a> {
    pub(crate) fn new(raw: &'a [u8]) -> Self {
        Self { rest: raw }
    }

    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(length).ok_or(MalformedValue)?;
        self.rest = rest;
        Ok(head)
    }

    pub(crate) fn bytes<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(MalformedValue)?;
        self.rest = rest;
        Ok(*head)
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        self.bytes().map(u8::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        self.bytes().map(u32::from_be_bytes)
    }

    pub(crate) fn i32(&mut self) -> Result<i32> {
        self.bytes().map(i32::from_be_bytes)
    }

    pub(crate) fn i64(&mut self) -> Result<i64> {
        self.bytes().map(i64::from_be_bytes)
    }

    pub(crate) fn f64(&mut self) -> Result<f64> {
        self.bytes().map(f64::from_be_bytes)
    }

    /// Reads a count, which must not be negative.
    pub(crate) fn count(&mut self) -> Result<usize> {
        usize::try_from(self.i32()?).map_err(|_| MalformedValue)
    }

    /// Reads a length and that many bytes; `None` for the length -1, which stands for NULL.
    #[inline]
    pub(crate) fn value(&mut self) -> Result<Option<&'a [u8]>> {
        match self.i32()? {
            -1 => Ok(None),
            length => self
                .take(usize::try_from(length).map_err(|_| MalformedValue)?)
                .map(Some),
        }
    }

    /// Checks that all bytes were read.
    pub(crate) fn end(self) -> Result<()> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(MalformedValue)
        }
    }
}
