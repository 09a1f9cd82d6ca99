//! Verification of ID tokens (OpenID Connect Core 1.0, section 3.1.3.7).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature;
use serde::Deserialize;
use tidegate_identity::ExternalIdentity;

/// The tolerated clock skew, in seconds.
const LEEWAY: i64 = 60;

/// The claims that an ID token must have, with their values.
pub(crate) struct Expected<'a> {
    pub(crate) issuer: &'a str,
    pub(crate) audience: &'a str,
    pub(crate) nonce: &'a str,
    /// The current time in seconds since 1970.
    pub(crate) now: i64,
}

/// The reason why an ID token is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum IdTokenError {
    #[error("the ID token is malformed")]
    Malformed,
    #[error("the ID token has no valid signature by a key of the provider")]
    Signature,
    #[error("the ID token has another issuer, audience or nonce")]
    Mismatch,
    #[error("the ID token has expired or was issued in the future")]
    Time,
}

/// The public keys of a provider (RFC 7517).
#[derive(Debug, Deserialize)]
pub(crate) struct KeySet {
    keys: Vec<Jwk>,
}

#[derive(Debug, Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    n: Option<String>,
    e: Option<String>,
    crv: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
}

#[derive(Deserialize)]
struct IdTokenClaims {
    iss: String,
    sub: String,
    aud: Audience,
    azp: Option<String>,
    exp: i64,
    iat: i64,
    nonce: Option<String>,
    email: Option<String>,
    email_verified: Option<Flag>,
    preferred_username: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Many(Vec<String>),
}

/// A boolean. Some providers send it as a string.
#[derive(Deserialize)]
#[serde(untagged)]
enum Flag {
    Bool(bool),
    Text(String),
}

/// Verifies an ID token, and returns the identity that it contains.
pub(crate) fn verify(
    token: &str,
    keys: &KeySet,
    expected: &Expected<'_>,
) -> Result<ExternalIdentity, IdTokenError> {
    let (signed, signature) = token.rsplit_once('.').ok_or(IdTokenError::Malformed)?;
    let (header, payload) = signed.split_once('.').ok_or(IdTokenError::Malformed)?;
    let header: Header = json(header)?;
    let signature = bytes(signature)?;
    let genuine = keys
        .keys
        .iter()
        .filter(|key| {
            key.purpose
                .as_deref()
                .is_none_or(|purpose| purpose == "sig")
        })
        .filter(|key| header.kid.is_none() || key.kid == header.kid)
        .any(|key| key.verifies(&header.alg, signed.as_bytes(), &signature));
    if !genuine {
        return Err(IdTokenError::Signature);
    }
    let claims: IdTokenClaims = json(payload)?;
    check(&claims, expected)?;
    let verified = matches!(&claims.email_verified, Some(Flag::Bool(true)))
        || matches!(&claims.email_verified, Some(Flag::Text(text)) if text == "true");
    Ok(ExternalIdentity {
        issuer: claims.iss,
        subject: claims.sub,
        verified_email: claims.email.filter(|_| verified),
        name: claims.preferred_username,
    })
}

fn check(claims: &IdTokenClaims, expected: &Expected<'_>) -> Result<(), IdTokenError> {
    let for_us = match &claims.aud {
        Audience::One(one) => one == expected.audience,
        Audience::Many(many) => {
            let sole = many.len() == 1 || claims.azp.is_some();
            sole && many.iter().any(|one| one == expected.audience)
        }
    };
    let authorized_party = claims
        .azp
        .as_deref()
        .is_none_or(|azp| azp == expected.audience);
    let nonce = claims.nonce.as_deref() == Some(expected.nonce);
    if !for_us
        || !authorized_party
        || !nonce
        || claims.iss != expected.issuer
        || claims.sub.is_empty()
    {
        return Err(IdTokenError::Mismatch);
    }
    let expired = claims.exp.saturating_add(LEEWAY) <= expected.now;
    if expired || claims.iat > expected.now.saturating_add(LEEWAY) {
        return Err(IdTokenError::Time);
    }
    Ok(())
}

impl Jwk {
    /// Whether the signature is valid for this key. The type of the key determines the allowed
    /// algorithm, so a token with another one, such as `none`, is rejected.
    fn verifies(&self, algorithm: &str, message: &[u8], signature: &[u8]) -> bool {
        match (self.kty.as_str(), algorithm) {
            ("RSA", "RS256") => self.rsa().is_some_and(|(n, e)| {
                let key = signature::RsaPublicKeyComponents { n, e };
                let algorithm = &signature::RSA_PKCS1_2048_8192_SHA256;
                key.verify(algorithm, message, signature).is_ok()
            }),
            ("EC", "ES256") if self.crv.as_deref() == Some("P-256") => {
                self.point().is_some_and(|point| {
                    let algorithm = &signature::ECDSA_P256_SHA256_FIXED;
                    let key = signature::UnparsedPublicKey::new(algorithm, point);
                    key.verify(message, signature).is_ok()
                })
            }
            ("OKP", "EdDSA" | "Ed25519") if self.crv.as_deref() == Some("Ed25519") => {
                let x = self.x.as_deref().and_then(|x| bytes(x).ok());
                x.is_some_and(|x| {
                    let key = signature::UnparsedPublicKey::new(&signature::ED25519, x);
                    key.verify(message, signature).is_ok()
                })
            }
            _ => false,
        }
    }

