//! Methods as TypeScript.

use std::sync::Arc;

use crate::method::Method;

/// The text.
pub fn interfaces(methods: &[Arc<Method>]) -> String {
    let _ = methods;
    String::new()
}
