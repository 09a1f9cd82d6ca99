//! 32-bit offsets of rows, slots and text.

/// Marks the absence of a row or slot where an offset is expected.
pub(crate) const NONE: u32 = u32::MAX;

/// Converts an offset to 32 bits. The size limit of the text keeps offsets in range.
pub(super) fn narrow(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}
