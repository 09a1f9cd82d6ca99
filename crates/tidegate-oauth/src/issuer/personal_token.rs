//! Personal access tokens, which a user creates for its own programs. Each token is a session of
//! its own, and ends for the same reasons as other sessions: for example when its user is dropped
//! or disabled, becomes the default user, or gets another password.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::Issuer;
use crate::{Claims, Error, GrantKind, MemberClaims, PersonalToken, Result, Scopes, Session};
use tidegate_identity::{
    AuditKind, EndReason, Error as IdentityError, Secret, SecretHash, SessionId, Timestamp, User,
    UserKey,
};

/// The lifetime of a token for which no expiry is requested.
const LIFETIME: Duration = Duration::from_hours(24 * 90);
const MAX_LIFETIME: Duration = Duration::from_hours(24 * 366);
/// The maximum number of valid tokens that a user may have.
const MAX_TOKENS: u32 = 100;
/// The maximum number of tokens that a list of tokens returns.
const MAX_LISTED: u32 = 1_000;
const MAX_NAME_LENGTH: usize = 100;

/// A personal access token to create.
#[derive(Clone, Debug)]
pub struct NewPersonalToken {
    /// The name of the token in lists: 1 to 100 bytes without control characters.
    pub name: String,
    /// When the token expires: at most 366 days ahead. `None` for 90 days ahead.
    pub expires_at: Option<Timestamp>,
    /// The scopes of the token.
    pub scopes: Scopes,
}

/// A personal access token that was created.
#[derive(Clone, Debug)]
pub struct CreatedPersonalToken {
    /// The record of the token.
    pub session: Session,
    /// The token, which is shown only once.
    pub secret: Secret,
}

impl Issuer {
    /// The claims of the personal access token with this hash; `None` if there is no such token.
    /// Reads the store, and caches the result.
    pub(super) async fn look_up_personal_token(
        &self,
        hash: SecretHash,
        now: Timestamp,
    ) -> Result<Option<Arc<Claims>>> {
        let store = &self.ports.store;
        let claims = match store.use_personal_token(hash, now).await? {
            Some(session) => {
                let user = store.user(&session.user).await?;
                let user = user.filter(|user| !user.disabled);
                user.map(|user| Arc::new(claims(&session, user)))
            }
            None => None,
        };
        self.personal_tokens.keep(hash, claims.clone(), now);
        Ok(claims)
    }

    /// Creates a personal access token of the caller.
    ///
    /// Errors: [`Error::PersonalTokenRefused`] for the default user, for an owner who acts as a
    /// user, and for a caller that itself uses a personal access token or the grant
    /// `client_credentials`; [`Error::InvalidScope`] for scopes that the caller's token lacks;
    /// [`Error::TooManyPersonalTokens`]; [`IdentityError::InvalidField`].
    pub async fn create_personal_token(
        &self,
        caller: &Claims,
        new: NewPersonalToken,
        address: Option<IpAddr>,
    ) -> Result<CreatedPersonalToken> {
        let refused = |reason| Err(Error::PersonalTokenRefused(reason));
        if caller.actor.is_some() {
            return refused("a user makes its tokens itself, not the owner who acts as the user");
        }
        if caller.client_id.is_empty() {
            return refused("a personal access token cannot make another one; sign in for that");
        }
        let session = self.ports.store.session(caller.session).await?;
        if session.is_some_and(|session| session.grant == GrantKind::ClientCredentials) {
            // A personal access token would stay valid after the client is dropped or its secret is
            // rotated.
            return refused("a client with its own credentials makes no tokens; sign in for that");
        }
        let scopes = caller.scopes.narrowed_to(new.scopes)?;
        let key = UserKey::new(&caller.database, &caller.user);
        let new = NewPersonalToken { scopes, ..new };
        self.issue_personal_token(key, new, (Some(caller.acting()), address))
            .await
    }

