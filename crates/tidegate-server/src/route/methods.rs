//! The sets of methods that paths have.

use http::Method;

/// The set of methods that a path has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Methods {
    /// The path is read-only. `HEAD` is allowed wherever `GET` is.
    Get,
    /// The path is an action.
    Post,
    /// The path can only be deleted.
    Delete,
    /// The path is a collection, which can be listed and added to.
    Collection,
    /// The path names members of a collection, which can be read, changed and deleted.
    Members,
    /// The path is a page with a form.
    Page,
    /// The path is a property, which can be read and changed.
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
