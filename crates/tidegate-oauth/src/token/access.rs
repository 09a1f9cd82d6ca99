//! Access tokens: ES256 JSON Web Tokens of the type `at+jwt` (RFC 9068).

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Segments;
use crate::key::{KeyRing, SigningKey};
use crate::{Scopes, TokenError, json};
use tidegate_identity::{SessionId, Timestamp, User, UserKind};

/// The claims of a valid access token. Below, the names of claims in the token are in parentheses.
/// The claims are cached for each token, so values that only few tokens have are boxed, and `jti`,
/// which nothing reads, is left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Claims {
    /// The session that the token belongs to (`sid`).
    pub session: SessionId,
    /// The client that the token was issued to (`client_id`); empty for a personal access token.
    pub client_id: String,
    /// The tenant's database.
    pub database: String,
    /// The user's name (`uid`).
    pub user: String,
    /// The subject (`sub`), which is unique in a cluster. It is the PostgreSQL role that requests
    /// run as. For a member it is `database/name`, because the members of a group share a role.
    pub subject: String,
    /// The private claims of a member; `None` for a user with a role.
    pub member: Option<Box<MemberClaims>>,
    /// Whether the user owns the tenant (`superUser`).
    pub owner: bool,
    /// Whether the user is the tenant's default user (`shared`), whose role anonymous callers
    /// share. Tokens of other users do not have the claim. When a user becomes or stops being the
    /// default user, its sessions end, so a valid token never has an outdated value.
    pub shared: bool,
    /// The scopes of the token (`scope`).
    pub scopes: Scopes,
    /// The owner who acts as the user (`act`, RFC 8693, section 4.1); `None` if the user acts
    /// itself.
    pub actor: Option<String>,
    /// The user's properties.
    pub properties: Option<Box<Map<String, Value>>>,
    /// The user's email address.
    pub email: Option<String>,
    /// When the token was issued.
    pub issued_at: Timestamp,
    /// When the token expires.
    pub expires_at: Timestamp,
}

/// The private claims of a member. A member's sessions end when these claims change, so the claims
/// are true as long as the token is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberClaims {
    /// The result of `tidegate.user_id()` for the member (`user_id`).
    pub id: String,
    /// The name of the member's group (`group`).
    pub group: String,
}

impl MemberClaims {
    /// The claims of a member; `None` for a user with a role.
    pub fn of(user: &User) -> Option<Self> {
        let group = user.user_groups.first().filter(|_| user.is_member())?;
        Some(Self {
            id: user.user_id().to_owned(),
            group: group.clone(),
        })
    }
}

/// The content of an access token.
pub(crate) struct AccessToken<'a> {
    pub(crate) issuer: &'a str,
    pub(crate) user: &'a User,
    pub(crate) client_id: &'a str,
    /// The owner who acts as the user.
    pub(crate) actor: Option<&'a str>,
    pub(crate) session: SessionId,
    pub(crate) scopes: Scopes,
    pub(crate) id: &'a str,
    pub(crate) issued_at: Timestamp,
    pub(crate) expires_at: Timestamp,
}

/// The payload, with its members in the order in which they are sent.
#[derive(Serialize, Deserialize)]
struct Payload<S, P> {
    iss: S,
    sub: S,
    aud: S,
    client_id: S,
    iat: i64,
    exp: i64,
    jti: S,
    sid: S,
    scope: S,
    database: S,
    uid: S,
    #[serde(rename = "superUser")]
    super_user: bool,
    properties: P,
    email: Option<S>,
    response_type: S,
    /// The result of `tidegate.user_id()`; `None` for the default user.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    user_id: Option<S>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    shared: bool,
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    kind: Option<S>,
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    group: Option<S>,
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    act: Option<ActClaim<S>>,
}

