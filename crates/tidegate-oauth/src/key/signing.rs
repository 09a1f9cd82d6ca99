//! A signing key in memory: creates and verifies ES256 signatures.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _,
    UnparsedPublicKey,
};

use super::{KeyState, SigningKeyRecord};
use crate::Result;
use tidegate_identity::{
    Error as IdentityError, MasterKey, SecureRandom, Timestamp, system_source,
};

/// A decrypted signing key.
pub(crate) struct SigningKey {
    record: SigningKeyRecord,
    pair: EcdsaKeyPair,
    public: UnparsedPublicKey<Vec<u8>>,
    header: String,
    id_token_header: String,
}

impl SigningKey {
    /// Generates a key pair and encrypts the private key.
    pub(crate) fn generate(
        state: KeyState,
        master: &MasterKey,
        random: &dyn SecureRandom,
        now: Timestamp,
    ) -> Result<SigningKeyRecord> {
        let system = system_source();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &system)
            .map_err(|_| IdentityError::NoRandomness)?;
        let pair = pair(document.as_ref())?;
        let public_key = pair.public_key().as_ref().to_vec();
        let id = thumbprint(&public_key)?;
        let sealed_private_key = master.seal(&id, document.as_ref(), random)?;
        Ok(SigningKeyRecord {
            id,
            state,
            public_key,
            sealed_private_key,
            created_at: now,
        })
    }

    /// Decrypts a stored key.
    pub(crate) fn open(record: SigningKeyRecord, master: &MasterKey) -> Result<Self> {
        let document = master.open(&record.id, &record.sealed_private_key)?;
        let pair = pair(&document)?;
        if pair.public_key().as_ref() != record.public_key {
            return Err(IdentityError::DamagedSecret.into());
        }
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, record.public_key.clone());
        let header = |kind: &str| {
            let text = format!(r#"{{"alg":"ES256","typ":"{kind}","kid":"{}"}}"#, record.id);
            URL_SAFE_NO_PAD.encode(text)
        };
        let (header, id_token_header) = (header("at+jwt"), header("JWT"));
        Ok(Self {
            record,
            pair,
            public,
            header,
            id_token_header,
        })
    }

    pub(crate) fn record(&self) -> &SigningKeyRecord {
        &self.record
    }

    /// The header segment of all access tokens of this key.
    pub(crate) fn header(&self) -> &str {
        &self.header
    }

    /// The header segment of all ID tokens of this key. It differs from the header segment of
    /// access tokens, so an ID token is never accepted as an access token, and an access token
    /// never as an ID token.
    pub(crate) fn id_token_header(&self) -> &str {
        &self.id_token_header
    }

    /// The compact JWS (RFC 7515, section 7.1) of `payload` with this header segment.
    pub(crate) fn signed(&self, header: &str, payload: &str) -> Result<String> {
        let mut text = String::with_capacity(1024);
        text.push_str(header);
        text.push('.');
        URL_SAFE_NO_PAD.encode_string(payload, &mut text);
        let signature = self.sign(text.as_bytes())?;
        text.push('.');
        text.push_str(&signature);
        Ok(text)
    }

    /// The ES256 signature of `message` (RFC 7518, section 3.4) in base64url.
    pub(crate) fn sign(&self, message: &[u8]) -> Result<String> {
        let signature = self
            .pair
            .sign(&system_source(), message)
            .map_err(|_| IdentityError::NoRandomness)?;
        Ok(URL_SAFE_NO_PAD.encode(signature))
    }

    /// Whether `signature` (base64url) is a valid signature of `message`.
    pub(crate) fn verifies(&self, message: &[u8], signature: &str) -> bool {
        let mut bytes = [0; 64];
        let length = URL_SAFE_NO_PAD.decode_slice(signature, &mut bytes);
        length == Ok(bytes.len()) && self.public.verify(message, &bytes).is_ok()
    }

    /// The public key as a JSON Web Key (RFC 7517, section 4; RFC 7518, section 6.2).
    pub(crate) fn jwk(&self) -> Result<String> {
        let (x, y) = coordinates(&self.record.public_key)?;
        Ok(format!(
            r#"{{"kty":"EC","crv":"P-256","alg":"ES256","use":"sig","kid":"{}","x":"{x}","y":"{y}"}}"#,
            self.record.id,
        ))
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey")
            .field("id", &self.record.id)
            .field("state", &self.record.state)
            .finish_non_exhaustive()
    }
}

fn pair(document: &[u8]) -> Result<EcdsaKeyPair> {
    EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document, &system_source())
        .map_err(|_| IdentityError::DamagedSecret.into())
}

/// The coordinates of an uncompressed point, in base64url.
fn coordinates(public_key: &[u8]) -> Result<(String, String)> {
    match public_key.split_first() {
        Some((4, point)) if point.len() == 64 => {
            let (x, y) = point.split_at(32);
            Ok((URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y)))
        }
        _ => Err(IdentityError::DamagedSecret.into()),
    }
}

/// The key id: the SHA-256 thumbprint of the key (RFC 7638).
fn thumbprint(public_key: &[u8]) -> Result<String> {
    let (x, y) = coordinates(public_key)?;
    let canonical = format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#);
    Ok(URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, canonical.as_bytes())))
}
