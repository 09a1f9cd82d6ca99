//! The account page: a user's sessions, browsers, linked accounts and password.

use super::Issuer;
use crate::identity::LoginAttempt;
use crate::{
    Browser, BrowserSession, Directory, EndReason, Error, LinkedIdentity, RequestContext, Result,
    Secret, Session, SessionId,
};

/// What the account page shows about a user.
#[derive(Clone, Debug)]
pub struct Account {
    /// The sessions of applications and devices, each with the client's name.
    pub sessions: Vec<(Session, String)>,
    /// The browsers that are signed in.
    pub browsers: Vec<BrowserSession>,
    /// The number of unused recovery codes; `None` without a second factor.
    pub recovery_codes: Option<u64>,
    /// The linked accounts of identity providers.
    pub identities: Vec<LinkedIdentity>,
}

impl Issuer {
    /// The account of the user who is signed in in `browser`.
    pub async fn account(&self, browser: &Browser) -> Result<Account> {
        let (store, now) = (&self.ports.store, self.ports.clock.now());
        let key = &browser.user.key;
        let clients = store.clients(&key.database).await?;
        let name = |id: &str| {
            let client = clients.iter().find(|client| client.id == id);
            client.map_or_else(|| id.to_owned(), |client| client.name.clone())
        };
        let sessions = store.sessions_of_user(key, now).await?;
        Ok(Account {
            sessions: sessions
                .into_iter()
                .map(|session| {
                    let name = name(&session.client_id);
                    (session, name)
                })
                .collect(),
            browsers: store.browser_sessions_of_user(key, now).await?,
            recovery_codes: self.identity.second_factor_of(key).await?,
            identities: store.identities_of_user(key).await?,
        })
    }

    /// Ends one of the user's own sessions; [`Error::NotFound`] for any other session.
    pub async fn end_own_session(
        &self,
        browser: &Browser,
        id: SessionId,
        context: &RequestContext,
    ) -> Result<()> {
        let session = self.ports.store.session(id).await?;
        let session = session
            .filter(|session| session.user == browser.user.key)
            .ok_or(Error::NotFound("session"))?;
        let client = self.client(&session.client_id).await?;
        let client = client.ok_or(Error::NotFound("session"))?;
        let cx = self.grant_context(&client, context.address);
        self.end_session(&cx, id, EndReason::UserEnded).await
    }

    /// Changes the user's password. Needs the current password; a user without a password may set a
    /// first one soon after signing in with an identity provider. Ends all sessions of the user,
    /// including browser sessions, and returns a new cookie that keeps this browser signed in.
    ///
    /// [`Error::WrongCredentials`]; [`Error::ReauthenticationRequired`] for a first password;
    /// [`Error::InvalidMember`] unless the new one has 8 to 256 bytes.
    pub async fn change_own_password(
        &self,
        browser: &Browser,
        (current, new): (Option<&Secret>, &Secret),
        context: &RequestContext,
    ) -> Result<Secret> {
        let key = &browser.user.key;
        if browser.user.password_hash.is_none() {
            self.identity
                .require_recent_sign_in(browser, None, context)
                .await?;
        } else {
            let attempt = LoginAttempt {
                key: key.clone(),
                client_id: None,
                address: context.address,
            };
            let current = current.ok_or(Error::WrongCredentials)?;
            self.identity.login_with_password(&attempt, current).await?;
        }
        let directory = Directory::new(self.ports.clone());
        directory.set_password(key, new).await?;
        self.refresh_denylist().await?;
        let store = &self.ports.store;
        let user = store.user(key).await?.ok_or(Error::NotFound("user"))?;
        store.delete_browser_session(browser.session.id).await?;
        self.identity
            .open_browser_session(&user, context, browser.session.second_factor)
            .await
    }

    /// Sets the password of the link's user and ends all sessions of the user, including browser
    /// sessions.
    ///
    /// [`Error::InvalidLink`], [`Error::InvalidMember`] unless it has 8 to 256 bytes.
    pub async fn reset_password(
        &self,
        token: &str,
        new: &Secret,
        context: &RequestContext,
    ) -> Result<()> {
        let key = self.identity.reset_user(token).await?;
        let directory = Directory::new(self.ports.clone());
        let directory = directory.acting_as(&key.name, context.address);
        directory.set_password(&key, new).await?;
        self.refresh_denylist().await
    }
}
