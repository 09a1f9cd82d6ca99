//! Ports to external services: a mailer, and identity providers.

use std::error::Error as StdError;

use crate::{Secret, Timestamp};
use async_trait::async_trait;

/// The result of the methods of [`Mailer`] and [`IdentityProviders`].
pub type OutboundResult<T> = Result<T, OutboundError>;

/// An external service failed or cannot be reached.
#[derive(Debug, thiserror::Error)]
#[error("an external service failed")]
pub struct OutboundError(#[source] Box<dyn StdError + Send + Sync>);

impl OutboundError {
    /// An error that wraps this cause.
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
    /// The body as plain text.
    pub text: String,
}

impl std::fmt::Debug for Email {
    /// Omits the recipient, and the body, which may contain a secret link.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Email")
            .field("subject", &self.subject)
            .finish_non_exhaustive()
    }
}

/// Sends email.
#[async_trait]
pub trait Mailer: Send + Sync {
    /// Hands a message to a mail server, which is then responsible for the delivery.
    async fn send(&self, message: &Email) -> OutboundResult<()>;
}

/// An identity provider, as shown on the sign-in page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderName {
    /// The provider's id in URLs.
    pub id: String,
    /// The provider's display name.
    pub label: String,
}

/// The state of one browser's login at an identity provider.
#[derive(Clone, Debug)]
pub struct LoginState {
    /// The URL to which the provider sends the browser back.
    pub redirect_uri: String,
    /// The `state` parameter, which ties the callback to the request (RFC 6749, section 10.12).
    pub state: String,
    /// The nonce that the ID token must contain (OpenID Connect Core 1.0, section 15.5.2).
    pub nonce: String,
    /// The code verifier (RFC 7636).
    pub verifier: Secret,
    /// The current time, with which the times in the ID token are compared.
    pub now: Timestamp,
}

/// A person's account at an identity provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalIdentity {
    /// The provider's issuer identifier, a URL.
    pub issuer: String,
    /// The provider's id of the account, which never changes: the claim `sub`.
    pub subject: String,
    /// The email address, if the provider has verified it.
    pub verified_email: Option<String>,
    /// The user name that the person prefers.
    pub name: Option<String>,
}

/// The configured identity providers.
#[async_trait]
pub trait IdentityProviders: Send + Sync {
    /// The names of all configured providers.
    fn names(&self) -> &[ProviderName];

    /// The provider's URL to which the browser is redirected; `None` for an unknown provider.
    async fn begin(&self, provider: &str, login: &LoginState) -> OutboundResult<Option<String>>;

    /// Redeems the code of a callback and returns the identity of the person. Implementations
    /// verify signature, issuer, audience, times and nonce of the ID token.
    async fn complete(
        &self,
        provider: &str,
        code: &str,
        login: &LoginState,
    ) -> OutboundResult<ExternalIdentity>;
}
