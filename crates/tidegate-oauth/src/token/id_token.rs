//! ID tokens: ES256 JSON Web Tokens for clients (OpenID Connect Core 1.0, section 2).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{MAX_LENGTH, Segments};
use crate::key::{KeyRing, SigningKey};
use crate::{Result, Scopes, json};
use tidegate_identity::{Timestamp, User};

/// Claims about a user, in ID tokens and at the userinfo endpoint. `sub` and `user_id` need no
/// scope. The other claims need the scope `profile` or `email` (OpenID Connect Core 1.0, section
/// 5.4).
#[derive(Serialize)]
pub(crate) struct UserClaims<'a> {
    sub: String,
    /// The result of `tidegate.user_id()`.
    #[serde(skip_serializing_if = "Option::is_none")]
    user_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    preferred_username: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    email: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    email_verified: Option<bool>,
}

impl<'a> UserClaims<'a> {
    /// The claims about `user` for these scopes. `name` is the user's property of that name if it
    /// is a string, otherwise the user's name. `email_verified` is left out unless the user has
    /// confirmed the address.
    pub(crate) fn of(user: &'a User, scopes: Scopes) -> Self {
        let profile = scopes.has("profile");
        let property = user.properties.as_ref().and_then(|all| all.get("name"));
        let name = property.and_then(Value::as_str).unwrap_or(&user.key.name);
        let email = user.email.as_deref().filter(|_| scopes.has("email"));
        Self {
            sub: subject(user),
            user_id: user.own_id(),
            name: profile.then_some(name),
            preferred_username: profile.then_some(&user.key.name),
            email,
            email_verified: email.and(user.verified_email()).map(|_| true),
        }
    }
}

/// The subject of a user. It is the database's name for the owner, and `database/id` for other
/// users, where `id` is the result of `tidegate.user_id()`. A subject is unique in this service,
/// and a person who signs up never gets the subject of a dropped user (OpenID Connect Core 1.0,
/// section 8).
pub(crate) fn subject(user: &User) -> String {
    let database = &user.key.database;
    if user.key.is_owner() {
        return database.clone();
    }
    format!("{database}/{}", user.user_id())
}

/// The content of an ID token.
pub(crate) struct IdToken<'a> {
    pub(crate) issuer: &'a str,
    pub(crate) user: &'a User,
    pub(crate) client_id: &'a str,
    pub(crate) scopes: Scopes,
    pub(crate) nonce: Option<&'a str>,
    /// The access token that is issued together with the ID token.
    pub(crate) access_token: &'a str,
    pub(crate) authenticated_at: Timestamp,
    pub(crate) issued_at: Timestamp,
    pub(crate) expires_at: Timestamp,
}

/// The payload, with its members in the order in which they are sent. The audience is one client,
/// so there is no `azp`.
#[derive(Serialize)]
struct Payload<'a> {
    iss: &'a str,
    aud: &'a str,
    exp: i64,
    iat: i64,
    auth_time: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    nonce: Option<&'a str>,
    at_hash: &'a str,
    #[serde(flatten)]
    user: UserClaims<'a>,
}

impl IdToken<'_> {
    /// Encodes and signs the token.
    pub(crate) fn encode(&self, key: &SigningKey) -> Result<String> {
        let payload = Payload {
            iss: self.issuer,
            aud: self.client_id,
            exp: self.expires_at.seconds(),
            iat: self.issued_at.seconds(),
            auth_time: self.authenticated_at.seconds(),
            nonce: self.nonce,
            at_hash: &access_token_hash(self.access_token),
            user: UserClaims::of(self.user, self.scopes),
        };
        key.signed(key.id_token_header(), &json::text(&payload))
    }
}

/// The claim `at_hash`: the left half of the token's SHA-256 (section 3.1.3.6).
fn access_token_hash(token: &str) -> String {
    let hash = digest::digest(&digest::SHA256, token.as_bytes());
    let (left, _) = hash.as_ref().split_at(16);
    URL_SAFE_NO_PAD.encode(left)
}

/// The subject of an ID token, and the client to which it was issued.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct IdTokenHint {
    iss: String,
    pub(crate) sub: String,
    pub(crate) aud: String,
}

impl IdTokenHint {
    /// The content of an ID token that one of the issuer's keys has signed; `None` for any other
    /// text. The token may have expired (OpenID Connect RP-Initiated Logout 1.0, section 2), so it
    /// is no proof that the user is signed in.
    pub(crate) fn decode(token: &str, ring: &KeyRing, issuer: &str) -> Option<Self> {
        if token.len() > MAX_LENGTH {
            return None;
        }
        let segments = Segments::split(token)?;
        let key = ring.with_id_token_header(segments.header)?;
        if !key.verifies(segments.signed.as_bytes(), segments.signature) {
            return None;
        }
        let payload = URL_SAFE_NO_PAD.decode(segments.payload).ok()?;
        let hint: Self = serde_json::from_slice(&payload).ok()?;
        (hint.iss == issuer).then_some(hint)
    }
}
