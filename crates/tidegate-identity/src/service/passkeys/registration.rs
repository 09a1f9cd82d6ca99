//! Adding a passkey to a user who is signed in.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use webauthn_rs_core::proto::{
    AttestationFormat, AttestationMetadata, CreationChallengeResponse, Credential,
    ParsedAttestation, ParsedAttestationData, PublicKeyCredentialDescriptor,
    RegisterPublicKeyCredential, RegistrationState, UserVerificationPolicy,
};

use super::{IdentityService, PasskeyRequest, handle, refused};
use crate::service::Browser;
use crate::{AuditKind, Email, Error, Passkey, RequestContext, Result, Secret, SecretHash, User};

const REGISTRATION: &str = "registration of a passkey";

/// The state of a registration. The form contains it, encrypted, until the authenticator has
/// responded.
#[derive(Serialize, Deserialize)]
struct Registration {
    /// The user handle ([`handle`]) of the user for whom the passkey is created.
    user: String,
    state: RegistrationState,
}

impl IdentityService {
    /// Returns the request with which an authenticator creates a passkey for the user who is signed
    /// in in `browser`. Requires a recent sign-in or the password, because an unattended browser
    /// must not suffice.
    ///
    /// Errors: [`Error::NotFound`] if the service's URL allows no passkeys; [`Error::Taken`] if the
    /// user has the maximum number of passkeys; [`Error::ReauthenticationRequired`] if the sign-in
    /// is not recent and no password is given; those of a sign-in with the password.
    pub async fn begin_passkey(
        &self,
        (browser, cookie): (&Browser, &Secret),
        password: Option<&Secret>,
        context: &RequestContext,
    ) -> Result<PasskeyRequest> {
        self.passkey_site()?;
        self.require_recent_sign_in(browser, password, context)
            .await?;
        let user = &browser.user;
        let known = self.passkeys_of(&user.key).await?;
        if known.len() >= Passkey::MAX_COUNT {
            return Err(Error::Taken("passkey"));
        }
        let id = handle(user);
        let (mut challenge, state) = self.new_challenge(user, id)?;
        // The excluded credentials keep the browser from creating a second passkey in the same
        // authenticator. They are not passed to the library, because it would report a known
        // passkey as a forgery. The store refuses a known passkey later.
        let known = known.iter().filter_map(descriptor).collect();
        challenge.public_key.exclude_credentials = Some(known);
        let user = id.to_base64url();
        let registration = Registration { user, state };
        let parts = (&challenge.public_key, registration);
        self.seal_request((REGISTRATION, cookie), parts)
    }

    fn new_challenge(
        &self,
        user: &User,
        id: SecretHash,
    ) -> Result<(CreationChallengeResponse, RegistrationState)> {
        let (site, shown) = (self.passkey_site()?, user.key.to_string());
        let wanted = site.new_challenge_register_builder(id.as_bytes(), &user.key.name, &shown);
        let wanted = wanted.map_err(refused)?;
        let wanted = wanted.user_verification_policy(UserVerificationPolicy::Required);
        let wanted = wanted.require_resident_key(true);
        site.generate_challenge_register(wanted).map_err(refused)
    }

    /// Stores a new passkey, named `name`, of the user who is signed in in `browser`. Returns the
    /// message that informs the user; `None` if the user has no email address.
    ///
    /// Errors: [`Error::WrongPasskey`]; [`Error::InvalidLink`] when the request is too old or a
    /// response to it was received before; [`Error::Taken`] when the passkey is known already, or
    /// when the user has the maximum number.
    pub async fn add_passkey(
        &self,
        (browser, cookie): (&Browser, &Secret),
        (sealed, credential, name): (&str, &str, &str),
        context: &RequestContext,
    ) -> Result<Option<Email>> {
        let begun: Registration = self.open_request((REGISTRATION, cookie), sealed).await?;
        let response: RegisterPublicKeyCredential =
            serde_json::from_str(credential).map_err(|_| Error::WrongPasskey)?;
        let user = &browser.user;
        if begun.user != handle(user).to_base64url() {
            return Err(Error::WrongPasskey);
        }
        let site = self.passkey_site()?;
        let made = site.register_credential(&response, &begun.state, None);
        let made = made.map_err(refused)?;
        let passkey = Passkey {
            id: URL_SAFE_NO_PAD.encode(&made.cred_id),
            name: name.to_owned(),
            record: record(&without_attestation(made))?,
            created_at: self.ports.clock.now(),
            used_at: None,
        };
        // The store checks the number of passkeys again, because several requests can be sent
        // before the first response arrives.
        if !self.ports.store.insert_passkey(&user.key, &passkey).await? {
            return Err(Error::Taken("passkey"));
        }
        self.audit_passkey((AuditKind::PasskeyAdded, &passkey.name), user, context)
            .await;
        let news = "can be used to sign in as you from now on";
        Ok(self.passkey_email(user, (&passkey.name, news)))
    }
}

fn descriptor(passkey: &Passkey) -> Option<PublicKeyCredentialDescriptor> {
    Some(PublicKeyCredentialDescriptor {
        type_: "public-key".to_owned(),
        id: URL_SAFE_NO_PAD.decode(&passkey.id).ok()?,
        transports: None,
    })
}

/// Removes the attestation (certificates of the authenticator's manufacturer), which was not
/// requested.
fn without_attestation(made: Credential) -> Credential {
    Credential {
        attestation: ParsedAttestation {
            data: ParsedAttestationData::None,
            metadata: AttestationMetadata::None,
        },
        attestation_format: AttestationFormat::None,
        ..made
    }
}

/// The stored form of a credential, as JSON.
pub(super) fn record(credential: &Credential) -> Result<String> {
    serde_json::to_string(credential).map_err(|_| Error::DamagedSecret)
}
