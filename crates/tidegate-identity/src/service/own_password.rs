//! A user changes its own password.

use super::{Browser, IdentityService, LoginAttempt};
use crate::{Error, RequestContext, Result, Secret, UserDirectory};

impl IdentityService {
    /// Changes the user's password, which requires the current password. A user without a password
    /// may set a first password if the sign-in is recent. Ends all sessions of the user, including
    /// browser sessions, and returns a new cookie that keeps this browser signed in.
    ///
    /// Errors: [`Error::WrongCredentials`]; [`Error::ReauthenticationRequired`] for a first
    /// password if the sign-in is not recent; [`Error::TooManyAttempts`], [`Error::Busy`];
    /// [`Error::InvalidField`] unless the new password has 8 to 256 bytes.
    pub async fn change_own_password(
        &self,
        browser: &Browser,
        (current, new): (Option<&Secret>, &Secret),
        context: &RequestContext,
    ) -> Result<Secret> {
        let key = &browser.user.key;
        if browser.user.password_hash.is_none() {
            self.require_recent_sign_in(browser, None, context).await?;
        } else {
            let attempt = LoginAttempt {
                key: key.clone(),
                client_id: None,
                address: context.address,
            };
            let current = current.ok_or(Error::WrongCredentials)?;
            self.login_with_password(&attempt, current).await?;
        }
        let directory = UserDirectory::new(self.ports.clone());
        directory.set_password(key, new).await?;
        let store = &self.ports.store;
        let user = store.user(key).await?.ok_or(Error::NotFound("user"))?;
        store.delete_browser_session(browser.session.id).await?;
        self.open_browser_session(&user, context, browser.session.second_factor)
            .await
    }
}
