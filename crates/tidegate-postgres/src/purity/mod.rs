//! The purity analysis: finds the untrusted names of a database. A statement that mentions an
//! untrusted name may have side effects.

mod cache;
mod query;
mod unsafe_functions;
mod untrusted_names;

pub(crate) use cache::{DdlGuard, MentionCache, PurityCache};
pub(crate) use query::{FINGERPRINT_SQL, bind, statement, text_rows};
