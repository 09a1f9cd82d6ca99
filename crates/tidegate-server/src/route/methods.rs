//! Which methods a path takes.

use http::Method;

/// The methods of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Methods {
    /// Reading: `HEAD` is there where `GET` is.
    Get,
    /// What is done, and not read.
    Post,
    /// What can only be deleted.
    Delete,
    /// A collection: reading it, adding to it.
    Collection,
    /// Members of a collection: reading, changing and deleting them.
    Members,
    /// A page with forms that it takes itself.
    Page,
    /// What is there as long as what it belongs to: reading and changing it.
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
