//! Positions of rows, slots and text in 32 bits.

/// No row, or no slot.
pub(crate) const NONE: u32 = u32::MAX;

/// A position in 32 bits, which are enough because the text is limited.
pub(super) fn narrow(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}
