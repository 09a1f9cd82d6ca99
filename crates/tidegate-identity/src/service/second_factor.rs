//! Enrolment, verification and removal of a second factor.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use data_encoding::BASE32_NOPAD;
use zeroize::Zeroizing;

use super::{Browser, IdentityService, LoginAttempt};
use crate::rate_limit;
use crate::second_factor::RecoveryCode;
use crate::totp::{SECRET_BYTES, Totp};
use crate::{
    AuditKind, Error, RequestContext, Result, SecondFactor, Secret, SecretHash, UserKey,
    percent_encode,
};

/// A second factor that is being set up. Nothing is stored until the first code is right.
#[derive(Clone, Debug)]
pub struct Enrolment {
    /// The TOTP secret, encrypted for this user, which the form sends back.
    pub sealed: String,
    /// The TOTP secret in base32, to enter by hand.
    pub secret: Secret,
    /// The `otpauth:` URI with the secret, for the QR code.
    pub uri: Secret,
}

impl IdentityService {
    /// Starts an enrolment for the user who is signed in in `browser`. Requires a recent sign-in or
    /// the password, because [`enrol`](Self::enrol) opens a new browser session, which counts as a
    /// recent sign-in.
    ///
    /// Errors: [`Error::ReauthenticationRequired`] if the sign-in is not recent and no password is
    /// given; the errors of [`login_with_password`](Self::login_with_password).
    pub async fn begin_enrolment(
        &self,
        browser: &Browser,
        password: Option<&Secret>,
        context: &RequestContext,
    ) -> Result<Enrolment> {
        self.require_recent_sign_in(browser, password, context)
            .await?;
        let (key, random) = (&browser.user.key, &*self.ports.random);
        let bytes: [u8; SECRET_BYTES] = random.bytes()?;
        let sealed = self.master.seal(&label(key), &bytes, random)?;
        Ok(enrolment(key, &bytes, URL_SAFE_NO_PAD.encode(sealed)))
    }

    /// Continues an enrolment with the sealed secret of an earlier form.
    ///
    /// Errors: [`Error::Malformed`] when `sealed` was not made for this user.
    pub fn resume_enrolment(&self, key: &UserKey, sealed: &str) -> Result<Enrolment> {
        let secret = self.unseal(key, sealed)?;
        Ok(enrolment(key, &secret, sealed.to_owned()))
    }

    fn unseal(&self, key: &UserKey, sealed: &str) -> Result<Zeroizing<Vec<u8>>> {
        let opened = URL_SAFE_NO_PAD.decode(sealed).ok();
        let opened = opened.and_then(|sealed| self.master.open(&label(key), &sealed).ok());
        opened.ok_or(Error::Malformed {
            part: "sealed",
            expected: "what the page gave",
        })
    }

    /// Stores the second factor of the user who is signed in in `browser`, if `code` is right.
    /// Returns the recovery codes, which are shown only once, and the browser's new cookie.
    ///
    /// Errors: [`Error::WrongSecondFactor`]; [`Error::Malformed`] when `sealed` was not made for
    /// this user; [`Error::Taken`] when the user has a second factor already;
    /// [`Error::TooManyAttempts`].
    pub async fn enrol(
        &self,
        browser: &Browser,
        (sealed, code): (&str, &str),
        context: &RequestContext,
    ) -> Result<(Vec<Secret>, Secret)> {
        let key = &browser.user.key;
        let limit = &self.settings.limits.second_factor;
        let mut attempts = self.attempts();
        attempts
            .count(rate_limit::second_factor(key), limit)
            .await?;
        let totp = Totp::new(self.unseal(key, sealed)?);
        let step = totp
            .step_of(code, self.ports.clock.now())
            .ok_or(Error::WrongSecondFactor)?;
        let random = &*self.ports.random;
        let factor = SecondFactor {
            sealed_secret: self.master.seal(&label(key), totp.secret(), random)?,
            used_step: step,
            recovery_codes: RecoveryCode::COUNT as u64,
        };
        let codes = (0..RecoveryCode::COUNT).map(|_| RecoveryCode::generate(random));
        let codes: Vec<_> = codes.collect::<Result<_>>()?;
        let hashes: Vec<_> = codes.iter().map(RecoveryCode::hash).collect();
        let store = &self.ports.store;
        if !store.insert_second_factor(key, &factor, &hashes).await? {
            return Err(Error::Taken("second factor"));
        }
        attempts.refund().await?;
        self.audit_user_event(AuditKind::SecondFactorAdded, key, context)
            .await;
        let cookie = self.renew_with_second_factor(browser, context).await?;
        Ok((codes.iter().map(RecoveryCode::display).collect(), cookie))
    }

