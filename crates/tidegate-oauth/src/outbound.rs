//! The ports to others: who carries letters, and who knows people by their accounts elsewhere.

use std::error::Error as StdError;
use std::future::Future;
use std::pin::Pin;

use crate::{Secret, Timestamp};

/// What the methods of these ports return.
pub type OutboundFuture<'a, T> =
    Pin<Box<dyn Future<Output = Result<T, OutboundError>> + Send + 'a>>;

/// Somebody outside did not do what was asked, or cannot be reached.
#[derive(Debug, thiserror::Error)]
#[error("another service failed")]
pub struct OutboundError(#[source] Box<dyn StdError + Send + Sync>);

impl OutboundError {
    /// The error with this cause.
    pub fn new(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self(cause.into())
    }
}

/// A letter to one person, plain text.
#[derive(Clone, PartialEq, Eq)]
pub struct Letter {
    /// The address.
    pub to: String,
    /// What it is about, one line.
    pub subject: String,
    /// What it says.
    pub text: String,
}

impl std::fmt::Debug for Letter {
    /// Without the text, which holds a link that is as good as a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Letter")
            .field("subject", &self.subject)
            .finish_non_exhaustive()
    }
}

/// Carries letters.
pub trait Mail: Send + Sync {
    /// Hands a letter over; when this returns, somebody else answers for it.
    fn send<'a>(&'a self, letter: &'a Letter) -> OutboundFuture<'a, ()>;
}

/// An identity provider, as the sign-in page names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderName {
    /// Its name in addresses.
    pub id: String,
    /// Its name for people.
    pub label: String,
}

/// What belongs to one browser's trip to a provider and back.
#[derive(Clone, Debug)]
pub struct Trip {
    /// Where the browser comes back to.
    pub redirect_uri: String,
    /// What it must bring back (RFC 6749, section 10.12).
    pub state: String,
    /// What the identity token must hold (OpenID Connect Core 1.0, section 15.5.2).
    pub nonce: String,
    /// The code verifier (RFC 7636).
    pub verifier: Secret,
    /// The present.
    pub now: Timestamp,
}

/// Who somebody is elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalIdentity {
    /// The provider's own name for itself, an address.
    pub issuer: String,
    /// The person's name there, which never changes.
    pub subject: String,
    /// The address of e-mail, if the provider says that it is the person's.
    pub verified_email: Option<String>,
    /// What the person likes to be called.
    pub name: Option<String>,
}

/// Knows people by their accounts elsewhere.
pub trait IdentityProviders: Send + Sync {
    /// The providers that there are.
    fn names(&self) -> &[ProviderName];

    /// The address to which a browser is sent; none for a provider that there is not.
    fn begin<'a>(&'a self, provider: &'a str, trip: &'a Trip)
    -> OutboundFuture<'a, Option<String>>;

    /// Who came back with this code. Everything is checked: signature, issuer, audience, times and
    /// nonce of the identity token.
    fn complete<'a>(
        &'a self,
        provider: &'a str,
        code: &'a str,
        trip: &'a Trip,
    ) -> OutboundFuture<'a, ExternalIdentity>;
}
