//! The interface through which lowering generates introspection.

use crate::collect::{CollectedField, Collector};
use crate::error::Error;
use crate::large_text::GeneratedText;

/// Generates the values of `__schema` and `__type`.
pub(crate) trait Introspector: Sync {
    /// The JSON text of a field's value.
    ///
    /// # Errors
    ///
    /// If the variable of `@skip` or `@include` is null or has no value.
    fn introspect<'d>(
        &self,
        group: &CollectedField<'d>,
        collect: Collector<'d>,
    ) -> Result<GeneratedText, Error>;
}
