//! The master key: the operator's only secret, from which all other keys are derived.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::{hkdf, hmac};
use zeroize::{Zeroize as _, Zeroizing};

use crate::{Error, Result, SecureRandom};

const LENGTH: usize = 32;
/// The HKDF salt. It makes the derived keys differ from the keys that another program derives from
/// the same bytes.
const SALT: &[u8] = b"tidegate";
/// The first byte of all encrypted data. It identifies the format; another format would begin with
/// another byte.
const SEAL_VERSION: u8 = 1;

/// 32 random bytes, known only to the operator and the running service.
///
/// The bytes are never used directly: each purpose has its own key, derived by HKDF-SHA256 (RFC
/// 5869), so one key reveals nothing about another.
#[derive(Clone)]
pub struct MasterKey(Zeroizing<[u8; LENGTH]>);

impl MasterKey {
    /// Generates a random master key.
    pub fn generate(random: &dyn SecureRandom) -> Result<Self> {
        Ok(Self(Zeroizing::new(random.bytes()?)))
    }

    /// Parses 43 characters of base64url; padding and surrounding white space are allowed.
    pub fn parse(text: &str) -> Result<Self> {
        let malformed = Error::Malformed {
            part: "master key",
            expected: "32 bytes of base64url",
        };
        let mut decoded = URL_SAFE_NO_PAD
            .decode(text.trim().trim_end_matches('='))
            .map_err(|_| malformed)?;
        let bytes = <[u8; LENGTH]>::try_from(decoded.as_slice());
        decoded.zeroize();
        bytes
            .map(|bytes| Self(Zeroizing::new(bytes)))
            .map_err(|_| Error::Malformed {
                part: "master key",
                expected: "32 bytes of base64url",
            })
    }

    /// The key in base64url, for the key file.
    pub fn to_base64url(&self) -> Zeroizing<String> {
        Zeroizing::new(URL_SAFE_NO_PAD.encode(*self.0))
    }

    /// Identifies the key without revealing it: 22 characters.
    pub fn fingerprint(&self) -> String {
        URL_SAFE_NO_PAD.encode(&self.derive("fingerprint")[..16])
    }

    /// Derives the key for a purpose. The same purpose always gives the same key.
    pub fn derive(&self, purpose: &str) -> Zeroizing<[u8; LENGTH]> {
        expand(&self.0, purpose)
    }

    /// The key that authenticates the CSRF tokens of forms.
    pub(crate) fn form_key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, self.derive("form token").as_slice())
    }

    /// Encrypts `secret`. It can be decrypted only with the same `label`.
    pub fn seal(&self, label: &str, secret: &[u8], random: &dyn SecureRandom) -> Result<Vec<u8>> {
        let nonce: [u8; NONCE_LEN] = random.bytes()?;
        let mut sealed = vec![SEAL_VERSION];
        sealed.extend_from_slice(&nonce);
        let start = sealed.len();
        sealed.extend_from_slice(secret);
        let tag = self
            .sealing_key()
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(label),
                &mut sealed[start..],
            )
            .map_err(|_| Error::DamagedSecret)?;
        sealed.extend_from_slice(tag.as_ref());
        Ok(sealed)
    }

    /// Decrypts the result of [`seal`](Self::seal); [`Error::DamagedSecret`] unless it was
    /// encrypted with this key and label.
    pub fn open(&self, label: &str, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
        let (&version, rest) = sealed.split_first().ok_or(Error::DamagedSecret)?;
        let (nonce, ciphertext) = rest
            .split_first_chunk::<NONCE_LEN>()
            .ok_or(Error::DamagedSecret)?;
        if version != SEAL_VERSION {
            return Err(Error::DamagedSecret);
        }
        let mut opened = Zeroizing::new(ciphertext.to_vec());
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let length = self
            .sealing_key()
            .open_in_place(nonce, Aad::from(label), &mut opened)
            .map_err(|_| Error::DamagedSecret)?
            .len();
        opened.truncate(length);
        Ok(opened)
    }

    fn sealing_key(&self) -> LessSafeKey {
        let key = self.derive("signing key seal");
        let key = UnboundKey::new(&CHACHA20_POLY1305, key.as_slice())
            .expect("ChaCha20-Poly1305 keys have 32 bytes");
        LessSafeKey::new(key)
    }
}

fn expand(master: &[u8; LENGTH], purpose: &str) -> Zeroizing<[u8; LENGTH]> {
    let mut key = Zeroizing::new([0; LENGTH]);
    hkdf::Salt::new(hkdf::HKDF_SHA256, SALT)
        .extract(master)
        .expand(&[purpose.as_bytes()], hkdf::HKDF_SHA256)
        .and_then(|derived| derived.fill(key.as_mut_slice()))
        .expect("HKDF-SHA256 gives up to 8160 bytes, and 32 are asked for");
    key
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MasterKey({})", self.fingerprint())
    }
}
