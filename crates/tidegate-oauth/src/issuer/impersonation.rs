//! Tokens with which an owner acts as a user of its tenant.

use std::net::IpAddr;
use std::time::Duration;

use serde::Serialize;

use crate::token::{self, AccessToken};
use crate::{Claims, Error, GrantKind, Issuer, Result, Scopes, Session, json};
use tidegate_identity::{AuditKind, Error as IdentityError, Secret, SessionId, UserKey};

/// The lifetime of an impersonation token. The token cannot be refreshed.
const LIFETIME: Duration = Duration::from_mins(15);

/// An access token for another user.
#[derive(Clone, Debug)]
pub struct ImpersonationToken {
    /// The bearer token.
    pub access_token: Secret,
    /// The lifetime of the token in seconds.
    pub expires_in: u64,
    /// The scopes of the token, which equal the scopes of the owner's token.
    pub scopes: Scopes,
}

impl Issuer {
    /// Issues an access token for the user `name` of the caller's tenant and writes the audit event
    /// `impersonated`. The token has a session of its own, which ends with the user's sessions.
    ///
    /// Errors: [`Error::ImpersonationRefused`] if the caller is not the owner, if the tenant has
    /// switched impersonation off, or if `name` is the owner or a disabled user.
    /// [`IdentityError::NotFound`] for an unknown user.
    pub async fn impersonate(
        &self,
        caller: &Claims,
        name: &str,
        address: Option<IpAddr>,
    ) -> Result<ImpersonationToken> {
        let refused = |reason| Err(Error::ImpersonationRefused(reason));
        if !caller.owner {
            return refused("only the owner of the database acts as another user");
        }
        let store = &self.ports.store;
        if !store.impersonation(&caller.database).await? {
            return refused("the setting `impersonation` of the database is false");
        }
        let user = store.user(&UserKey::new(&caller.database, name)).await?;
        let user = user.ok_or(IdentityError::NotFound("user"))?;
        if user.key.is_owner() || user.disabled {
            return refused("neither the owner of a database nor a disabled user is impersonated");
        }
        let now = self.ports.clock.now();
        let expires_at = now.plus(LIFETIME);
        let session = Session {
            id: SessionId::from_bytes(self.ports.random.bytes()?),
            user: user.key.clone(),
            client_id: caller.client_id.clone(),
            grant: GrantKind::Impersonation,
            scopes: caller.scopes,
            personal: None,
            presented: 0,
            authenticated_at: now,
            created_at: now,
            refreshed_at: now,
            expires_at,
            closes_at: expires_at,
            ended: None,
        };
        store.insert_session(&session).await?;
        self.require_unchanged(&session, &user).await?;
        let event = self
            .ports
            .event(AuditKind::Impersonated, Some(&caller.database))
            .with_user(&user.key.name)
            .with_acting_user(Some(caller.user.clone()))
            .with_client(Some(&caller.client_id))
            .with_session(session.id);
        self.ports.audit(event.with_address(address)).await;
        let id = SessionId::from_bytes(self.ports.random.bytes()?).to_string();
        let access = AccessToken {
            actor: Some(&caller.user),
            issuer: self.settings.issuer(),
            user: &user,
            client_id: &session.client_id,
            session: session.id,
            scopes: session.scopes,
            id: &id,
            issued_at: now,
            expires_at,
        };
        let access = token::encode_access(&access, self.ring().active())?;
        Ok(ImpersonationToken {
            access_token: Secret::new(access),
            expires_in: LIFETIME.as_secs(),
            scopes: caller.scopes,
        })
    }
}

impl ImpersonationToken {
    /// The JSON of the response body. It contains a secret: do not store or log it.
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct Body<'a> {
            access_token: &'a str,
            token_type: &'a str,
            expires_in: u64,
            scope: String,
        }
        json::text(&Body {
            access_token: self.access_token.expose(),
            token_type: "Bearer",
            expires_in: self.expires_in,
            scope: self.scopes.to_string(),
        })
    }
}
