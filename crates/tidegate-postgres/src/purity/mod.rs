//! The purity analysis: which names of a database are untrusted, because a statement that mentions
//! them may have side effects.

mod cache;
mod query;
mod unsafe_functions;
mod untrusted_names;

pub(crate) use cache::{CachedPurity, DdlGuard, PurityCache};
pub(crate) use query::{FINGERPRINT_SQL, TextRows, bind, statement, text_rows};
