//! The parts of the feed that a subscriber sees: cursors, operations, selections, deliveries.

pub(crate) mod cursor;
pub(crate) mod item;
pub(crate) mod operation;
pub(crate) mod selection;