impl<P> Payload<String, P> {
    /// Removes the private claims of a member from the payload and returns them; `None` for a user
    /// with a role. Fails for an unknown kind and for incomplete claims, because such a token must
    /// not count as the token of a user with a role.
    fn take_member(&mut self) -> Result<Option<MemberClaims>, TokenError> {
        let kind = self.kind.as_deref().map(UserKind::from_name);
        match (kind, self.group.take(), self.user_id.take()) {
            (None, None, _) => Ok(None),
            (Some(Some(UserKind::Member)), Some(group), Some(id)) => {
                Ok(Some(MemberClaims { id, group }))
            }
            _ => Err(TokenError::Malformed),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct ActClaim<S> {
    sub: S,
}

fn none<T>() -> Option<T> {
    None
}

impl Claims {
    /// The name of the user who acts. For an impersonation token this is the owner.
    pub fn acting(&self) -> &str {
        self.actor.as_deref().unwrap_or(&self.user)
    }

    /// The result of `tidegate.user_id()` for the user; `None` for the default user.
    pub fn user_id(&self) -> Option<&str> {
        let name = Some(self.user.as_str()).filter(|_| !self.shared);
        self.member.as_ref().map(|member| &*member.id).or(name)
    }
}

/// Encodes and signs a token.
pub(crate) fn encode(token: &AccessToken<'_>, key: &SigningKey) -> crate::Result<String> {
    let (sid, scope) = (token.session.to_string(), token.scopes.to_string());
    let user = token.user;
    let (subject, member) = (user.subject(), MemberClaims::of(user));
    let payload = Payload {
        iss: token.issuer,
        sub: &*subject,
        aud: token.issuer,
        client_id: token.client_id,
        iat: token.issued_at.seconds(),
        exp: token.expires_at.seconds(),
        jti: token.id,
        sid: &sid,
        scope: &scope,
        database: &user.key.database,
        uid: &user.key.name,
        super_user: user.key.is_owner(),
        properties: user.properties.as_ref(),
        email: user.email.as_deref(),
        response_type: "token",
        user_id: user.own_id(),
        shared: user.default_user,
        kind: member.as_ref().map(|_| UserKind::Member.name()),
        group: member.as_ref().map(|member| member.group.as_str()),
        act: token.actor.map(|sub| ActClaim { sub }),
    };
    key.signed(key.header(), &json::text(&payload))
}

/// Verifies the signature, issuer, audience and issue time. Does not check the expiry: the result
/// is cached, so the calling function must check it at every use.
pub(crate) fn decode(
    segments: &Segments<'_>,
    ring: &KeyRing,
    issuer: &str,
    (now, leeway): (Timestamp, Duration),
) -> Result<Claims, TokenError> {
    let key = ring
        .with_header(segments.header)
        .ok_or(TokenError::UnknownHeader)?;
    if !key.verifies(segments.signed.as_bytes(), segments.signature) {
        return Err(TokenError::BadSignature);
    }
    let payload = URL_SAFE_NO_PAD
        .decode(segments.payload)
        .map_err(|_| TokenError::Malformed)?;
    let mut payload: Payload<String, Option<Map<String, Value>>> =
        serde_json::from_slice(&payload).map_err(|_| TokenError::Malformed)?;
    let ours = payload.iss == issuer && payload.aud == issuer && payload.response_type == "token";
    let issued_at = Timestamp::from_seconds(payload.iat);
    if !ours || issued_at > now.plus(leeway) {
        return Err(TokenError::NotForUs);
    }
    // A token with an unknown scope, for example of a newer version, is refused. If the scope were
    // ignored, the token could have all rights.
    let scopes = Scopes::parse(&payload.scope).map_err(|_| TokenError::Malformed)?;
    Ok(Claims {
        member: payload.take_member()?.map(Box::new),
        scopes,
        session: SessionId::parse(&payload.sid).ok_or(TokenError::Malformed)?,
        client_id: payload.client_id,
        database: payload.database,
        user: payload.uid,
        subject: payload.sub,
        owner: payload.super_user,
        shared: payload.shared,
        actor: payload.act.map(|actor| actor.sub),
        properties: payload.properties.map(Box::new),
        email: payload.email,
        issued_at,
        expires_at: Timestamp::from_seconds(payload.exp),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::KeyState;
    use tidegate_identity::MasterKey;
    use tidegate_identity::{SecureRandom, SystemRandom};

    const ISSUER: &str = "https://id.example";
    const NOW: Timestamp = Timestamp::from_seconds(1_800_000_000);

    fn ring() -> KeyRing {
        let random: &dyn SecureRandom = &SystemRandom::new();
        let master = MasterKey::generate(random).unwrap();
        let state = KeyState::Active { since: NOW };
        let record = SigningKey::generate(state, &master, random, NOW).unwrap();
        KeyRing::open(vec![record], &master).unwrap().unwrap()
    }

    /// Decodes a token that has these claims and is signed by the issuer's own key.
    fn verified(iss: &str, aud: &str, response_type: &str) -> Result<(), TokenError> {
        let ring = ring();
        let session = SessionId::from_bytes([7; 16]);
        let payload: Payload<_, Option<Map<String, Value>>> = Payload {
            iss,
            sub: "demo/alice",
            aud,
            client_id: "app",
            iat: NOW.seconds(),
            exp: NOW.seconds() + 3600,
            jti: "1",
            sid: &session.to_string(),
            scope: "",
            database: "demo",
            uid: "alice",
            super_user: false,
            properties: None,
            email: None,
            response_type,
            user_id: None,
            shared: false,
            kind: None,
            group: None,
            act: None,
        };
        let key = ring.active();
        let payload = URL_SAFE_NO_PAD.encode(json::text(&payload));
        let signed = format!("{}.{payload}", key.header());
        let token = format!("{signed}.{}", key.sign(signed.as_bytes()).unwrap());
        let segments = Segments::split(&token).unwrap();
        decode(&segments, &ring, ISSUER, (NOW, Duration::ZERO)).map(drop)
    }

    #[test]
    fn issuer_audience_and_kind_are_each_checked() {
        let elsewhere = "https://elsewhere.example";
        assert_eq!(verified(ISSUER, ISSUER, "token"), Ok(()));
        for (iss, aud, response_type) in [
            (elsewhere, ISSUER, "token"),
            (ISSUER, elsewhere, "token"),
            (ISSUER, ISSUER, "refresh"),
        ] {
            let fault = verified(iss, aud, response_type);
            assert_eq!(
                fault,
                Err(TokenError::NotForUs),
                "{iss} {aud} {response_type}"
            );
        }
    }
}
