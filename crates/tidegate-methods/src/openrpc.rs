//! Methods as an OpenRPC document (OpenRPC Specification 1.3).

use std::sync::Arc;

use crate::method::Method;

/// What a document says of the service.
#[derive(Clone, Debug)]
pub struct Info<'a> {
    /// The API's title.
    pub title: &'a str,
    /// The API's version.
    pub version: &'a str,
    /// Where calls go, when known.
    pub url: Option<&'a str>,
}

/// The document as JSON text.
pub fn document(info: &Info<'_>, methods: &[Arc<Method>]) -> String {
    let _ = (info, methods);
    String::new()
}
