//! Origins whose pages may call the API.

use http::HeaderValue;

/// Origins whose pages may call the API.
#[derive(Clone, Debug, Default)]
pub enum Origins {
    /// All origins.
    #[default]
    Any,
    /// The listed origins, in the form that browsers send: `https://app.example`.
    Listed(Vec<HeaderValue>),
}
