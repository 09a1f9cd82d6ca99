//! Tests of an issuer whose store becomes unavailable and recovers.

use std::future::ready;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tidegate_identity::{
    AnonymousSql, AttemptKey, AttemptLimit, AttemptOutcome, AuditEvent, AuditPage, AuditSince,
    BrowserSession, CredentialKind, EndReason, IdentityStore, LinkedIdentity, NewUser, Passkey,
    RemovalOutcome, RequestContext, SecondFactor, Secret, SecretHash, SessionId, StoreError,
    StoreFuture, TenantName, Timestamp, User, UserKey, UserKind, UserName, UserQuery, WriteOutcome,
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
    fn before(&self, method: &str) {
        let changing = match method {
            "insert_session" => self.changing.lock().unwrap().take(),
            _ => None,
        };
        // The memory store acts when it is called.
        match changing {
            Some((user, None)) => drop(self.inner.delete_user(&user.key, Timestamp::default())),
            Some((user, Some(changed))) => drop(self.inner.update_user(&user, &changed)),
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

    fn response<'a, T>(&self, audit: bool, response: StoreFuture<'a, T>) -> StoreFuture<'a, T>
    where
        T: Send + 'a,
    {
        let away = self.away.load(Ordering::SeqCst);
        if away || (audit && self.audit_away.load(Ordering::SeqCst)) || (!audit && self.fails()) {
            return Box::pin(ready(Err(StoreError::Unavailable("no route to it".into()))));
        }
        response
    }
}

macro_rules! pass {
    ($($name:ident($($argument:ident: $type:ty),*) -> $out:ty;)*) => {
        $(fn $name<'a>(&'a self, $($argument: $type),*) -> StoreFuture<'a, $out> {
            self.before(stringify!($name));
            let audit = stringify!($name) == "append_audit";
            self.response(audit, self.inner.$name($($argument),*))
        })*
    };
}

