//! The account page: a user's sessions, browsers, linked accounts and password.

use tidegate_identity::{
    Browser, BrowserSession, EndReason, Error as IdentityError, LinkedIdentity, Passkey,
    RequestContext, Secret, SessionId,
};

use super::Issuer;
use crate::{Consent, Result, Session};

/// The data about a user that the account page shows.
#[derive(Clone, Debug)]
pub struct Account {
    /// The sessions of applications and devices, each with the client's name.
    pub sessions: Vec<(Session, String)>,
    /// The consents that the user gave to applications, each with the client's name.
    pub consents: Vec<(Consent, String)>,
    /// The browsers that are signed in.
    pub browsers: Vec<BrowserSession>,
    /// The number of unused recovery codes; `None` without a second factor.
    pub recovery_codes: Option<u64>,
    /// The linked accounts of identity providers.
    pub identities: Vec<LinkedIdentity>,
    /// The user's passkeys; `None` if browsers allow no passkeys at the issuer's URL.
    pub passkeys: Option<Vec<Passkey>>,
}

impl Issuer {
    /// The account of the user who is signed in in `browser`.
    pub async fn account(&self, browser: &Browser) -> Result<Account> {
        let (store, now) = (&self.ports.store, self.ports.clock.now());
        let key = &browser.user.key;
        let clients = store.clients(&key.database).await?;
        let name = |id: &str| {
            let client = clients.iter().find(|client| client.id == id).cloned();
            let client = client.or_else(|| self.settings.builtin.find(id));
            client.map_or_else(|| id.to_owned(), |client| client.name)
        };
        let sessions = store.sessions_of_user(key, None, now).await?;
        let consents = store.consents_of_user(key).await?;
        let passkeys = if self.identity.has_passkeys() {
            Some(self.identity.passkeys_of(key).await?)
        } else {
            None
        };
        Ok(Account {
            sessions: sessions
                .into_iter()
                .map(|session| {
                    let name = match &session.personal {
                        Some(token) => token.name.clone(),
                        None => name(&session.client_id),
                    };
                    (session, name)
                })
                .collect(),
            consents: consents
                .into_iter()
                .map(|consent| {
                    let name = name(&consent.client_id);
                    (consent, name)
                })
                .collect(),
            browsers: store.browser_sessions_of_user(key, now).await?,
            recovery_codes: self.identity.second_factor_of(key).await?,
            identities: store.identities_of_user(key).await?,
            passkeys,
        })
    }

    /// Ends one of the user's own sessions; [`IdentityError::NotFound`] for any other session.
    pub async fn end_own_session(
        &self,
        browser: &Browser,
        id: SessionId,
        context: &RequestContext,
    ) -> Result<()> {
        let session = self.ports.store.session(id).await?;
        let session = session
            .filter(|session| session.user == browser.user.key)
            .ok_or(IdentityError::NotFound("session"))?;
        if session.personal.is_some() {
            let own = Some(browser.user.key.name.as_str());
            return self
                .revoke_personal_token(&session, (own, context.address))
                .await;
        }
        let client = self.client(&session.client_id).await?;
        let client = client.ok_or(IdentityError::NotFound("session"))?;
        let cx = self.grant_context(&client, context.address);
        self.end_session(&cx, id, EndReason::UserEnded).await
    }

    /// Changes the user's password with [`IdentityService::change_own_password`], which ends the
    /// user's sessions. Then refreshes the denylist, so that this node refuses the tokens of the
    /// ended sessions. Returns the browser's new cookie.
    ///
    /// [`IdentityService::change_own_password`]:
    /// tidegate_identity::IdentityService::change_own_password
    pub async fn change_own_password(
        &self,
        browser: &Browser,
        passwords: (Option<&Secret>, &Secret),
        context: &RequestContext,
    ) -> Result<Secret> {
        let changed = self
            .identity
            .change_own_password(browser, passwords, context);
        let changed = changed.await;
        // The refresh runs after an error too, because sessions may have ended before the error.
        self.refresh_denylist().await?;
        Ok(changed?)
    }

    /// Sets a password with [`IdentityService::reset_password`], which ends the user's sessions. If
    /// `only_password` is true, also removes the user's passkeys and linked accounts. Then
    /// refreshes the denylist, so that this node refuses the tokens of the ended sessions.
    ///
    /// [`IdentityService::reset_password`]: tidegate_identity::IdentityService::reset_password
    pub async fn reset_password(
        &self,
        token: &str,
        (new, only_password): (&Secret, bool),
        context: &RequestContext,
    ) -> Result<()> {
        let new = (new, only_password);
        let reset = self.identity.reset_password(token, new, context).await;
        // The refresh runs after an error too, because sessions may have ended before the error.
        self.refresh_denylist().await?;
        Ok(reset?)
    }
}
