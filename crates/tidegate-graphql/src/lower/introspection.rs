//! What lowering asks of introspection.

use crate::collect::{Collector, Group};
use crate::error::Error;
use crate::unwritten::Written;

/// Answers `__schema` and `__type`.
pub(crate) trait Introspector: Sync {
    /// The value of a field.
    ///
    /// # Errors
    ///
    /// A condition or a name whose variable is null.
    fn introspect<'d>(&self, group: &Group<'d>, collect: Collector<'d>) -> Result<Written, Error>;
}