#[expect(
    clippy::elidable_lifetime_names,
    reason = "one pattern for methods with and without borrows"
)]
impl IdentityStore for Unsteady {
    pass! {
        insert_browser_session(session: &'a BrowserSession) -> ();
        browser_session(id: SecretHash) -> Option<BrowserSession>;
        touch_browser_session(id: SecretHash, seen: Timestamp, expires: Timestamp) -> ();
        delete_browser_session(id: SecretHash) -> bool;
        browser_sessions_of_user(key: &'a UserKey, now: Timestamp) -> Vec<BrowserSession>;
        second_factor(key: &'a UserKey) -> Option<SecondFactor>;
        insert_second_factor(key: &'a UserKey, factor: &'a SecondFactor, codes: &'a [SecretHash]) -> bool;
        use_second_factor_step(key: &'a UserKey, step: u64) -> bool;
        use_recovery_code(key: &'a UserKey, code: SecretHash) -> bool;
        delete_second_factor(key: &'a UserKey) -> bool;
        passkey(id: &'a str) -> Option<(UserKey, Passkey)>;
        passkeys_of_user(key: &'a UserKey) -> Vec<Passkey>;
        insert_passkey(key: &'a UserKey, passkey: &'a Passkey) -> bool;
        rename_passkey(key: &'a UserKey, id: &'a str, name: &'a str) -> bool;
        use_passkey(read: &'a Passkey, record: &'a str, at: Timestamp) -> bool;
        delete_passkey(key: &'a UserKey, id: &'a str) -> RemovalOutcome;
        delete_credentials(key: &'a UserKey, kind: CredentialKind) -> Vec<String>;
        user(key: &'a UserKey) -> Option<User>;
        users_with_role(database: &'a str) -> Vec<User>;
        user_page(database: &'a str, query: &'a UserQuery) -> Vec<User>;
        user_with_id(database: &'a str, id: &'a str) -> Option<User>;
        member_groups(database: &'a str) -> Vec<String>;
        insert_members(members: &'a [User]) -> Option<usize>;
        has_similar_user(database: &'a str, name: &'a str) -> bool;
        users_with_email(database: &'a str, email: &'a str) -> Vec<User>;
        user_of_identity(database: &'a str, issuer: &'a str, subject: &'a str) -> Option<User>;
        insert_identity(key: &'a UserKey, identity: &'a LinkedIdentity) -> bool;
        identities_of_user(key: &'a UserKey) -> Vec<LinkedIdentity>;
        delete_identity(key: &'a UserKey, issuer: &'a str, subject: &'a str) -> RemovalOutcome;
        default_user(database: &'a str) -> Option<User>;
        anonymous_sql(database: &'a str) -> AnonymousSql;
        set_anonymous_sql(database: &'a str, setting: AnonymousSql) -> bool;
        impersonation(database: &'a str) -> bool;
        set_impersonation(database: &'a str, allowed: bool) -> bool;
        insert_user(user: &'a User) -> WriteOutcome;
        update_user(read: &'a User, user: &'a User) -> WriteOutcome;
        set_password_hash(key: &'a UserKey, before: Option<&'a str>, hash: &'a str) -> bool;
        reserve_id(user: &'a User) -> ();
        delete_user(key: &'a UserKey, at: Timestamp) -> bool;
        delete_tenant(database: &'a str, at: Timestamp) -> ();
        end_sessions_of_user(key: &'a UserKey, reason: EndReason, at: Timestamp) -> Vec<SessionId>;
        count_attempt(key: &'a AttemptKey, limit: &'a AttemptLimit, now: Timestamp) -> AttemptOutcome;
        refund_attempt(key: &'a AttemptKey) -> ();
        clear_attempts(key: &'a AttemptKey) -> ();
        append_audit(events: &'a [AuditEvent]) -> ();
        audit(database: &'a str, since: AuditSince, limit: u32) -> AuditPage;
    }
}

#[expect(
    clippy::elidable_lifetime_names,
    reason = "one pattern for methods with and without borrows"
)]
impl IssuerStore for Unsteady {
    pass! {
        insert_code(code: &'a AuthorizationCode) -> ();
        code(hash: SecretHash) -> Option<AuthorizationCode>;
        redeem_code(hash: SecretHash, session: &'a Session) -> bool;
        insert_device_code(device: &'a DeviceCode) -> bool;
        device_code(user_code: &'a str) -> Option<DeviceCode>;
        poll_device_code(hash: SecretHash, client_id: &'a str, now: Timestamp) -> Option<DevicePoll>;
        decide_device_code(code: &'a str, by: Option<&'a Approval>, now: Timestamp) -> bool;
        redeem_device_code(hash: SecretHash, session: &'a Session) -> bool;
        sessions_of_user(key: &'a UserKey, client_id: Option<&'a str>, now: Timestamp) -> Vec<Session>;
        claim_master_key(fingerprint: &'a str) -> String;
        client(id: &'a str) -> Option<Client>;
        clients(database: &'a str) -> Vec<Client>;
        redirect_uris_from(start: &'a str) -> Vec<String>;
        insert_client(client: &'a Client) -> bool;
        update_client(read: &'a Client, client: &'a Client) -> bool;
        delete_client(id: &'a str, at: Timestamp) -> bool;
        end_sessions_of_client(id: &'a str, grant: GrantKind, end: SessionEnd) -> ();
        sessions(database: &'a str, now: Timestamp, limit: u32) -> Vec<Session>;
        insert_session(session: &'a Session) -> ();
        session(id: SessionId) -> Option<Session>;
        present_refresh_token(
            id: SessionId, number: u64, now: Timestamp, expires_at: Timestamp
        ) -> RefreshOutcome;
        use_personal_token(hash: SecretHash, now: Timestamp) -> Option<Session>;
        personal_tokens(
            database: &'a str, user: Option<&'a str>, now: Timestamp, limit: u32
        ) -> Vec<Session>;
        consent(key: &'a UserKey, client_id: &'a str) -> Option<Consent>;
        consents_of_user(key: &'a UserKey) -> Vec<Consent>;
        put_consent(key: &'a UserKey, consent: &'a Consent) -> ();
        delete_consent(key: &'a UserKey, client_id: &'a str) -> bool;
        end_session(id: SessionId, reason: EndReason, at: Timestamp) -> bool;
        ended_sessions(since: Timestamp) -> Vec<EndedSession>;
        signing_keys() -> Vec<SigningKeyRecord>;
        insert_signing_key(key: &'a SigningKeyRecord) -> bool;
        promote_signing_key(next: &'a str, active: &'a str, at: Timestamp) -> bool;
        delete_signing_key(id: &'a str) -> bool;
        purge(before: PurgeBefore) -> u64;
        purge_guests(before: Timestamp, kept: u32) -> u64;
    }
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
        drop(store.inner.update_user(before, &mia));
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
        drop(
            store
                .inner
                .end_session(claims.session, EndReason::Revoked, api.ports.clock.now()),
        );
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
