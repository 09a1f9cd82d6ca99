//! The state of one database's feed.

pub(crate) mod captures;
pub(crate) mod catalog_snapshot;
pub(crate) mod database_feed;
#[cfg(test)]
pub(crate) mod fixture;
pub(crate) mod stream_progress;
#[cfg(test)]
mod tests;
