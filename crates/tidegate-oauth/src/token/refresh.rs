//! Refresh tokens: shaped like a JSON Web Token because clients look into them, authenticated by
//! HMAC-SHA256 because nobody but us checks them, numbered because that is all that a session must
//! remember of them.
//!
//! The key is derived from the master key, so refresh tokens outlive the rotation of signing keys.
//! Header and algorithm differ from an access token's, so neither passes for the other.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use serde::{Deserialize, Serialize};

use super::{LONGEST, Segments};
use crate::{MasterKey, Session, SessionId, Timestamp, json};

const HEADER: &str = r#"{"alg":"HS256","typ":"rt+jwt"}"#;

/// Makes and checks refresh tokens.
pub(crate) struct RefreshTokens {
    key: hmac::Key,
    header: String,
}

/// What a genuine refresh token says.
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
            key: master.refresh_token_key(),
            header: URL_SAFE_NO_PAD.encode(HEADER),
        }
    }

    /// Token `number` of a session, for the role `sub`.
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

    /// Reads a token that we made for this issuer; none for anything else. Costs no look into the
    /// store, so that garbage is cheap.
    pub(crate) fn decode(&self, issuer: &str, token: &str) -> Option<RefreshClaims> {
        if token.len() > LONGEST {
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
