//! Identity tokens (OpenID Connect Core 1.0, section 3.1.3.7), checked against a provider's keys.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature;
use serde::Deserialize;
use tidegate_oauth::ExternalIdentity;

/// How far a provider's clock may be from ours, in seconds.
const LEEWAY: i64 = 60;

/// What must stand in a token.
pub(super) struct Expected<'a> {
    pub(super) issuer: &'a str,
    pub(super) audience: &'a str,
    pub(super) nonce: &'a str,
    /// Seconds since 1970.
    pub(super) now: i64,
}

/// Why a token is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    #[error("the identity token is malformed")]
    Malformed,
    #[error("the identity token is signed by no key of the provider, or in another way")]
    Signature,
    #[error("the identity token is of another issuer, for somebody else or for another sign-in")]
    NotForUs,
    #[error("the identity token has expired, or is from the future")]
    Time,
}

/// A provider's keys (RFC 7517).
#[derive(Debug, Deserialize)]
pub(super) struct KeySet {
    keys: Vec<Key>,
}

#[derive(Debug, Deserialize)]
struct Key {
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
struct Claims {
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

/// Some providers write booleans as strings.
#[derive(Deserialize)]
#[serde(untagged)]
enum Flag {
    Bool(bool),
    Text(String),
}

/// Reads a token, if all of it is in order.
pub(super) fn read(
    token: &str,
    keys: &KeySet,
    expected: &Expected<'_>,
) -> Result<ExternalIdentity, Refused> {
    let (signed, signature) = token.rsplit_once('.').ok_or(Refused::Malformed)?;
    let (header, payload) = signed.split_once('.').ok_or(Refused::Malformed)?;
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
        .any(|key| key.signed(&header.alg, signed.as_bytes(), &signature));
    if !genuine {
        return Err(Refused::Signature);
    }
    let claims: Claims = json(payload)?;
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

fn check(claims: &Claims, expected: &Expected<'_>) -> Result<(), Refused> {
    let ours = match &claims.aud {
        Audience::One(one) => one == expected.audience,
        Audience::Many(many) => {
            let sole = many.len() == 1 || claims.azp.is_some();
            sole && many.iter().any(|one| one == expected.audience)
        }
    };
    let party = claims
        .azp
        .as_deref()
        .is_none_or(|azp| azp == expected.audience);
    let nonce = claims.nonce.as_deref() == Some(expected.nonce);
    if !ours || !party || !nonce || claims.iss != expected.issuer || claims.sub.is_empty() {
        return Err(Refused::NotForUs);
    }
    let over = claims.exp.saturating_add(LEEWAY) <= expected.now;
    if over || claims.iat > expected.now.saturating_add(LEEWAY) {
        return Err(Refused::Time);
    }
    Ok(())
}

impl Key {
    /// Whether this key made the signature. The key decides which algorithms may be: a token that
    /// says otherwise, `none` among it, is signed by nobody.
    fn signed(&self, algorithm: &str, message: &[u8], signature: &[u8]) -> bool {
        match (self.kty.as_str(), algorithm) {
            ("RSA", "RS256") => self.rsa().is_some_and(|(n, e)| {
                let key = signature::RsaPublicKeyComponents { n, e };
                let way = &signature::RSA_PKCS1_2048_8192_SHA256;
                key.verify(way, message, signature).is_ok()
            }),
            ("EC", "ES256") if self.crv.as_deref() == Some("P-256") => {
                self.point().is_some_and(|point| {
                    let way = &signature::ECDSA_P256_SHA256_FIXED;
                    let key = signature::UnparsedPublicKey::new(way, point);
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

    /// The point uncompressed (SEC 1, section 2.3.3).
    fn point(&self) -> Option<Vec<u8>> {
        let mut point = vec![4];
        point.extend(bytes(self.x.as_deref()?).ok()?);
        point.extend(bytes(self.y.as_deref()?).ok()?);
        (point.len() == 65).then_some(point)
    }
}

fn bytes(text: &str) -> Result<Vec<u8>, Refused> {
    URL_SAFE_NO_PAD.decode(text).map_err(|_| Refused::Malformed)
}

fn json<T: serde::de::DeserializeOwned>(segment: &str) -> Result<T, Refused> {
    serde_json::from_slice(&bytes(segment)?).map_err(|_| Refused::Malformed)
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
            reason = "a test takes the randomness of the system"
        )]
        fn new() -> Self {
            let (way, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
            let document = EcdsaKeyPair::generate_pkcs8(way, &random).unwrap();
            Self(EcdsaKeyPair::from_pkcs8(way, document.as_ref(), &random).unwrap())
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
            reason = "a test takes the randomness of the system"
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
    fn a_token_in_order_names_a_person() {
        let signer = Signer::new();
        let header = json!({"alg": "ES256", "kid": "a"});
        let who = read(&signer.token(&header, &claims()), &signer.keys(), &EXPECTED).unwrap();
        assert_eq!(
            (who.subject.as_str(), who.issuer.as_str()),
            ("77", "https://id.example")
        );
        assert_eq!(who.verified_email.as_deref(), Some("a@example.com"));
        for unverified in [json!(false), json!("false"), Value::Null] {
            let mut claims = claims();
            claims["email_verified"] = unverified;
            let who = read(&signer.token(&header, &claims), &signer.keys(), &EXPECTED).unwrap();
            assert_eq!(who.verified_email, None);
        }
    }

    #[test]
    fn every_other_token_is_refused() {
        let signer = Signer::new();
        let header = json!({"alg": "ES256", "kid": "a"});
        for (member, value, refused) in [
            ("iss", json!("https://evil.example"), Refused::NotForUs),
            ("aud", json!("others"), Refused::NotForUs),
            ("aud", json!(["us", "others"]), Refused::NotForUs),
            ("azp", json!("others"), Refused::NotForUs),
            ("nonce", json!("other"), Refused::NotForUs),
            ("nonce", Value::Null, Refused::NotForUs),
            ("sub", json!(""), Refused::NotForUs),
            ("exp", json!(1_440), Refused::Time),
            ("iat", json!(1_561), Refused::Time),
            ("exp", json!("soon"), Refused::Malformed),
        ] {
            let mut claims = claims();
            claims[member] = value;
            let token = signer.token(&header, &claims);
            let read = read(&token, &signer.keys(), &EXPECTED);
            assert_eq!(read, Err(refused), "{member}: {claims}");
        }
    }

    #[test]
    fn the_key_decides_over_the_algorithm() {
        let signer = Signer::new();
        for alg in ["none", "HS256", "RS256", "EdDSA"] {
            let token = signer.token(&json!({"alg": alg, "kid": "a"}), &claims());
            assert_eq!(
                read(&token, &signer.keys(), &EXPECTED),
                Err(Refused::Signature),
                "{alg}"
            );
        }
        let token = signer.token(&json!({"alg": "ES256", "kid": "b"}), &claims());
        assert_eq!(
            read(&token, &signer.keys(), &EXPECTED),
            Err(Refused::Signature)
        );
        let other = Signer::new().token(&json!({"alg": "ES256", "kid": "a"}), &claims());
        assert_eq!(
            read(&other, &signer.keys(), &EXPECTED),
            Err(Refused::Signature)
        );
        for bad in ["", "a.b", "a.b.c", "e30.e30."] {
            assert!(read(bad, &signer.keys(), &EXPECTED).is_err(), "{bad}");
        }
    }
}
