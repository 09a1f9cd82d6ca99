//! Tasks that watch the catalog, and release what is no longer used.

pub(crate) mod catalog_poll;
pub(crate) mod composite_types;
pub(crate) mod recheck;
pub(crate) mod retention;
