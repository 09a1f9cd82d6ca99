//! Sign-in by a passkey, without a name.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use webauthn_rs_core::error::WebauthnError;
use webauthn_rs_core::proto::{
    AuthenticationState, CollectedClientData, Credential, PublicKeyCredential,
    UserVerificationPolicy,
};

use super::registration::record;
use super::{IdentityService, PasskeyRequest, handle, refused};
use crate::{AuditKind, Error, Passkey, RequestContext, Result, Secret, User};

const SIGN_IN: &str = "sign-in with a passkey";
/// The maximum length in bytes that the specification allows for the id of a credential.
const MAX_ID: usize = 1023;
/// The detail of an audit event about a sign-in with a passkey.
const BY_PASSKEY: &str = "passkey";
/// The detail of an audit event if the signature counter did not grow. This may mean that a copy of
/// the passkey exists.
const COPIED: &str = "passkey, perhaps a copy";

impl IdentityService {
    /// The request for a sign-in without a user name; `None` if browsers allow no passkeys at the
    /// service's URL.
    pub fn begin_passkey_sign_in(&self, cookie: &Secret) -> Result<Option<PasskeyRequest>> {
        let Some(site) = &self.passkeys else {
            return Ok(None);
        };
        let required = Some(UserVerificationPolicy::Required);
        let wanted = site.new_challenge_authenticate_builder(Vec::new(), required);
        // This accepts a passkey that was not backed up when it was created and is backed up now. A
        // password manager can start to back up a passkey later.
        let wanted = wanted.map_err(refused)?.allow_backup_eligible_upgrade(true);
        let begun = site.generate_challenge_authenticate(wanted);
        let (challenge, state) = begun.map_err(refused)?;
        self.seal_request((SIGN_IN, cookie), (&challenge.public_key, state))
            .map(Some)
    }

    /// Signs in the user of a passkey, in the browser with `cookie`, if the user belongs to
    /// `database` (`None` for any database). Returns the browser's new cookie. The passkey counts
    /// as a second factor too.
    ///
    /// Errors: [`Error::WrongPasskey`]; [`Error::InvalidLink`] when the request is too old or a
    /// response to it was received before; [`Error::TooManyAttempts`].
    pub async fn sign_in_with_passkey(
        &self,
        (sealed, credential, cookie): (&str, &str, &Secret),
        (client_id, database): (Option<&str>, Option<&str>),
        context: &RequestContext,
    ) -> Result<Secret> {
        let attempts = self.attempts_from(context.address).await?;
        let state = self.open_request((SIGN_IN, cookie), sealed).await?;
        let response: PublicKeyCredential =
            serde_json::from_str(credential).map_err(|_| Error::WrongPasskey)?;
        let found = self.user_of_passkey(&response.raw_id).await?;
        let fits = |user: &User| database.is_none_or(|wanted| wanted == user.key.database);
        let found = found.filter(|(user, _)| fits(user));
        let (user, passkey) = found.ok_or(Error::WrongPasskey)?;
        let verified = self.verify_passkey((&response, &state), (&user, &passkey));
        let (kind, detail) = match verified.await? {
            Ok(()) => (AuditKind::SignedIn, BY_PASSKEY),
            Err(why) => (AuditKind::SignInFailed, why),
        };
        let event = self.event(kind, &user.key, context);
        let event = event.with_client(client_id).with_detail(detail);
        self.ports.audit(event).await;
        if kind == AuditKind::SignInFailed {
            return Err(Error::WrongPasskey);
        }
        attempts.refund().await?;
        self.open_browser_session(&user, context, true).await
    }

    async fn user_of_passkey(&self, id: &[u8]) -> Result<Option<(User, Passkey)>> {
        if id.len() > MAX_ID {
            return Ok(None);
        }
        let store = &self.ports.store;
        let Some((key, passkey)) = store.passkey(&URL_SAFE_NO_PAD.encode(id)).await? else {
            return Ok(None);
        };
        let user = store.user(&key).await?;
        let user = user.filter(|user| !user.default_user && !user.disabled);
        Ok(user.map(|user| (user, passkey)))
    }

    /// Verifies the response of an authenticator and stores its signature counter. If the response
    /// is refused, the inner error is the detail for the audit log.
    async fn verify_passkey(
        &self,
        (response, state): (&PublicKeyCredential, &AuthenticationState),
        (user, passkey): (&User, &Passkey),
    ) -> Result<Result<(), &'static str>> {
        let mut stored: Credential =
            serde_json::from_str(&passkey.record).map_err(|_| Error::DamagedSecret)?;
        let own = response.get_user_unique_id() == Some(&handle(user).as_bytes()[..]);
        if !own || is_from_a_frame(response) {
            return Ok(Err(BY_PASSKEY));
        }
        let site = self.passkey_site()?;
        let verified = match site.authenticate_single_credential(response, state, &stored) {
            Ok(verified) => verified,
            Err(WebauthnError::CredentialPossibleCompromise) => return Ok(Err(COPIED)),
            Err(_) => return Ok(Err(BY_PASSKEY)),
        };
        stored.counter = verified.counter();
        stored.backup_eligible = verified.backup_eligible();
        stored.backup_state = verified.backup_state();
        let (record, now) = (record(&stored)?, self.ports.clock.now());
        let replaced = self.ports.store.use_passkey(passkey, &record, now);
        // The record is not replaced if another request has removed or used the passkey since it
        // was read.
        Ok(replaced.await?.then_some(()).ok_or(BY_PASSKEY))
    }
}

/// Whether the page was in a frame of another site, according to the browser. The library checks
/// this for new passkeys only.
fn is_from_a_frame(response: &PublicKeyCredential) -> bool {
    let data = serde_json::from_slice::<CollectedClientData>(&response.response.client_data_json);
    data.is_ok_and(|data| data.cross_origin == Some(true))
}
