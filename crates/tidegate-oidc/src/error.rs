//! Errors of the provider settings.

/// A result with the error of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why the settings of providers are invalid.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A provider's URL is neither `https` nor on this machine.
    #[error("the URL {0} of an identity provider does not use https")]
    InsecureUrl(String),
    /// The HTTP client cannot be created.
    #[error("the HTTP client for identity providers cannot be created ({0})")]
    HttpClient(String),
}
