//! Setting up, showing and taking away a second factor.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use data_encoding::BASE32_NOPAD;
use zeroize::Zeroizing;

use super::{Browser, Claimed, Issuer};
use crate::flow::{RecoveryCode, SECRET_BYTES, Totp};
use crate::request::percent;
use crate::throttle;
use crate::{AuditKind, Error, Result, SecondFactor, Secret, SecretHash, UserKey, Visit, random};

/// A second factor that is being set up: nothing is stored until its first code is right.
#[derive(Clone, Debug)]
pub struct Enrolment {
    /// The secret, sealed for this user: what the form brings back.
    pub sealed: String,
    /// The secret in base32, for who cannot scan.
    pub secret: Secret,
    /// The `otpauth:` address that authenticators scan.
    pub uri: Secret,
}

impl Issuer {
    /// Begins to set up a second factor for a user; `sealed` goes on with one that was begun.
    ///
    /// [`Error::Malformed`] when `sealed` is not what this made for this user.
    pub fn begin_enrolment(&self, key: &UserKey, sealed: Option<&str>) -> Result<Enrolment> {
        let (secret, sealed) = if let Some(sealed) = sealed {
            (self.unseal(key, sealed)?, sealed.to_owned())
        } else {
            let bytes: [u8; SECRET_BYTES] = random::bytes(&*self.ports.random)?;
            let sealed = self.master.seal(&label(key), &bytes, &*self.ports.random)?;
            (
                Zeroizing::new(bytes.to_vec()),
                URL_SAFE_NO_PAD.encode(sealed),
            )
        };
        let secret = BASE32_NOPAD.encode(&secret);
        let mut name = String::new();
        percent::encode_into(&mut name, &key.to_string());
        let uri = format!("otpauth://totp/Tidegate:{name}?secret={secret}&issuer=Tidegate");
        Ok(Enrolment {
            sealed,
            secret: Secret::new(secret),
            uri: Secret::new(uri),
        })
    }

    fn unseal(&self, key: &UserKey, sealed: &str) -> Result<Zeroizing<Vec<u8>>> {
        let opened = URL_SAFE_NO_PAD.decode(sealed).ok();
        let opened = opened.and_then(|sealed| self.master.open(&label(key), &sealed).ok());
        opened.ok_or(Error::Malformed {
            part: "sealed",
            expected: "what the page gave",
        })
    }

    /// Sets up the second factor of whoever is signed in in `browser`, if `code` is its code now.
    /// Returns the recovery codes, to be shown this once, and the browser's new cookie.
    ///
    /// [`Error::WrongSecondFactor`]; [`Error::Taken`] when the user has one already.
    pub async fn enrol(
        &self,
        browser: &Browser,
        (sealed, code): (&str, &str),
        visit: &Visit,
    ) -> Result<(Vec<Secret>, Secret)> {
        let key = &browser.user.key;
        let limit = &self.settings.limits.second_factor;
        let mut attempts = self.attempts();
        attempts.count(throttle::second_factor(key), limit).await?;
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
        attempts.give_back().await?;
        self.tell(AuditKind::SecondFactorAdded, key, visit).await;
        let cookie = self.raise(browser, visit).await?;
        Ok((codes.iter().map(RecoveryCode::shown).collect(), cookie))
    }

    /// Accepts the second factor of whoever is signed in in `browser`: a code of the authenticator,
    /// each once only, or a recovery code. Returns the browser's new cookie.
    ///
    /// [`Error::WrongSecondFactor`], [`Error::TooManyAttempts`].
    pub async fn show_second_factor(
        &self,
        browser: &Browser,
        code: &str,
        visit: &Visit,
    ) -> Result<Secret> {
        let key = &browser.user.key;
        self.check_second_factor(key, code, visit).await?;
        self.raise(browser, visit).await
    }

    /// Counts an attempt, and gives it back if `code` is right.
    async fn check_second_factor(&self, key: &UserKey, code: &str, visit: &Visit) -> Result<()> {
        let limit = &self.settings.limits.second_factor;
        let mut attempts = self.attempts();
        attempts.count(throttle::second_factor(key), limit).await?;
        if !self.is_second_factor(key, code, visit).await? {
            self.tell(AuditKind::SecondFactorFailed, key, visit).await;
            return Err(Error::WrongSecondFactor);
        }
        attempts.give_back().await
    }

    async fn is_second_factor(&self, key: &UserKey, code: &str, visit: &Visit) -> Result<bool> {
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
            self.tell(AuditKind::RecoveryCodeUsed, key, visit).await;
        }
        Ok(used)
    }

    /// Removes the second factor of the user who is signed in in `browser`. A browser that was left
    /// open is not enough: `proof` is the user's password, or a code as for
    /// [`show_second_factor`](Self::show_second_factor); a user without a password has codes only.
    ///
    /// [`Error::SecondFactorNeeded`] unless the factor was shown in this browser;
    /// [`Error::WrongCredentials`], [`Error::WrongSecondFactor`], [`Error::TooManyAttempts`],
    /// [`Error::Busy`].
    pub async fn remove_second_factor(
        &self,
        browser: &Browser,
        proof: &Secret,
        visit: &Visit,
    ) -> Result<()> {
        if !browser.session.second_factor {
            return Err(Error::SecondFactorNeeded);
        }
        let key = &browser.user.key;
        // No password is as short as a code of an authenticator.
        let text = proof.expose().trim();
        let code = text.len() <= 6 || RecoveryCode::parse(text).is_some();
        if code || browser.user.password_hash.is_none() {
            self.check_second_factor(key, text, visit).await?;
        } else {
            let claimed = Claimed {
                key: key.clone(),
                client_id: None,
                address: visit.address,
            };
            self.prove(&claimed, proof).await?;
        }
        if self.ports.store.delete_second_factor(key).await? {
            self.tell(AuditKind::SecondFactorRemoved, key, visit).await;
        }
        Ok(())
    }

    /// Another browser session in the place of this one, with the second factor shown.
    async fn raise(&self, browser: &Browser, visit: &Visit) -> Result<Secret> {
        let store = &self.ports.store;
        let cookie = self.open_browser(&browser.user, visit, true).await?;
        store.delete_browser_session(browser.session.id).await?;
        Ok(cookie)
    }

    pub(super) async fn tell(&self, kind: AuditKind, key: &UserKey, visit: &Visit) {
        let event = self.event(kind, Some(&key.database)).of_user(&key.name);
        self.ports.audit(event.from(visit.address)).await;
    }

    /// Whether the user has a second factor, and how many recovery codes are left.
    pub async fn second_factor_of(&self, key: &UserKey) -> Result<Option<u64>> {
        let factor = self.ports.store.second_factor(key).await?;
        Ok(factor.map(|factor| factor.recovery_codes))
    }
}

/// Binds a sealed secret to its user.
fn label(key: &UserKey) -> String {
    let name = SecretHash::of(&Secret::new(key.to_string())).to_base64url();
    format!("second factor {name}")
}
