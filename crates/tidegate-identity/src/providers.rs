//! Ports to external services: a mailer, and identity providers.

use std::error::Error as StdError;
use std::future::Future;
use std::pin::Pin;

use crate::{Secret, Timestamp};

/// The result of these ports' methods.
pub type OutboundFuture<'a, T> =
    Pin<Box<dyn Future<Output = Result<T, OutboundError>> + Send + 'a>>;

/// An external service failed or cannot be reached.
#[derive(Debug, thiserror::Error)]
#[error("an external service failed")]
pub struct OutboundError(#[source] Box<dyn StdError + Send + Sync>);

impl OutboundError {
    /// An error with this cause.
    pub fn new(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self(cause.into())
    }
}

/// A plain-text email message to one recipient.
#[derive(Clone, PartialEq, Eq)]
pub struct Email {
    /// The recipient's address.
    pub to: String,
    /// The subject, one line.
    pub subject: String,
    /// The body.
    pub text: String,
}

impl std::fmt::Debug for Email {
    /// Without the body, which contains a secret link.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Email")
            .field("subject", &self.subject)
            .finish_non_exhaustive()
    }
}

/// Sends email.
pub trait Mailer: Send + Sync {
    /// Hands a message to a mail server. On success the server is responsible for delivery.
    fn send<'a>(&'a self, message: &'a Email) -> OutboundFuture<'a, ()>;
}

/// An identity provider, as shown on the sign-in page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderName {
    /// Its id in URLs.
    pub id: String,
    /// Its display name.
    pub label: String,
}

/// The state of one browser's login at a provider.
#[derive(Clone, Debug)]
pub struct LoginState {
    /// The callback URL.
    pub redirect_uri: String,
    /// The `state` parameter (RFC 6749, section 10.12).
    pub state: String,
    /// The nonce that the ID token must contain (OpenID Connect Core 1.0, section 15.5.2).
    pub nonce: String,
    /// The code verifier (RFC 7636).
    pub verifier: Secret,
    /// The current time.
    pub now: Timestamp,
}

/// A person's identity at a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalIdentity {
    /// The provider's issuer identifier, a URL.
    pub issuer: String,
    /// The subject identifier, which never changes.
    pub subject: String,
    /// The email address, if the provider has verified it.
    pub verified_email: Option<String>,
    /// The preferred user name.
    pub name: Option<String>,
}

/// The configured identity providers.
pub trait IdentityProviders: Send + Sync {
    /// All providers.
    fn names(&self) -> &[ProviderName];

    /// The URL to which the browser is redirected; `None` for an unknown provider.
    fn begin<'a>(
        &'a self,
        provider: &'a str,
        login: &'a LoginState,
    ) -> OutboundFuture<'a, Option<String>>;

    /// The identity of the person who returned with this code. Implementations verify signature,
    /// issuer, audience, times and nonce of the ID token.
    fn complete<'a>(
        &'a self,
        provider: &'a str,
        code: &'a str,
        login: &'a LoginState,
    ) -> OutboundFuture<'a, ExternalIdentity>;
}
