//! The public keys of an issuer (RFC 7517).

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature;
use serde::Deserialize;
use serde_json::Value;

use crate::SignatureAlgorithm;

/// The number of keys of a set that are read; further keys are ignored. A token without a `kid` may
/// be checked with each of these keys.
const MAX_KEYS: usize = 64;

/// The keys of a key set that can verify signatures.
pub(crate) struct KeySet {
    keys: Vec<PublicKey>,
    /// The key set as the issuer sent it, for comparison with another key set.
    document: Vec<Value>,
}

impl PartialEq for KeySet {
    fn eq(&self, other: &Self) -> bool {
        self.document == other.document
    }
}

impl fmt::Debug for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeySet({} keys)", self.keys.len())
    }
}

#[derive(Deserialize)]
pub(crate) struct KeySetDocument {
    keys: Vec<Value>,
}

/// A key as a key set describes it (RFC 7518, section 6; RFC 8037, section 2).
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

struct PublicKey {
    id: Option<String>,
    algorithms: &'static [SignatureAlgorithm],
    material: KeyMaterial,
}

enum KeyMaterial {
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
    /// An uncompressed point (SEC 1, section 2.3.3) or the bytes of an Ed25519 key.
    Curve(Vec<u8>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignatureCheck {
    Valid,
    Invalid,
    /// The set has no key that has the id of the token and can be used with the algorithm.
    NoKey,
}

impl KeySet {
    /// Reads the keys that can verify signatures. Keys of unknown kinds and keys for encryption are
    /// skipped (RFC 7517, section 5). `None` if no key remains.
    pub(crate) fn read(document: KeySetDocument) -> Option<Self> {
        let document = document.keys;
        let keys = document.iter().take(MAX_KEYS);
        let keys: Vec<_> = keys.filter_map(PublicKey::read).collect();
        (!keys.is_empty()).then_some(Self { keys, document })
    }

    /// Checks a signature with the keys that have this id and can be used with the algorithm. If
    /// the token names no id, all keys for the algorithm are tried.
    pub(crate) fn check(
        &self,
        id: Option<&str>,
        algorithm: SignatureAlgorithm,
        signed: &str,
        signature: &[u8],
    ) -> SignatureCheck {
        let mut keys = self
            .keys
            .iter()
            .filter(|key| id.is_none() || key.id.as_deref() == id)
            .filter(|key| key.algorithms.contains(&algorithm))
            .peekable();
        if keys.peek().is_none() {
            SignatureCheck::NoKey
        } else if keys.any(|key| {
            key.material
                .verifies(algorithm, signed.as_bytes(), signature)
        }) {
            SignatureCheck::Valid
        } else {
            SignatureCheck::Invalid
        }
    }
}

impl PublicKey {
    fn read(key: &Value) -> Option<Self> {
        let jwk = Jwk::deserialize(key).ok()?;
        let is_for_signatures = jwk
            .purpose
            .as_deref()
            .is_none_or(|purpose| purpose == "sig");
        let operations = jwk.key_ops.as_deref();
        let may_verify = operations.is_none_or(|all| all.iter().any(|one| one == "verify"));
        if !is_for_signatures || !may_verify {
            return None;
        }
        let (mut algorithms, material) = jwk.key()?;
        if let Some(only) = &jwk.alg {
            let only = SignatureAlgorithm::from_name(only)?;
            let at = algorithms.iter().position(|algorithm| *algorithm == only)?;
            algorithms = &algorithms[at..=at];
        }
        Some(Self {
            id: jwk.kid,
            algorithms,
            material,
        })
    }
}

impl Jwk {
    /// The key material, and the algorithms that it can be used with. The algorithms depend on the
    /// key and not on the token, so that a token cannot select an algorithm of another kind for the
    /// key. `None` for a key that is malformed or of an unsupported type.
    fn key(&self) -> Option<(&'static [SignatureAlgorithm], KeyMaterial)> {
        use SignatureAlgorithm::{ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512};
        match (self.kty.as_str(), self.crv.as_deref()) {
            ("RSA", _) => {
                let (n, e) = (bytes(self.n.as_deref()?)?, bytes(self.e.as_deref()?)?);
                let algorithms = &[RS256, RS384, RS512, PS256, PS384, PS512];
                Some((algorithms, KeyMaterial::Rsa { n, e }))
            }
            ("EC", Some("P-256")) => Some((&[ES256], self.point(32)?)),
            ("EC", Some("P-384")) => Some((&[ES384], self.point(48)?)),
            ("OKP", Some("Ed25519")) => {
                let x = bytes(self.x.as_deref()?)?;
                Some((&[EdDSA], KeyMaterial::Curve(x)))
            }
            _ => None,
        }
    }

    fn point(&self, length: usize) -> Option<KeyMaterial> {
        let mut point = vec![4];
        point.extend(bytes(self.x.as_deref()?)?);
        point.extend(bytes(self.y.as_deref()?)?);
        (point.len() == 1 + 2 * length).then_some(KeyMaterial::Curve(point))
    }
}

impl KeyMaterial {
    fn verifies(&self, algorithm: SignatureAlgorithm, message: &[u8], signature: &[u8]) -> bool {
        use SignatureAlgorithm as Algorithm;
        let rsa = |algorithm: &signature::RsaParameters| match self {
            Self::Rsa { n, e } => {
                let key = signature::RsaPublicKeyComponents { n, e };
                key.verify(algorithm, message, signature).is_ok()
            }
            Self::Curve(_) => false,
        };
        let curve = |algorithm: &'static dyn signature::VerificationAlgorithm| match self {
            Self::Curve(key) => {
                let key = signature::UnparsedPublicKey::new(algorithm, key);
                key.verify(message, signature).is_ok()
            }
            Self::Rsa { .. } => false,
        };
        match algorithm {
            Algorithm::RS256 => rsa(&signature::RSA_PKCS1_2048_8192_SHA256),
            Algorithm::RS384 => rsa(&signature::RSA_PKCS1_2048_8192_SHA384),
            Algorithm::RS512 => rsa(&signature::RSA_PKCS1_2048_8192_SHA512),
            Algorithm::PS256 => rsa(&signature::RSA_PSS_2048_8192_SHA256),
            Algorithm::PS384 => rsa(&signature::RSA_PSS_2048_8192_SHA384),
            Algorithm::PS512 => rsa(&signature::RSA_PSS_2048_8192_SHA512),
            Algorithm::ES256 => curve(&signature::ECDSA_P256_SHA256_FIXED),
            Algorithm::ES384 => curve(&signature::ECDSA_P384_SHA384_FIXED),
            Algorithm::EdDSA => curve(&signature::ED25519),
        }
    }
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}
