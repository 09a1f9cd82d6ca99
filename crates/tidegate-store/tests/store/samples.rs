//! Records with sample values.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_identity::{SecretHash, SessionId, SignUpUser, Timestamp, User, UserKey, UserKind};
use tidegate_oauth::{
    Client, ClientAuthentication, ExpiringSecret, GrantKind, GrantSet, KeyState, Scopes, Session,
    SigningKeyRecord,
};

/// A time with milliseconds, so that a loss of precision is noticed.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_795_173_603_042);

pub(crate) fn user(database: &str, name: &str) -> User {
    let key = UserKey::new(database, name);
    let Value::Object(properties) = json!({"zone": "b", "age": 1.50, "tags": ["ä", null]}) else {
        unreachable!("an object");
    };
    User {
        role: Some(key.to_string()),
        id: None,
        key,
        password_hash: Some("$argon2id$v=19$m=8,t=1,p=1$c2FsdA$aGFzaA".to_owned()),
        email: Some("someone@example.org".to_owned()),
        confirmed_email: Some("someone@example.org".to_owned()),
        properties: Some(properties),
        user_groups: Vec::new(),
        default_user: false,
        disabled: false,
        created_at: NOW,
    }
}

pub(crate) fn client(id: &str, database: &str) -> Client {
    Client {
        id: id.to_owned(),
        database: Some(database.to_owned()),
        name: "An \"app\" \\ ünïcode".to_owned(),
        redirect_uris: vec![
            "http://127.0.0.1:5173/callback?a={b},c".to_owned(),
            String::new(),
        ],
        homepage: None,
        description: Some(String::new()),
        authentication: ClientAuthentication::Confidential {
            current: SecretHash::from_bytes([7; 32]),
            previous: Some(ExpiringSecret {
                hash: SecretHash::from_bytes([0xab; 32]),
                expires_at: NOW.plus(Duration::from_hours(24)),
            }),
        },
        confirm: true,
        two_factor: false,
        allow_signup: true,
        social_signup: false,
        signup: SignUpUser {
            kind: UserKind::Member,
            group: Some("staff".to_owned()),
        },
        grants: GrantSet::Only(vec![GrantKind::Password, GrantKind::RefreshToken]),
        service_user: None,
        created_at: NOW,
    }
}

pub(crate) fn session(number: u128, database: &str, user: &str, client_id: &str) -> Session {
    Session {
        id: SessionId::from_bytes((number + (0xfe << 120)).to_be_bytes()),
        user: UserKey::new(database, user),
        client_id: client_id.to_owned(),
        grant: GrantKind::Password,
        scopes: Scopes::parse("read sql").unwrap(),
        personal: None,
        presented: 0,
        authenticated_at: NOW.plus(Duration::from_secs(7)),
        created_at: NOW,
        refreshed_at: NOW,
        expires_at: NOW.plus(Duration::from_secs(30)),
        closes_at: NOW.plus(Duration::from_secs(90)),
        ended: None,
    }
}

pub(crate) fn key(id: &str, state: &str) -> SigningKeyRecord {
    SigningKeyRecord {
        id: id.to_owned(),
        state: match state {
            "next" => KeyState::Next,
            "active" => KeyState::Active { since: NOW },
            _ => KeyState::Retired { since: NOW },
        },
        public_key: vec![4; 65],
        sealed_private_key: (0..=255).collect(),
        created_at: NOW,
    }
}
