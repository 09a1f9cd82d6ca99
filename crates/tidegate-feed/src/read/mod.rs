//! Reads changes and delivers them, by the live stream, by replays, and for lagging connections.

pub(crate) mod commit_visibility;
pub(crate) mod delivery;
pub(crate) mod lagging;
pub(crate) mod live;
pub(crate) mod replay;
mod role_checks;
