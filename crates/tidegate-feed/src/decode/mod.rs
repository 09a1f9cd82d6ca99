//! Decodes messages of the change log into changes.

pub(crate) mod change;
pub(crate) mod decoder;
pub(crate) mod enum_labels;
pub mod pgoutput;
pub(crate) mod schema;
pub(crate) mod type_cache;
pub(crate) mod type_lookup;
