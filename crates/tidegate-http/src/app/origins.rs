//! Origins whose pages may call the API.

use http::HeaderValue;

/// Origins whose pages may call the API.
#[derive(Clone, Debug, Default)]
pub enum Origins {
    /// All of them.
    #[default]
    Any,
    /// Those listed, in the form that browsers send: `https://app.example`.
    Listed(Vec<HeaderValue>),
}
