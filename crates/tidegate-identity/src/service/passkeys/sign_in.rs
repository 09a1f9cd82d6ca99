//! Sign-in by a passkey, without a name.

use passki::{
    AuthenticationCredential, AuthenticationOptions, AuthenticationState, StoredPasskey,
    UserVerificationRequirement,
};

use super::{IdentityService, MAX_ID, PasskeyRequest, handle};
use crate::{AuditKind, Error, Passkey, RequestContext, Result, Secret, User};

const SIGN_IN: &str = "sign-in with a passkey";

impl IdentityService {
    /// The question by which any person signs in; `None` where browsers allow no
    /// passkeys.
    pub fn begin_passkey_sign_in(&self, cookie: &Secret) -> Result<Option<PasskeyRequest>> {
        let Some(site) = &self.passkeys else {
            return Ok(None);
        };
        let mut options = AuthenticationOptions::default();
        options.user_verification = UserVerificationRequirement::Required;
        let begun = site.start_passkey_authentication(&[], options);
        let (options, state) = begun.map_err(|_| Error::NoRandomness)?;
        self.ask((SIGN_IN, cookie), (&options, state)).map(Some)
    }

    /// Signs in the user of a passkey, in the browser with `cookie`, if it is a user of `database`
    /// (`None` for any). Returns the browser's new cookie. The passkey counts as a second factor
    /// too.
    ///
    /// Errors: [`Error::WrongPasskey`]; [`Error::InvalidLink`] when the question is too old;
    /// [`Error::TooManyAttempts`].
    pub async fn sign_in_with_passkey(
        &self,
        (sealed, credential, cookie): (&str, &str, &Secret),
        (client_id, database): (Option<&str>, Option<&str>),
        context: &RequestContext,
    ) -> Result<Secret> {
        let attempts = self.attempts_from(context.address).await?;
        let state = self.asked((SIGN_IN, cookie), sealed).await?;
        let answer: AuthenticationCredential =
            serde_json::from_str(credential).map_err(|_| Error::WrongPasskey)?;
        let found = self.user_of_passkey(&answer.raw_id).await?;
        let fits = |user: &User| database.is_none_or(|wanted| wanted == user.key.database);
        let found = found.filter(|(user, _)| fits(user));
        let (user, passkey) = found.ok_or(Error::WrongPasskey)?;
        if let Err(error) = self
            .verify_passkey((&answer, &state), (&user, &passkey))
            .await
        {
            let event = self.event(AuditKind::SignInFailed, &user.key, context);
            let event = event.with_client(client_id).with_detail("passkey");
            self.ports.audit(event).await;
            return Err(error);
        }
        attempts.refund().await?;
        let event = self.event(AuditKind::SignedIn, &user.key, context);
        let event = event.with_client(client_id).with_detail("passkey");
        self.ports.audit(event).await;
        self.open_browser_session(&user, context, true).await
    }

    async fn user_of_passkey(&self, id: &str) -> Result<Option<(User, Passkey)>> {
        if id.len() > MAX_ID {
            return Ok(None);
        }
        let store = &self.ports.store;
        let Some((key, passkey)) = store.passkey(id).await? else {
            return Ok(None);
        };
        let user = store.user(&key).await?.filter(|user| !user.default_user);
        Ok(user.map(|user| (user, passkey)))
    }

    /// Verifies the answer of an authenticator and stores its counter of signatures.
    async fn verify_passkey(
        &self,
        (answer, state): (&AuthenticationCredential, &AuthenticationState),
        (user, passkey): (&User, &Passkey),
    ) -> Result<()> {
        let mut stored: StoredPasskey =
            serde_json::from_str(&passkey.record).map_err(|_| Error::DamagedSecret)?;
        let site = self.passkey_site()?;
        let verified = site.finish_passkey_authentication(answer, state, &stored);
        let verified = verified.map_err(|_| Error::WrongPasskey)?;
        let own = verified.user_handle.as_deref() == Some(&handle(user).as_bytes()[..]);
        if !own {
            return Err(Error::WrongPasskey);
        }
        stored.counter = verified.counter;
        let now = self.ports.clock.now();
        let record = serde_json::to_string(&stored).map_err(|_| Error::DamagedSecret)?;
        let replaced = self.ports.store.use_passkey(passkey, &record, now);
        // It fails if the passkey was removed or used by another request meanwhile.
        replaced.await?.then_some(()).ok_or(Error::WrongPasskey)
    }
}
