//! Encrypted, self-contained state in URLs and forms: email links, the `state` of a provider login,
//! and the state of passkey requests.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::IdentityService;
use crate::{Error, Result, Timestamp};

/// The maximum length in bytes of a token that is decrypted. Tokens of this service are shorter.
const MAX_LENGTH: usize = 4096;

impl IdentityService {
    /// Fails with [`Error::InvalidLink`] if the time `until`, in milliseconds since 1970, has
    /// passed.
    pub(super) fn require_unexpired(&self, until: i64) -> Result<()> {
        if self.ports.clock.now() < Timestamp::from_millis(until) {
            Ok(())
        } else {
            Err(Error::InvalidLink)
        }
    }

    /// Encrypts `content` as a token for a URL or a form. The token can be decrypted only for the
    /// same purpose.
    pub(super) fn seal_token(&self, purpose: &str, content: &impl Serialize) -> Result<String> {
        let plain = serde_json::to_vec(content).map_err(|_| Error::DamagedSecret)?;
        let sealed = self.master.seal(purpose, &plain, &*self.ports.random)?;
        Ok(URL_SAFE_NO_PAD.encode(sealed))
    }

    /// Decrypts a token that [`seal_token`](Self::seal_token) made for the same purpose;
    /// [`Error::InvalidLink`] for any other text.
    pub(super) fn open_token<T: DeserializeOwned>(&self, purpose: &str, token: &str) -> Result<T> {
        if token.len() > MAX_LENGTH {
            return Err(Error::InvalidLink);
        }
        let sealed = URL_SAFE_NO_PAD.decode(token);
        let sealed = sealed.map_err(|_| Error::InvalidLink)?;
        let plain = self.master.open(purpose, &sealed);
        let plain = plain.map_err(|_| Error::InvalidLink)?;
        serde_json::from_slice(&plain).map_err(|_| Error::InvalidLink)
    }
}
