//! Consent of users to the requests of clients: when it is needed, stored and withdrawn.

use super::{AuthorizationRequest, Issuer, Prompt};
use crate::{ClientAuthentication, Consent, Result, redirect};
use tidegate_identity::{AuditKind, Browser, EndReason, Error as IdentityError, RequestContext};

impl Issuer {
    /// Whether the user must be asked for consent before this request is granted. Consent is stored
    /// with the scopes of the request, so the user is not asked again for the same scopes. A client
    /// without `confirm` needs no consent.
    ///
    /// With `prompt=consent` the user is always asked, also for a client without `confirm`.
    ///
    /// A consent is not reused if a public client with `confirm` redirects to a program on the
    /// user's device. The user is asked each time, because another program could send the same
    /// request (RFC 8252, section 8.6).
    pub async fn needs_consent(
        &self,
        request: &AuthorizationRequest,
        browser: &Browser,
    ) -> Result<bool> {
        if request.openid.asks(Prompt::Consent) {
            return Ok(true);
        }
        if !request.client.confirm {
            return Ok(false);
        }
        if !is_remembered(request) {
            return Ok(true);
        }
        let store = &self.ports.store;
        let known = store.consent(&browser.user.key, &request.client.id).await?;
        Ok(known.is_none_or(|known| !known.scopes.covers(request.scopes)))
    }

    /// Stores the user's consent to the scopes of the request, in addition to earlier scopes. Does
    /// nothing for a client without `confirm`, or if consent to this request is not stored (see
    /// `is_remembered`).
    pub(crate) async fn remember_consent(
        &self,
        request: &AuthorizationRequest,
        browser: &Browser,
    ) -> Result<()> {
        if !request.client.confirm || !is_remembered(request) {
            return Ok(());
        }
        let (store, key) = (&self.ports.store, &browser.user.key);
        let known = store.consent(key, &request.client.id).await?;
        let scopes = match known {
            Some(known) if known.scopes.covers(request.scopes) => return Ok(()),
            Some(known) => known.scopes.union(request.scopes),
            None => request.scopes,
        };
        let consent = Consent {
            client_id: request.client.id.clone(),
            scopes,
            given_at: self.ports.clock.now(),
        };
        Ok(store.put_consent(key, &consent).await?)
    }

    /// Deletes the user's consent to a client together with codes that are not redeemed yet, and
    /// ends the user's sessions of this client.
    ///
    /// Errors: [`IdentityError::NotFound`] if the user gave the client no consent.
    pub async fn withdraw_consent(
        &self,
        browser: &Browser,
        client_id: &str,
        context: &RequestContext,
    ) -> Result<()> {
        let (store, key) = (&self.ports.store, &browser.user.key);
        if !store.delete_consent(key, client_id).await? {
            return Err(IdentityError::NotFound("consent").into());
        }
        let event = self
            .ports
            .event(AuditKind::ConsentWithdrawn, Some(&key.database))
            .with_user(&key.name)
            .with_client(Some(client_id))
            .with_address(context.address);
        self.ports.audit(event).await;
        let now = self.ports.clock.now();
        loop {
            let sessions = store.sessions_of_user(key, Some(client_id), now).await?;
            if sessions.is_empty() {
                return Ok(());
            }
            for session in sessions {
                let reason = EndReason::UserEnded;
                store.end_session(session.id, reason, now).await?;
                self.denylist.add(session.id, now);
            }
        }
    }
}

/// Whether consent to this request is stored for later requests. It is stored only if no program
/// other than the client can use the response.
fn is_remembered(request: &AuthorizationRequest) -> bool {
    request.client.authentication != ClientAuthentication::Public
        || redirect::is_remote(&request.redirect_uri)
}
