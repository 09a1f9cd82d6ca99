//! What lowering asks of introspection.

use bytes::Bytes;

use crate::collect::{Collector, Group};
use crate::error::Error;

/// Answers `__schema` and `__type`.
pub(crate) trait Introspector: Sync {
    /// The JSON text of a field.
    ///
    /// # Errors
    ///
    /// A condition or a name whose variable is null.
    fn introspect<'d>(&self, group: &Group<'d>, collect: Collector<'d>) -> Result<Bytes, Error>;
}
