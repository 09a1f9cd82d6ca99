//! Refresh tokens. They have the form of a JSON Web Token, because some clients decode them. They
//! are authenticated by HMAC-SHA256, because only the issuer verifies them. They are numbered, so
//! that a session needs to store only one number.
//!
//! The key is derived from the master key, so refresh tokens survive the rotation of signing keys.
//! Header and algorithm differ from those of access tokens, so a refresh token is never accepted as
//! an access token, and an access token never as a refresh token.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use serde::{Deserialize, Serialize};

use super::{MAX_LENGTH, Segments};
use crate::{Session, json};
use tidegate_identity::{MasterKey, SessionId, Timestamp};

const HEADER: &str = r#"{"alg":"HS256","typ":"rt+jwt"}"#;

/// Encodes and verifies refresh tokens.
pub(crate) struct RefreshTokens {
    key: hmac::Key,
    header: String,
}

/// The claims of a valid refresh token.
pub(crate) struct RefreshClaims {
    pub(crate) session: SessionId,
    pub(crate) number: u64,
    pub(crate) client_id: String,
    pub(crate) expires_at: Timestamp,
}

#[derive(Serialize, Deserialize)]
struct Payload<S> {
    iss: S,
    sub: S,
    client_id: S,
    iat: i64,
    exp: i64,
    sid: S,
    database: S,
    uid: S,
    response_type: S,
    /// The token's number in its session.
    number: u64,
}

impl RefreshTokens {
    pub(crate) fn new(master: &MasterKey) -> Self {
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, master.derive("refresh token").as_slice()),
            header: URL_SAFE_NO_PAD.encode(HEADER),
        }
    }

    /// Encodes refresh token `number` of a session. `sub` is the subject of the user.
    pub(crate) fn encode(&self, issuer: &str, sub: &str, session: &Session, number: u64) -> String {
        let sid = session.id.to_string();
        let payload = Payload {
            iss: issuer,
            sub,
            client_id: &session.client_id,
            iat: session.refreshed_at.seconds(),
            exp: session.expires_at.seconds(),
            sid: &sid,
            database: &session.user.database,
            uid: &session.user.name,
            response_type: "refresh",
            number,
        };
        let payload = json::text(&payload);
        let mut text = format!("{}.{}", self.header, URL_SAFE_NO_PAD.encode(payload));
        let tag = hmac::sign(&self.key, text.as_bytes());
        text.push('.');
        URL_SAFE_NO_PAD.encode_string(tag, &mut text);
        text
    }

    /// Verifies a refresh token of this issuer; `None` for any other text. No store is needed, so
    /// invalid tokens cost little.
    pub(crate) fn decode(&self, issuer: &str, token: &str) -> Option<RefreshClaims> {
        if token.len() > MAX_LENGTH {
            return None;
        }
        let segments = Segments::split(token)?;
        let tag = URL_SAFE_NO_PAD.decode(segments.signature).ok()?;
        if segments.header != self.header
            || hmac::verify(&self.key, segments.signed.as_bytes(), &tag).is_err()
        {
            return None;
        }
        let payload = URL_SAFE_NO_PAD.decode(segments.payload).ok()?;
        let payload: Payload<String> = serde_json::from_slice(&payload).ok()?;
        if payload.iss != issuer || payload.response_type != "refresh" {
            return None;
        }
        Some(RefreshClaims {
            session: SessionId::parse(&payload.sid)?,
            number: payload.number,
            client_id: payload.client_id,
            expires_at: Timestamp::from_seconds(payload.exp),
        })
    }
}
