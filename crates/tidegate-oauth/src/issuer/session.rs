//! Opening, refreshing and ending sessions.

use super::grant::GrantContext;
use crate::token::{self, AccessToken, Issue};
use crate::{Error, GrantKind, Issuer, Result, Scopes, Session, TokenResponse};
use tidegate_identity::{
    AuditKind, EndReason, Error as IdentityError, Secret, SessionId, Timestamp, User,
};

impl Issuer {
    /// Opens a session for an authenticated user and issues its first tokens. `opened` consists of
    /// the grant and the scopes of the session. If the user was converted or changed after `user`
    /// was read, but is still the same person with the same password, the session is opened for the
    /// current record of the user.
    ///
    /// Errors: those of [`Self::require_unchanged`].
    pub(crate) async fn open_session(
        &self,
        cx: &GrantContext<'_>,
        user: &User,
        opened: (GrantKind, Scopes),
    ) -> Result<TokenResponse> {
        let changed = match self.open_session_once(cx, user, opened).await {
            Err(Error::Identity(error @ IdentityError::WrongCredentials)) => error,
            issued => return issued,
        };
        let now = self.ports.store.user(&user.key).await?;
        let is_same = |now: &User| {
            let credentials = |user: &User| (user.created_at, user.password_hash.clone());
            !now.disabled && credentials(now) == credentials(user)
        };
        let now = now.filter(is_same).ok_or(changed)?;
        self.open_session_once(cx, &now, opened).await
    }

    async fn open_session_once(
        &self,
        cx: &GrantContext<'_>,
        user: &User,
        opened: (GrantKind, Scopes),
    ) -> Result<TokenResponse> {
        let session = self.new_session(cx, user, opened)?;
        self.ports.store.insert_session(&session).await?;
        self.first_tokens(cx, &session, user, None).await
    }

    /// Creates a session without storing it. A session of the grant `client_credentials`, which has
    /// no refresh tokens, ends with its access token.
    pub(crate) fn new_session(
        &self,
        cx: &GrantContext<'_>,
        user: &User,
        (grant, scopes): (GrantKind, Scopes),
    ) -> Result<Session> {
        let now = self.ports.clock.now();
        let lifetimes = &self.settings.lifetimes;
        let lifetime = match grant {
            GrantKind::ClientCredentials => lifetimes.access_token,
            _ => lifetimes.session,
        };
        let closes_at = now.plus(lifetime);
        Ok(Session {
            id: SessionId::from_bytes(self.ports.random.bytes()?),
            user: user.key.clone(),
            client_id: cx.client.id.clone(),
            grant,
            scopes,
            personal: None,
            presented: 0,
            authenticated_at: now,
            created_at: now,
            refreshed_at: now,
            expires_at: now.plus(lifetimes.session_idle).min(closes_at),
            closes_at,
            ended: None,
        })
    }

    /// Checks that the user was not disabled, converted or deleted after `user` was read. Such a
    /// change ends the stored sessions of the user, but `session` may have been stored only after
    /// the change. For a member the check fails after any change of the record, because tokens
    /// contain the group and the properties. If the check fails, the session is ended.
    ///
    /// The default user is not checked.
    ///
    /// Errors: [`IdentityError::WrongCredentials`] if the check fails.
    pub(crate) async fn require_unchanged(&self, session: &Session, user: &User) -> Result<()> {
        let store = &self.ports.store;
        // The default user cannot be disabled, and guests are frequent, so the check is skipped.
        if user.default_user {
            return Ok(());
        }
        let stored = store.user(&user.key).await?;
        let may_stay = |stored: User| {
            let is_same = stored.kind() == user.kind() && !stored.disabled;
            is_same && (!user.is_member() || stored == *user)
        };
        if stored.is_some_and(may_stay) {
            return Ok(());
        }
        let now = self.ports.clock.now();
        let ended = store.end_session(session.id, EndReason::UserChanged, now);
        ended.await?;
        self.denylist.add(session.id, now);
        Err(IdentityError::WrongCredentials.into())
    }

