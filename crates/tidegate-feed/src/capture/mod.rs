//! Captures tables, keeps them captured, and reports gaps in the captures.

pub(crate) mod ensure;
pub(crate) mod health;
pub(crate) mod partitions;
pub(crate) mod recapture;
