//! Tests of an issuer whose store becomes unavailable and recovers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tidegate_identity::{
    AnonymousSql, AttemptKey, AttemptLimit, AttemptOutcome, AuditEvent, AuditPage, AuditSince,
    BrowserSession, CredentialKind, EndReason, IdentityStore, LinkedIdentity, NewUser, Passkey,
    RemovalOutcome, RequestContext, SecondFactor, Secret, SecretHash, SessionId, StoreError,
    StoreResult, TenantName, Timestamp, User, UserKey, UserKind, UserName, UserQuery, WriteOutcome,
};
use tidegate_oauth::{
    Approval, AuthorizationCode, Client, Consent, DeviceCode, DevicePoll, EndedSession, ErrorKind,
    GrantKind, IssuerStore, MemoryStore, Ports, PurgeBefore, RefreshOutcome, Result, Session,
    SessionEnd, SigningKeyRecord, TokenResponse,
};

use crate::fixture::{Fixture, HERE, about, node};

/// A store that tests can make unavailable: the audit log alone, or all of it.
struct Unsteady {
    inner: Arc<MemoryStore>,
    away: AtomicBool,
    audit_away: AtomicBool,
    /// How many calls succeed until one fails, not counting those of the audit log.
    until_failure: Mutex<Option<usize>>,
    /// A user who changes just before the next session is stored, and the record after the change:
    /// `None` if the user is dropped.
    changing: Mutex<Option<(User, Option<User>)>>,
}

impl Unsteady {
    async fn before(&self, method: &str) {
        let changing = match method {
            "insert_session" => self.changing.lock().unwrap().take(),
            _ => None,
        };
        match changing {
            Some((user, None)) => {
                let now = Timestamp::default();
                self.inner.delete_user(&user.key, now).await.unwrap();
            }
            Some((user, Some(changed))) => {
                self.inner.update_user(&user, &changed).await.unwrap();
            }
            None => {}
        }
    }

    /// Whether this call is the one that fails.
    fn fails(&self) -> bool {
        let mut left = self.until_failure.lock().unwrap();
        let now = *left;
        *left = now.and_then(|calls| calls.checked_sub(1));
        now == Some(0)
    }

    /// Fails if the store is away or the call is the one that fails.
    fn check(&self, audit: bool) -> StoreResult<()> {
        let away = self.away.load(Ordering::SeqCst);
        if away || (audit && self.audit_away.load(Ordering::SeqCst)) || (!audit && self.fails()) {
            return Err(StoreError::Unavailable("no route to it".into()));
        }
        Ok(())
    }
}

macro_rules! pass {
    ($store:ident: $($name:ident($($argument:ident: $type:ty),*) -> $out:ty;)*) => {
        #[async_trait]
        impl $store for Unsteady {
            $(async fn $name(&self, $($argument: $type),*) -> StoreResult<$out> {
                self.before(stringify!($name)).await;
                // A call that fails has taken effect, as if only the response were lost.
                let response = self.inner.$name($($argument),*).await;
                self.check(stringify!($name) == "append_audit")?;
                response
            })*
        }
    };
}

