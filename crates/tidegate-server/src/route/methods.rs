//! The methods of paths.

use http::Method;

/// The methods of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Methods {
    /// Read-only. `HEAD` is allowed wherever `GET` is.
    Get,
    /// An action.
    Post,
    /// Deleting only.
    Delete,
    /// A collection: list, add.
    Collection,
    /// Members of a collection: read, change, delete.
    Members,
    /// A page with a form.
    Page,
    /// A property of something: read, change.
    Property,
}

impl Methods {
    pub(super) fn include(self, method: &Method) -> bool {
        let reads = matches!(*method, Method::GET | Method::HEAD);
        match self {
            Self::Get => reads,
            Self::Post => *method == Method::POST,
            Self::Delete => *method == Method::DELETE,
            Self::Collection | Self::Page => reads || *method == Method::POST,
            Self::Members => reads || matches!(*method, Method::PATCH | Method::DELETE),
            Self::Property => reads || *method == Method::PATCH,
        }
    }

    /// The value of `Allow`.
    pub(crate) const fn allow(self) -> &'static str {
        match self {
            Self::Get => "GET, HEAD, OPTIONS",
            Self::Post => "POST, OPTIONS",
            Self::Delete => "DELETE, OPTIONS",
            Self::Collection | Self::Page => "GET, HEAD, POST, OPTIONS",
            Self::Members => "GET, HEAD, PATCH, DELETE, OPTIONS",
            Self::Property => "GET, HEAD, PATCH, OPTIONS",
        }
    }
}
