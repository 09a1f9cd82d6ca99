//! Token revocation (RFC 7009) and introspection (RFC 7662).

use std::net::IpAddr;
use std::sync::Arc;

use serde::Serialize;

use crate::{Claims, Client, Error, Issuer, Result, Scopes, Session, TokenManagementRequest, json};
use tidegate_identity::{EndReason, Secret, SessionId, Timestamp};

impl Issuer {
    /// Revokes a token: ends the session that an access or refresh token belongs to. Revoking an
    /// invalid or already revoked token succeeds (RFC 7009, section 2.2).
    ///
    /// Errors: [`Error::UnknownClient`], [`Error::ClientNotAuthenticated`],
    /// [`Error::ForeignToken`].
    pub async fn revoke(
        &self,
        request: TokenManagementRequest,
        address: Option<IpAddr>,
    ) -> Result<()> {
        let client = self.require_client(&request.client).await?;
        self.authenticate(&client, &request.client, address).await?;
        if self.personal_tokens.hash(request.token.expose()).is_some() {
            // A personal access token belongs to no client, so no client can revoke it. The
            // response must be an error, because success would mean that the token is revoked.
            return Err(Error::ForeignToken);
        }
        let Some((session, owner)) = self.session_of(&request.token) else {
            return Ok(());
        };
        if owner != client.id {
            return Err(Error::ForeignToken);
        }
        let cx = self.grant_context(&client, address);
        self.end_session(&cx, session, EndReason::Revoked).await
    }

    /// Introspects a token. Reads the store, because another node may just have revoked the token.
    /// Invalid tokens and tokens of other tenants are reported as inactive, without a reason.
    ///
    /// Errors: [`Error::UnknownClient`], [`Error::ClientNotAuthenticated`],
    /// [`Error::PublicClient`].
    pub async fn introspect(
        &self,
        request: TokenManagementRequest,
        address: Option<IpAddr>,
    ) -> Result<Introspection> {
        let client = self.require_client(&request.client).await?;
        self.authenticate_confidential(&client, &request.client, address)
            .await?;
        let active = match self.authenticate_token(request.token.expose()).await {
            Ok(claims) => self.access_token(&claims, &client).await?,
            Err(_) => self.refresh_token(&request.token, &client).await?,
        };
        Ok(active.map_or(Introspection::Inactive, |token| {
            Introspection::Active(Box::new(token))
        }))
    }

    /// The session that a token belongs to, and the client that the token was issued to. The token
    /// must have a valid signature, but may have expired.
    fn session_of(&self, token: &Secret) -> Option<(SessionId, String)> {
        if let Ok(claims) = self.decode_signed(token.expose()) {
            return Some((claims.session, claims.client_id.clone()));
        }
        self.read_refresh_token(token)
            .map(|claims| (claims.session, claims.client_id))
    }

    async fn access_token(
        &self,
        claims: &Arc<Claims>,
        client: &Client,
    ) -> Result<Option<ActiveToken>> {
        let Some(session) = self.live_session(claims.session, client).await? else {
            return Ok(None);
        };
        let token = self.active_token(&session, "Bearer", claims.issued_at, claims.expires_at);
        Ok(Some(ActiveToken {
            subject: Some(claims.subject.clone()),
            user_id: claims.user_id().map(str::to_owned),
            scopes: claims.scopes,
            ..token
        }))
    }

    async fn refresh_token(&self, token: &Secret, client: &Client) -> Result<Option<ActiveToken>> {
        let now = self.ports.clock.now();
        let Some(claims) = self
            .read_refresh_token(token)
            .filter(|c| now < c.expires_at)
        else {
            return Ok(None);
        };
        let session = self.live_session(claims.session, client).await?;
        let current = session.filter(|session| session.presented <= claims.number);
        Ok(current.map(|session| {
            self.active_token(
                &session,
                "refresh_token",
                session.refreshed_at,
                claims.expires_at,
            )
        }))
    }

    async fn live_session(&self, id: SessionId, client: &Client) -> Result<Option<Session>> {
        let session = self.ports.store.session(id).await?;
        let now = self.ports.clock.now();
        Ok(session.filter(|s| s.is_alive(now) && client.belongs_to(&s.user.database)))
    }

    fn active_token(
        &self,
        session: &Session,
        token_type: &'static str,
        issued_at: Timestamp,
        expires_at: Timestamp,
    ) -> ActiveToken {
        ActiveToken {
            issuer: self.settings.issuer().to_owned(),
            subject: None,
            user_id: None,
            client_id: session.client_id.clone(),
            username: session.user.name.clone(),
            database: session.user.database.clone(),
            session: session.id,
            scopes: session.scopes,
            token_type,
            issued_at,
            expires_at,
        }
    }
}

/// The introspection response (RFC 7662, section 2.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Introspection {
    /// The token is not valid, or belongs to a tenant other than the client's.
    Inactive,
    /// The token is valid now.
    Active(Box<ActiveToken>),
}

/// The properties of a valid token in an introspection response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveToken {
    /// The issuer's URL.
    pub issuer: String,
    /// The claim `sub` of an access token; `None` for a refresh token.
    pub subject: Option<String>,
    /// The result of `tidegate.user_id()` for the user of an access token; `None` for the default
    /// user, and for a refresh token.
    pub user_id: Option<String>,
    /// The client that the token was issued to.
    pub client_id: String,
    /// The user's name.
    pub username: String,
    /// The tenant's database.
    pub database: String,
    /// The session that the token belongs to.
    pub session: SessionId,
    /// The scopes of the token.
    pub scopes: Scopes,
    /// `Bearer` for an access token, `refresh_token` for a refresh token.
    pub token_type: &'static str,
    /// When the token was issued; for a refresh token, when its session was most recently
    /// refreshed.
    pub issued_at: Timestamp,
    /// When the token expires.
    pub expires_at: Timestamp,
}

impl Introspection {
    /// The JSON of the response body.
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct Body<'a> {
            active: bool,
            scope: String,
            client_id: &'a str,
            username: &'a str,
            token_type: &'a str,
            exp: i64,
            iat: i64,
            #[serde(skip_serializing_if = "Option::is_none")]
            sub: Option<&'a str>,
            aud: &'a str,
            iss: &'a str,
            sid: String,
            database: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            user_id: Option<&'a str>,
        }
        let Self::Active(token) = self else {
            return r#"{"active":false}"#.to_owned();
        };
        let body = Body {
            active: true,
            scope: token.scopes.to_string(),
            client_id: &token.client_id,
            username: &token.username,
            token_type: token.token_type,
            exp: token.expires_at.seconds(),
            iat: token.issued_at.seconds(),
            sub: token.subject.as_deref(),
            aud: &token.issuer,
            iss: &token.issuer,
            sid: token.session.to_string(),
            database: &token.database,
            user_id: token.user_id.as_deref(),
        };
        json::text(&body)
    }
}
