//! The identity of users: passwords, browser sessions, second factors, linked accounts, password
//! resets. It uses no client, grant or token; the issuer builds on it.

mod account_linking;
mod attempts;
mod browser;
mod password_login;
mod password_reset;
mod provider_login;
mod sealed;
mod second_factor;
mod sign_in_link;

use std::fmt;

use ring::hmac;

pub use browser::Browser;
pub(crate) use password_login::LoginAttempt;
pub(crate) use provider_login::LoginPurpose;
pub use second_factor::Enrolment;

use attempts::{CountedAttempts, PendingAttempts};

use crate::{
    AttemptScope, AuditEvent, AuditKind, MasterKey, Ports, RequestContext, Result, Settings,
    rate_limit,
};

/// Authenticates the users of all tenants and keeps their browser sessions.
pub struct Identity {
    ports: Ports,
    settings: Settings,
    master: MasterKey,
    form_key: hmac::Key,
    pending: PendingAttempts,
}

impl Identity {
    pub(crate) fn new(ports: Ports, master: MasterKey, settings: Settings) -> Self {
        Self {
            form_key: master.form_key(),
            pending: PendingAttempts::default(),
            ports,
            settings,
            master,
        }
    }

    /// An audit event with the current time.
    pub(crate) fn event(&self, kind: AuditKind, database: Option<&str>) -> AuditEvent {
        AuditEvent::new(self.ports.clock.now(), kind, database)
    }

    /// A guard for the attempts of one request.
    pub(crate) fn attempts(&self) -> CountedAttempts<'_> {
        CountedAttempts::new(&*self.ports.store, &*self.ports.clock, &self.pending)
    }

    /// Counts a sign-up. Never refunded: sign-ups reveal which names are taken.
    pub(crate) async fn count_sign_up(&self, context: &RequestContext) -> Result<()> {
        let Some(address) = context.address else {
            return Ok(());
        };
        let key = rate_limit::address(AttemptScope::SignUp, address);
        let limit = &self.settings.limits.sign_up;
        self.attempts().count(key, limit).await
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
