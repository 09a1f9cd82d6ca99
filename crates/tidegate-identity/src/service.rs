//! Sign-in, sign-up and recovery, with one file for each task.

mod account_linking;
mod attempts;
mod browser;
mod email_sign_in;
mod external_member;
mod own_password;
mod passkeys;
mod password_login;
mod password_reset;
mod provider_login;
mod provider_sign_up;
mod sealed;
mod second_factor;
mod sign_in_link;
mod sign_up;

use std::fmt;
use std::net::IpAddr;

use ring::hmac;
use webauthn_rs_core::WebauthnCore;

pub use attempts::CountedAttempts;
pub use browser::{Browser, SignedIn};
pub use email_sign_in::{EmailSignIn, PendingSignIn};
pub use external_member::ExternalMember;
pub use passkeys::PasskeyRequest;
pub use password_login::LoginAttempt;
pub use provider_login::LoginPurpose;
pub use second_factor::Enrolment;
pub use sign_up::{SignUpApplication, SignUpLink, SignUpUser};

use attempts::PendingAttempts;

use crate::{
    AttemptKey, AuditEvent, AuditKind, MasterKey, Ports, RequestContext, Result, Settings, UserKey,
    rate_limit,
};

/// Authenticates the users of all tenants and manages their browser sessions.
pub struct IdentityService {
    ports: Ports,
    settings: Settings,
    master: MasterKey,
    form_key: hmac::Key,
    pending: PendingAttempts,
    /// The passkey library; `None` if browsers allow no passkeys at the URL of the service.
    passkeys: Option<WebauthnCore>,
}

impl IdentityService {
    /// A service for the users in the store of `ports`.
    pub fn new(ports: Ports, master: MasterKey, settings: Settings) -> Self {
        Self {
            form_key: master.form_key(),
            pending: PendingAttempts::default(),
            passkeys: passkeys::relying_party(settings.address()),
            ports,
            settings,
            master,
        }
    }

    /// A new, empty set of counted attempts for one request.
    pub fn attempts(&self) -> CountedAttempts<'_> {
        CountedAttempts::new(&self.ports, &self.pending)
    }

    /// A set of counted attempts for one request, in which one attempt from the request's address
    /// is counted. Without an address the set is empty.
    ///
    /// Errors: [`Error::TooManyAttempts`](crate::Error::TooManyAttempts).
    pub async fn attempts_from(&self, address: Option<IpAddr>) -> Result<CountedAttempts<'_>> {
        let mut attempts = self.attempts();
        if let Some(address) = address {
            let key = AttemptKey::of_address(rate_limit::ADDRESS, address);
            attempts.count(key, &self.settings.limits.address).await?;
        }
        Ok(attempts)
    }

    /// An audit event about a user, with the current time and the address of the request.
    fn event(&self, kind: AuditKind, key: &UserKey, context: &RequestContext) -> AuditEvent {
        AuditEvent::new(self.ports.clock.now(), kind, Some(&key.database))
            .with_user(&key.name)
            .with_address(context.address)
    }
}

impl fmt::Debug for IdentityService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdentityService")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