pass! { IdentityStore:
    insert_browser_session(session: &BrowserSession) -> ();
    browser_session(id: SecretHash) -> Option<BrowserSession>;
    touch_browser_session(id: SecretHash, seen: Timestamp, expires: Timestamp) -> ();
    delete_browser_session(id: SecretHash) -> bool;
    browser_sessions_of_user(key: &UserKey, now: Timestamp) -> Vec<BrowserSession>;
    second_factor(key: &UserKey) -> Option<SecondFactor>;
    insert_second_factor(key: &UserKey, factor: &SecondFactor, codes: &[SecretHash]) -> bool;
    use_second_factor_step(key: &UserKey, step: u64) -> bool;
    use_recovery_code(key: &UserKey, code: SecretHash) -> bool;
    delete_second_factor(key: &UserKey) -> bool;
    passkey(id: &str) -> Option<(UserKey, Passkey)>;
    passkeys_of_user(key: &UserKey) -> Vec<Passkey>;
    insert_passkey(key: &UserKey, passkey: &Passkey) -> bool;
    rename_passkey(key: &UserKey, id: &str, name: &str) -> bool;
    use_passkey(read: &Passkey, record: &str, at: Timestamp) -> bool;
    delete_passkey(key: &UserKey, id: &str) -> RemovalOutcome;
    delete_credentials(key: &UserKey, kind: CredentialKind) -> Vec<String>;
    user(key: &UserKey) -> Option<User>;
    users_with_role(database: &str) -> Vec<User>;
    user_page(database: &str, query: &UserQuery) -> Vec<User>;
    user_with_id(database: &str, id: &str) -> Option<User>;
    member_groups(database: &str) -> Vec<String>;
    insert_members(members: &[User]) -> Option<usize>;
    has_similar_user(database: &str, name: &str) -> bool;
    users_with_email(database: &str, email: &str) -> Vec<User>;
    user_of_identity(database: &str, issuer: &str, subject: &str) -> Option<User>;
    insert_identity(key: &UserKey, identity: &LinkedIdentity) -> bool;
    identities_of_user(key: &UserKey) -> Vec<LinkedIdentity>;
    delete_identity(key: &UserKey, issuer: &str, subject: &str) -> RemovalOutcome;
    default_user(database: &str) -> Option<User>;
    anonymous_sql(database: &str) -> AnonymousSql;
    set_anonymous_sql(database: &str, setting: AnonymousSql) -> bool;
    impersonation(database: &str) -> bool;
    set_impersonation(database: &str, allowed: bool) -> bool;
    insert_user(user: &User) -> WriteOutcome;
    update_user(read: &User, user: &User) -> WriteOutcome;
    set_password_hash(key: &UserKey, before: Option<&str>, hash: &str) -> bool;
    reserve_id(user: &User) -> ();
    delete_user(key: &UserKey, at: Timestamp) -> bool;
    delete_tenant(database: &str, at: Timestamp) -> ();
    end_sessions_of_user(key: &UserKey, reason: EndReason, at: Timestamp) -> Vec<SessionId>;
    count_attempt(key: &AttemptKey, limit: &AttemptLimit, now: Timestamp) -> AttemptOutcome;
    refund_attempt(key: &AttemptKey) -> ();
    clear_attempts(key: &AttemptKey) -> ();
    append_audit(events: &[AuditEvent]) -> ();
    audit(database: &str, since: AuditSince, limit: u32) -> AuditPage;
}

pass! { IssuerStore:
    insert_code(code: &AuthorizationCode) -> ();
    code(hash: SecretHash) -> Option<AuthorizationCode>;
    redeem_code(hash: SecretHash, session: &Session) -> bool;
    insert_device_code(device: &DeviceCode) -> bool;
    device_code(user_code: &str) -> Option<DeviceCode>;
    poll_device_code(hash: SecretHash, client_id: &str, now: Timestamp) -> Option<DevicePoll>;
    decide_device_code(code: &str, by: Option<&Approval>, now: Timestamp) -> bool;
    redeem_device_code(hash: SecretHash, session: &Session) -> bool;
    sessions_of_user(key: &UserKey, client_id: Option<&str>, now: Timestamp) -> Vec<Session>;
    claim_master_key(fingerprint: &str) -> String;
    client(id: &str) -> Option<Client>;
    clients(database: &str) -> Vec<Client>;
    redirect_uris_from(start: &str) -> Vec<String>;
    insert_client(client: &Client) -> bool;
    update_client(read: &Client, client: &Client) -> bool;
    delete_client(id: &str, at: Timestamp) -> bool;
    end_sessions_of_client(id: &str, grant: GrantKind, end: SessionEnd) -> ();
    sessions(database: &str, now: Timestamp, limit: u32) -> Vec<Session>;
    insert_session(session: &Session) -> ();
    session(id: SessionId) -> Option<Session>;
    present_refresh_token(
        id: SessionId, number: u64, now: Timestamp, expires_at: Timestamp
    ) -> RefreshOutcome;
    use_personal_token(hash: SecretHash, now: Timestamp) -> Option<Session>;
    personal_tokens(
        database: &str, user: Option<&str>, now: Timestamp, limit: u32
    ) -> Vec<Session>;
    consent(key: &UserKey, client_id: &str) -> Option<Consent>;
    consents_of_user(key: &UserKey) -> Vec<Consent>;
    put_consent(key: &UserKey, consent: &Consent) -> ();
    delete_consent(key: &UserKey, client_id: &str) -> bool;
    end_session(id: SessionId, reason: EndReason, at: Timestamp) -> bool;
    ended_sessions(since: Timestamp) -> Vec<EndedSession>;
    signing_keys() -> Vec<SigningKeyRecord>;
    insert_signing_key(key: &SigningKeyRecord) -> bool;
    promote_signing_key(next: &str, active: &str, at: Timestamp) -> bool;
    delete_signing_key(id: &str) -> bool;
    purge(before: PurgeBefore) -> u64;
    purge_guests(before: Timestamp, kept: u32) -> u64;
}