    fn rsa(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        Some((
            bytes(self.n.as_deref()?).ok()?,
            bytes(self.e.as_deref()?).ok()?,
        ))
    }

    /// The public key as an uncompressed point (SEC 1, section 2.3.3).
    fn point(&self) -> Option<Vec<u8>> {
        let mut point = vec![4];
        point.extend(bytes(self.x.as_deref()?).ok()?);
        point.extend(bytes(self.y.as_deref()?).ok()?);
        (point.len() == 65).then_some(point)
    }
}

fn bytes(text: &str) -> Result<Vec<u8>, IdTokenError> {
    URL_SAFE_NO_PAD
        .decode(text)
        .map_err(|_| IdTokenError::Malformed)
}

fn json<T: serde::de::DeserializeOwned>(segment: &str) -> Result<T, IdTokenError> {
    serde_json::from_slice(&bytes(segment)?).map_err(|_| IdTokenError::Malformed)
}

#[cfg(test)]
mod tests {
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
    use serde_json::{Value, json};

    use super::*;

    struct Signer(EcdsaKeyPair);

    impl Signer {
        #[expect(
            clippy::disallowed_methods,
            reason = "tests use the system's random source"
        )]
        fn new() -> Self {
            let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
            let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
            Self(EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap())
        }

        fn keys(&self) -> KeySet {
            let point = self.0.public_key().as_ref();
            let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
            let set = json!({"keys": [{"kty": "EC", "crv": "P-256", "kid": "a", "use": "sig",
                "x": text(&point[1..33]), "y": text(&point[33..])}]});
            serde_json::from_value(set).unwrap()
        }

        #[expect(
            clippy::disallowed_methods,
            reason = "tests use the system's random source"
        )]
        fn token(&self, header: &Value, claims: &Value) -> String {
            let text = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
            let signed = format!("{}.{}", text(header), text(claims));
            let signature = self
                .0
                .sign(&SystemRandom::new(), signed.as_bytes())
                .unwrap();
            format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
        }
    }

    fn claims() -> Value {
        json!({"iss": "https://id.example", "sub": "77", "aud": "us", "exp": 2_000, "iat": 1_000,
            "nonce": "n", "email": "a@example.com", "email_verified": true})
    }

    const EXPECTED: Expected<'_> = Expected {
        issuer: "https://id.example",
        audience: "us",
        nonce: "n",
        now: 1_500,
    };

    #[test]
    fn a_valid_token_gives_the_identity() {
        let signer = Signer::new();
        let header = json!({"alg": "ES256", "kid": "a"});
        let identity =
            verify(&signer.token(&header, &claims()), &signer.keys(), &EXPECTED).unwrap();
        assert_eq!(
            (identity.subject.as_str(), identity.issuer.as_str()),
            ("77", "https://id.example")
        );
        assert_eq!(identity.verified_email.as_deref(), Some("a@example.com"));
        for unverified in [json!(false), json!("false"), Value::Null] {
            let mut claims = claims();
            claims["email_verified"] = unverified;
            let identity =
                verify(&signer.token(&header, &claims), &signer.keys(), &EXPECTED).unwrap();
            assert_eq!(identity.verified_email, None);
        }
    }

    #[test]
    fn tokens_with_other_claims_are_rejected() {
        let signer = Signer::new();
        let header = json!({"alg": "ES256", "kid": "a"});
        for (member, value, refused) in [
            ("iss", json!("https://evil.example"), IdTokenError::Mismatch),
            ("aud", json!("others"), IdTokenError::Mismatch),
            ("aud", json!(["us", "others"]), IdTokenError::Mismatch),
            ("azp", json!("others"), IdTokenError::Mismatch),
            ("nonce", json!("other"), IdTokenError::Mismatch),
            ("nonce", Value::Null, IdTokenError::Mismatch),
            ("sub", json!(""), IdTokenError::Mismatch),
            ("exp", json!(1_440), IdTokenError::Time),
            ("iat", json!(1_561), IdTokenError::Time),
            ("exp", json!("soon"), IdTokenError::Malformed),
        ] {
            let mut claims = claims();
            claims[member] = value;
            let token = signer.token(&header, &claims);
            let result = verify(&token, &signer.keys(), &EXPECTED);
            assert_eq!(result, Err(refused), "{member}: {claims}");
        }
    }

    #[test]
    fn the_key_type_determines_the_algorithm() {
        let signer = Signer::new();
        for alg in ["none", "HS256", "RS256", "EdDSA"] {
            let token = signer.token(&json!({"alg": alg, "kid": "a"}), &claims());
            assert_eq!(
                verify(&token, &signer.keys(), &EXPECTED),
                Err(IdTokenError::Signature),
                "{alg}"
            );
        }
        let token = signer.token(&json!({"alg": "ES256", "kid": "b"}), &claims());
        assert_eq!(
            verify(&token, &signer.keys(), &EXPECTED),
            Err(IdTokenError::Signature)
        );
        let other = Signer::new().token(&json!({"alg": "ES256", "kid": "a"}), &claims());
        assert_eq!(
            verify(&other, &signer.keys(), &EXPECTED),
            Err(IdTokenError::Signature)
        );
        for bad in ["", "a.b", "a.b.c", "e30.e30."] {
            assert!(verify(bad, &signer.keys(), &EXPECTED).is_err(), "{bad}");
        }
    }
}
