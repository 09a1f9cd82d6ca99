//! The account page: what is open in a user's name, and the user's password.

use super::{Browser, Claimed, Issuer};
use crate::{
    BrowserSession, Directory, EndReason, Error, LinkedIdentity, Result, Secret, Session,
    SessionId, Visit,
};

/// What is open in a user's name.
#[derive(Clone, Debug)]
pub struct Account {
    /// The applications and devices with their tokens, each with the client's name.
    pub sessions: Vec<(Session, String)>,
    /// The browsers.
    pub browsers: Vec<BrowserSession>,
    /// How many recovery codes are left, if there is a second factor.
    pub recovery_codes: Option<u64>,
    /// The accounts elsewhere with which the user signs in.
    pub identities: Vec<LinkedIdentity>,
}

impl Issuer {
    /// What is open in the name of whoever is signed in in `browser`.
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
            recovery_codes: self.second_factor_of(key).await?,
            identities: store.identities_of_user(key).await?,
        })
    }

    /// Ends one of the user's own sessions; [`Error::NotFound`] for any other.
    pub async fn end_own_session(
        &self,
        browser: &Browser,
        id: SessionId,
        visit: &Visit,
    ) -> Result<()> {
        let session = self.ports.store.session(id).await?;
        let session = session
            .filter(|session| session.user == browser.user.key)
            .ok_or(Error::NotFound("session"))?;
        let client = self.ports.store.client(&session.client_id).await?;
        let client = client.ok_or(Error::NotFound("session"))?;
        let cx = self.exchange(&client, visit.address);
        self.end_session(&cx, id, EndReason::UserEnded).await
    }

    /// Ends one of the user's own browser sessions, by the name of its id; [`Error::NotFound`] for
    /// any other.
    pub async fn end_own_browser(&self, browser: &Browser, name: &str) -> Result<()> {
        let (store, now) = (&self.ports.store, self.ports.clock.now());
        let own = store
            .browser_sessions_of_user(&browser.user.key, now)
            .await?;
        let found = own
            .iter()
            .find(|session| session.id.to_base64url() == name)
            .ok_or(Error::NotFound("browser"))?;
        store.delete_browser_session(found.id).await?;
        Ok(())
    }

    /// Gives the user another password, after the one in use was shown, or a first one soon after
    /// a sign-in with an account elsewhere; ends every session of the user, in browsers too.
    /// Returns a cookie with which this browser stays signed in.
    ///
    /// [`Error::WrongCredentials`], [`Error::StaleSignIn`] for a first one,
    /// [`Error::InvalidMember`] unless it has 8 to 256 bytes.
    pub async fn change_own_password(
        &self,
        browser: &Browser,
        (current, new): (Option<&Secret>, &Secret),
        visit: &Visit,
    ) -> Result<Secret> {
        let key = &browser.user.key;
        if browser.user.password_hash.is_none() {
            self.confirm(browser, None, visit).await?;
        } else {
            let claimed = Claimed {
                key: key.clone(),
                client_id: None,
                address: visit.address,
            };
            let current = current.ok_or(Error::WrongCredentials)?;
            self.prove(&claimed, current).await?;
        }
        let directory = Directory::new(self.ports.clone());
        directory.set_password(key, new).await?;
        self.refresh_denylist().await?;
        let store = &self.ports.store;
        let user = store.user(key).await?.ok_or(Error::NotFound("user"))?;
        store.delete_browser_session(browser.session.id).await?;
        self.open_browser(&user, visit, browser.session.second_factor)
            .await
    }
}