    /// Verifies the second factor of the user who is signed in in `browser`: a TOTP code, which can
    /// be used once, or a recovery code. Returns the browser's new cookie.
    ///
    /// Errors: [`Error::WrongSecondFactor`], [`Error::TooManyAttempts`].
    pub async fn verify_second_factor(
        &self,
        browser: &Browser,
        code: &str,
        context: &RequestContext,
    ) -> Result<Secret> {
        let key = &browser.user.key;
        self.check_second_factor(key, code, context).await?;
        self.renew_with_second_factor(browser, context).await
    }

    /// Checks a code of the user's second factor, and marks it as used. Counts an attempt, and
    /// refunds it if the code is right.
    async fn check_second_factor(
        &self,
        key: &UserKey,
        code: &str,
        context: &RequestContext,
    ) -> Result<()> {
        let limit = &self.settings.limits.second_factor;
        let mut attempts = self.attempts();
        attempts
            .count(rate_limit::second_factor(key), limit)
            .await?;
        if !self.is_second_factor(key, code, context).await? {
            self.audit_user_event(AuditKind::SecondFactorFailed, key, context)
                .await;
            return Err(Error::WrongSecondFactor);
        }
        attempts.refund().await
    }

    /// Whether `code` is a valid code of the user's second factor. Marks a valid code as used.
    async fn is_second_factor(
        &self,
        key: &UserKey,
        code: &str,
        context: &RequestContext,
    ) -> Result<bool> {
        let store = &self.ports.store;
        let Some(factor) = store.second_factor(key).await? else {
            return Ok(false);
        };
        let secret = self.master.open(&label(key), &factor.sealed_secret)?;
        if let Some(step) = Totp::new(secret).step_of(code, self.ports.clock.now()) {
            return Ok(store.use_second_factor_step(key, step).await?);
        }
        let Some(code) = RecoveryCode::parse(code) else {
            return Ok(false);
        };
        let used = store.use_recovery_code(key, code.hash()).await?;
        if used {
            self.audit_user_event(AuditKind::RecoveryCodeUsed, key, context)
                .await;
        }
        Ok(used)
    }

    /// Removes the second factor of the user who is signed in in `browser`. `proof` is the user's
    /// password, or a code as for [`verify_second_factor`](Self::verify_second_factor). A user
    /// without a password needs a code. The proof is required because access to an unattended
    /// browser must not suffice.
    ///
    /// Errors: [`Error::SecondFactorRequired`] unless the factor was verified in this browser;
    /// [`Error::WrongCredentials`], [`Error::WrongSecondFactor`], [`Error::TooManyAttempts`],
    /// [`Error::Busy`].
    pub async fn remove_second_factor(
        &self,
        browser: &Browser,
        proof: &Secret,
        context: &RequestContext,
    ) -> Result<()> {
        if !browser.session.second_factor {
            return Err(Error::SecondFactorRequired);
        }
        let key = &browser.user.key;
        // A text of at most 6 bytes is checked as a TOTP code. Passwords that are set in this
        // service have at least 8 bytes.
        let text = proof.expose().trim();
        let code = text.len() <= 6 || RecoveryCode::parse(text).is_some();
        if code || browser.user.password_hash.is_none() {
            self.check_second_factor(key, text, context).await?;
        } else {
            let attempt = LoginAttempt {
                key: key.clone(),
                client_id: None,
                address: context.address,
            };
            self.login_with_password(&attempt, proof).await?;
        }
        if self.ports.store.delete_second_factor(key).await? {
            self.audit_user_event(AuditKind::SecondFactorRemoved, key, context)
                .await;
        }
        Ok(())
    }

    /// Replaces the browser session by a new session in which the second factor is verified.
    /// Returns the new cookie.
    async fn renew_with_second_factor(
        &self,
        browser: &Browser,
        context: &RequestContext,
    ) -> Result<Secret> {
        let store = &self.ports.store;
        let cookie = self
            .open_browser_session(&browser.user, context, true)
            .await?;
        store.delete_browser_session(browser.session.id).await?;
        Ok(cookie)
    }

    async fn audit_user_event(&self, kind: AuditKind, key: &UserKey, context: &RequestContext) {
        self.ports.audit(self.event(kind, key, context)).await;
    }

    /// The number of unused recovery codes; `None` without a second factor.
    pub async fn second_factor_of(&self, key: &UserKey) -> Result<Option<u64>> {
        let factor = self.ports.store.second_factor(key).await?;
        Ok(factor.map(|factor| factor.recovery_codes))
    }
}

fn enrolment(key: &UserKey, secret: &[u8], sealed: String) -> Enrolment {
    let secret = BASE32_NOPAD.encode(secret);
    let name = percent_encode(&key.to_string());
    let uri = format!("otpauth://totp/Tidegate:{name}?secret={secret}&issuer=Tidegate");
    Enrolment {
        sealed,
        secret: Secret::new(secret),
        uri: Secret::new(uri),
    }
}

/// The AEAD label that binds an encrypted secret to its user.
fn label(key: &UserKey) -> String {
    let name = SecretHash::of(&Secret::new(key.to_string())).to_base64url();
    format!("second factor {name}")
}