    /// Creates a personal access token of any user, for the operator.
    ///
    /// Errors: [`IdentityError::InvalidField`], [`Error::TooManyPersonalTokens`],
    /// [`Error::PersonalTokenRefused`] for the default user, and [`IdentityError::NotFound`] if the
    /// user does not exist.
    pub async fn issue_personal_token(
        &self,
        key: UserKey,
        new: NewPersonalToken,
        (actor, address): (Option<&str>, Option<IpAddr>),
    ) -> Result<CreatedPersonalToken> {
        let (store, now) = (&self.ports.store, self.ports.clock.now());
        let expires_at = new.expires_at.unwrap_or_else(|| now.plus(LIFETIME));
        check(&new.name, expires_at, now)?;
        let user = store.user(&key).await?;
        let user = user.ok_or(IdentityError::NotFound("user"))?;
        if user.default_user {
            let reason = "the default user, which anonymous callers share, has no tokens";
            return Err(Error::PersonalTokenRefused(reason));
        }
        let tokens = store.personal_tokens(&key.database, Some(&key.name), now, MAX_TOKENS);
        if tokens.await?.len() >= MAX_TOKENS as usize {
            return Err(Error::TooManyPersonalTokens);
        }
        let secret = self.personal_tokens.generate(&*self.ports.random)?;
        let session = Session {
            id: SessionId::from_bytes(self.ports.random.bytes()?),
            user: user.key.clone(),
            client_id: String::new(),
            grant: GrantKind::PersonalToken,
            scopes: new.scopes,
            personal: Some(Box::new(PersonalToken {
                name: new.name,
                hash: SecretHash::of(&secret),
            })),
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
        let kind = AuditKind::TokenCreated;
        self.audit_personal_token(kind, &session, (actor, address))
            .await;
        Ok(CreatedPersonalToken { session, secret })
    }

    /// The live personal access tokens that the caller may see, the most recently used first, at
    /// most 1,000. These are the caller's own tokens. For the owner of the tenant, these are the
    /// tokens of all users, or only of `user` if it is given.
    ///
    /// Errors: [`IdentityError::NotFound`] when a user who is not the owner names another user.
    pub async fn personal_tokens(
        &self,
        caller: &Claims,
        user: Option<&str>,
    ) -> Result<Vec<Session>> {
        let own = Some(caller.user.as_str());
        let user = if caller.owner { user } else { user.or(own) };
        if !caller.owner && user != own {
            return Err(IdentityError::NotFound("user").into());
        }
        let now = self.ports.clock.now();
        let store = &self.ports.store;
        Ok(store
            .personal_tokens(&caller.database, user, now, MAX_LISTED)
            .await?)
    }

    /// Revokes personal access tokens that the caller may see. The revocation takes effect on this
    /// node immediately, and on other nodes after their next refresh of the denylist.
    ///
    /// Errors: [`IdentityError::NotFound`] if the caller may not see one of the tokens, or if a
    /// token is not valid any more. No token is then revoked.
    pub async fn revoke_personal_tokens(
        &self,
        caller: &Claims,
        ids: &[SessionId],
        address: Option<IpAddr>,
    ) -> Result<()> {
        let now = self.ports.clock.now();
        let mut found = Vec::with_capacity(ids.len());
        for id in ids {
            let session = self.ports.store.session(*id).await?;
            let session = session.filter(|session| {
                let visible = caller.owner || session.user.name == caller.user;
                let of_tenant = session.user.database == caller.database;
                visible && of_tenant && session.personal.is_some() && session.is_alive(now)
            });
            found.push(session.ok_or(IdentityError::NotFound("token"))?);
        }
        for session in &found {
            let actor = Some(caller.acting());
            self.revoke_personal_token(session, (actor, address))
                .await?;
        }
        Ok(())
    }

    /// Revokes a personal access token. The audit event names `actor`, the acting user (`None` for
    /// the operator), and `address`, the client's address.
    pub async fn revoke_personal_token(
        &self,
        session: &Session,
        (actor, address): (Option<&str>, Option<IpAddr>),
    ) -> Result<()> {
        let now = self.ports.clock.now();
        let reason = EndReason::Revoked;
        let ended = self.ports.store.end_session(session.id, reason, now);
        let ended = ended.await?;
        self.denylist.add(session.id, now);
        if ended {
            let kind = AuditKind::TokenRevoked;
            self.audit_personal_token(kind, session, (actor, address))
                .await;
        }
        Ok(())
    }

    async fn audit_personal_token(
        &self,
        kind: AuditKind,
        session: &Session,
        (actor, address): (Option<&str>, Option<IpAddr>),
    ) {
        let name = session.personal.as_ref().map(|token| token.name.as_str());
        let event = self
            .ports
            .event(kind, Some(&session.user.database))
            .with_user(&session.user.name)
            .with_session(session.id)
            .with_detail(name.unwrap_or_default())
            .with_acting_user(actor.map(str::to_owned))
            .with_address(address);
        self.ports.audit(event).await;
    }
}

fn check(name: &str, expires_at: Timestamp, now: Timestamp) -> Result<()> {
    let invalid = |field, expected| Err(IdentityError::InvalidField { field, expected }.into());
    let is_name = !name.trim().is_empty() && !name.contains(char::is_control);
    if !is_name || name.len() > MAX_NAME_LENGTH {
        return invalid(
            "name",
            "a text of 1 to 100 bytes without control characters",
        );
    }
    if expires_at <= now || expires_at > now.plus(MAX_LIFETIME) {
        return invalid("expires_at", "a time within the next 366 days");
    }
    Ok(())
}

/// The claims of a personal access token. Their `client_id` is empty, because the token belongs to
/// no client.
fn claims(session: &Session, user: User) -> Claims {
    Claims {
        member: MemberClaims::of(&user).map(Box::new),
        subject: user.subject().into_owned(),
        session: session.id,
        client_id: String::new(),
        database: session.user.database.clone(),
        owner: user.key.is_owner(),
        user: user.key.name,
        shared: user.default_user,
        scopes: session.scopes,
        actor: None,
        properties: user.properties.map(Box::new),
        email: user.email,
        issued_at: session.created_at,
        expires_at: session.closes_at,
    }
}
