//! JSON serialisation.

use serde::Serialize;

/// The JSON text of a document that contains only strings, numbers, booleans, arrays and objects.
pub(crate) fn text(document: &impl Serialize) -> String {
    serde_json::to_string(document).expect("a document of strings and numbers always has a text")
}
