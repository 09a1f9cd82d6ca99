//! Tasks that watch the catalog, and release tables and databases that are no longer used.

pub(crate) mod catalog_poll;
pub(crate) mod composite_types;
pub(crate) mod recheck;
pub(crate) mod retention;