async fn unsteady() -> (Fixture, Arc<Unsteady>) {
    let api = Fixture::start().await;
    let inner = api.store.clone();
    let store = Arc::new(Unsteady {
        inner,
        away: AtomicBool::default(),
        audit_away: AtomicBool::default(),
        until_failure: Mutex::default(),
        changing: Mutex::default(),
    });
    let issuer = node(&Ports {
        store: store.clone(),
        ..api.ports.clone()
    })
    .await;
    (Fixture { issuer, ..api }, store)
}

fn unavailable<T: std::fmt::Debug>(result: Result<T>) {
    let error = result.unwrap_err();
    assert_eq!(
        (error.code(), error.kind()),
        ("temporarily_unavailable", ErrorKind::Unavailable)
    );
    assert_eq!(error.retry_after(), Some(1));
}

#[tokio::test]
async fn tokens_are_verified_during_a_store_outage_and_issued_after_it() {
    let (api, store) = unsteady().await;
    let tokens = api.alice().await;
    store.away.store(true, Ordering::SeqCst);
    api.issuer.verify(tokens.access_token.expose()).unwrap();
    unavailable(api.password("alice", "alice1234").await);
    unavailable(api.refresh(tokens.refresh_token.as_ref().unwrap()).await);
    unavailable(api.revoke(tokens.refresh_token.as_ref().unwrap()).await);
    unavailable(
        api.guest(&[("database", "demo"), ("client_id", "app")])
            .await,
    );
    unavailable(
        api.issuer
            .introspect(about("server", &tokens.access_token), HERE)
            .await,
    );
    unavailable(api.issuer.refresh_denylist().await);
    store.away.store(false, Ordering::SeqCst);
    api.refresh(tokens.refresh_token.as_ref().unwrap())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_failed_audit_event_fails_no_request() {
    let (api, store) = unsteady().await;
    store.audit_away.store(true, Ordering::SeqCst);
    let tokens: TokenResponse = api.alice().await;
    api.revoke(&tokens.access_token).await.unwrap();
    assert_eq!(
        api.password("alice", "wrong-password")
            .await
            .unwrap_err()
            .code(),
        "invalid_grant"
    );
}

/// The member `mia` with the password `mia-password`.
async fn mia(api: &Fixture) -> User {
    let name = UserName::parse("mia").unwrap();
    let mia = NewUser {
        kind: UserKind::Member,
        password: Some(Secret::new("mia-password")),
        user_groups: vec!["people".to_owned()],
        ..NewUser::new(TenantName::adopted("demo").unwrap(), name)
    };
    api.directory.create_user(mia).await.unwrap()
}

#[tokio::test]
async fn a_member_who_is_dropped_or_disabled_while_it_signs_in_gets_no_token() {
    let (api, store) = unsteady().await;
    let mia = mia(&api).await;
    let disabled = User {
        disabled: true,
        ..mia.clone()
    };
    for (before, after) in [(&mia, Some(&disabled)), (&disabled, None)] {
        // A disabled user is refused before the session is stored, so mia is enabled again.
        store.inner.update_user(before, &mia).await.unwrap();
        *store.changing.lock().unwrap() = Some((mia.clone(), after.cloned()));
        let error = api.password("mia", "mia-password").await.unwrap_err();
        assert_eq!(error.code(), "invalid_grant");
        let open = store
            .inner
            .sessions_of_user(&mia.key, None, api.ports.clock.now());
        assert!(open.await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_user_who_is_converted_while_it_signs_in_gets_a_token_of_its_new_kind() {
    let (api, store) = unsteady().await;
    let member = mia(&api).await;
    let with_role = User {
        role: Some("demo/mia".to_owned()),
        ..member.clone()
    };
    for (before, after) in [(&member, &with_role), (&with_role, &member)] {
        *store.changing.lock().unwrap() = Some((before.clone(), Some(after.clone())));
        let token = api.password("mia", "mia-password").await.unwrap();
        let claims = api.issuer.verify(token.access_token.expose()).unwrap();
        assert_eq!(claims.member.is_some(), after.is_member());
        // The session of the previous kind has ended, and only the new one is left.
        let open = store
            .inner
            .sessions_of_user(&member.key, None, api.ports.clock.now());
        let open: Vec<_> = open.await.unwrap().iter().map(|open| open.id).collect();
        assert_eq!(open, [claims.session]);
        let now = api.ports.clock.now();
        let ended = store
            .inner
            .end_session(claims.session, EndReason::Revoked, now);
        assert!(ended.await.unwrap());
    }
}

/// The token of a link that resets alice's password.
async fn reset_link(api: &Fixture) -> String {
    let messages = api.issuer.identity().reset_emails("demo", "alice").await;
    let text = messages.unwrap().remove(0).text;
    let (_, rest) = text.split_once("/reset?token=").unwrap();
    rest.split_whitespace().next().unwrap().to_owned()
}

#[tokio::test]
async fn a_reset_that_fails_half_way_can_be_repeated_or_leaves_nothing_of_an_intruder() {
    let key = UserKey::new("demo", "alice");
    let password = Secret::new("alice5678");
    for calls in 0.. {
        let (api, store) = unsteady().await;
        let identity = LinkedIdentity {
            provider: None,
            issuer: "https://id.example".to_owned(),
            subject: "intruder".to_owned(),
            name: None,
            linked_at: None,
        };
        let linked = store.inner.insert_identity(&key, &identity).await;
        assert!(linked.unwrap());
        let intruder = api.alice().await;
        let link = reset_link(&api).await;
        let reset = || {
            let context = RequestContext::default();
            let (issuer, link, password) = (api.issuer.clone(), link.clone(), password.clone());
            async move {
                issuer
                    .reset_password(&link, (&password, true), &context)
                    .await
            }
        };
        *store.until_failure.lock().unwrap() = Some(calls);
        let first = reset().await;
        let has_ended = first.is_ok();
        assert!(store.until_failure.lock().unwrap().take().is_some() == has_ended);
        if api.issuer.identity().reset_user(&link).await.is_ok() {
            unavailable(first);
            reset().await.unwrap();
        }
        let left = store.inner.identities_of_user(&key).await.unwrap();
        assert!(left.is_empty(), "after {calls} calls: {left:?}");
        api.issuer.refresh_denylist().await.unwrap();
        api.issuer
            .verify(intruder.access_token.expose())
            .unwrap_err();
        api.password("alice", "alice5678").await.unwrap();
        if has_ended {
            break;
        }
    }
}