    /// Issues the first tokens of a stored session, and writes the audit event. If an ID token is
    /// issued, it repeats `nonce`.
    ///
    /// Errors: those of [`Self::require_unchanged`].
    pub(crate) async fn first_tokens(
        &self,
        cx: &GrantContext<'_>,
        session: &Session,
        user: &User,
        nonce: Option<&str>,
    ) -> Result<TokenResponse> {
        self.require_unchanged(session, user).await?;
        let kind = AuditKind::SessionOpened(session.grant.name());
        let event = self.ports.event(kind, Some(&user.key.database));
        let event = event
            .with_user(&user.key.name)
            .with_client(Some(&session.client_id));
        self.ports
            .audit(event.with_session(session.id).with_address(cx.address))
            .await;
        let issue = Issue {
            number: 1,
            scopes: session.scopes,
            nonce,
        };
        self.tokens(session, user, &issue)
    }

    /// Issues an access token for a session; a refresh token, except for the grant
    /// `client_credentials`; and an ID token, if a person signed in and the scopes have `openid`.
    pub(crate) fn tokens(
        &self,
        session: &Session,
        user: &User,
        issue: &Issue<'_>,
    ) -> Result<TokenResponse> {
        let issuer = self.settings.issuer();
        let issued_at = session.refreshed_at;
        let expires_at = issued_at
            .plus(self.settings.lifetimes.access_token)
            .min(session.closes_at);
        let id = SessionId::from_bytes(self.ports.random.bytes()?).to_string();
        let access = AccessToken {
            actor: None,
            issuer,
            user,
            client_id: &session.client_id,
            session: session.id,
            scopes: issue.scopes,
            id: &id,
            issued_at,
            expires_at,
        };
        let access = token::encode_access(&access, self.ring().active())?;
        let refresh = (session.grant != GrantKind::ClientCredentials).then(|| {
            let encoded =
                self.refresh_tokens
                    .encode(issuer, &user.subject(), session, issue.number);
            Secret::new(encoded)
        });
        let id_token = self.id_token(session, user, (&access, expires_at), issue)?;
        let expires_in = expires_at.seconds() - issued_at.seconds();
        Ok(TokenResponse {
            access_token: Secret::new(access),
            token_type: "Bearer",
            expires_in: u64::try_from(expires_in).unwrap_or_default(),
            refresh_token: refresh,
            scopes: issue.scopes,
            id_token,
        })
    }

    /// Ends a session. The end takes effect on this node immediately, and on other nodes after
    /// their next refresh of the denylist.
    pub(crate) async fn end_session(
        &self,
        cx: &GrantContext<'_>,
        id: SessionId,
        reason: EndReason,
    ) -> Result<()> {
        let now = self.ports.clock.now();
        let ended = self.ports.store.end_session(id, reason, now).await?;
        self.denylist.add(id, now);
        if ended {
            // Only the audit event needs the record of the session. A failed read is ignored,
            // because the session has ended.
            let session = self.ports.store.session(id).await.ok().flatten();
            let database = match &session {
                Some(session) => Some(session.user.database.as_str()),
                None => cx.client.database.as_deref(),
            };
            let event = self.ports.event(AuditKind::SessionEnded(reason), database);
            let event = match &session {
                Some(session) => event.with_user(&session.user.name),
                None => event,
            };
            let event = event
                .with_client(Some(&cx.client.id))
                .with_session(id)
                .with_address(cx.address);
            self.ports.audit(event).await;
        }
        Ok(())
    }

    pub(crate) fn read_refresh_token(&self, token: &Secret) -> Option<crate::token::RefreshClaims> {
        self.refresh_tokens
            .decode(self.settings.issuer(), token.expose())
    }

    /// The time at which a session that is refreshed at `now` expires, unless it is refreshed
    /// again.
    pub(crate) fn idle_expiry(&self, now: Timestamp) -> Timestamp {
        now.plus(self.settings.lifetimes.session_idle)
    }
}
