//! The introspection that lowering needs.

use crate::collect::{CollectedField, Collector};
use crate::error::Error;
use crate::large_text::GeneratedText;

/// Resolves `__schema` and `__type`.
pub(crate) trait Introspector: Sync {
    /// The value of a field.
    ///
    /// # Errors
    ///
    /// A condition or a name whose variable is null.
    fn introspect<'d>(
        &self,
        group: &CollectedField<'d>,
        collect: Collector<'d>,
    ) -> Result<GeneratedText, Error>;
}
