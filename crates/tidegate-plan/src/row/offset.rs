//! 32-bit offsets of rows, slots and text.

/// The offset that stands for no row, or no slot.
pub(crate) const NONE: u32 = u32::MAX;

/// An offset in 32 bits. The size limit of the text keeps it in range.
pub(super) fn narrow(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}
