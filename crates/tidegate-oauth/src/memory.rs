//! A store in memory, for tests, examples and embedding without a database.

mod flows;
mod tables;

use std::cmp::Reverse;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{
    AnonymousSql, AttemptCounter, AttemptKey, AttemptLimit, AttemptOutcome, AuditEvent, AuditPage,
    AuditSince, Client, EndReason, EndedSession, GrantKind, LinkedIdentity, PurgeBefore,
    RefreshOutcome, Session, SessionId, SigningKeyRecord, Store, StoreFuture, Timestamp,
    UnlinkOutcome, User, UserKey, WriteOutcome,
};
use tables::Tables;

/// Keeps everything in this process. One lock makes every step atomic.
#[derive(Debug, Default)]
pub struct MemoryStore(Mutex<Tables>);

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// The audit events so far.
    pub fn audit_log(&self) -> Vec<AuditEvent> {
        let tables = self.tables();
        tables
            .audit
            .iter()
            .map(|(_, event)| event.clone())
            .collect()
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wraps a finished result as a future.
fn done<'a, T: Send + 'a>(value: T) -> StoreFuture<'a, T> {
    Box::pin(std::future::ready(Ok(value)))
}

impl Store for MemoryStore {
    fn claim_master_key<'a>(&'a self, fingerprint: &'a str) -> StoreFuture<'a, String> {
        let mut tables = self.tables();
        let kept = tables
            .master_key
            .get_or_insert_with(|| fingerprint.to_owned());
        done(kept.clone())
    }

    fn client<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<Client>> {
        done(self.tables().clients.get(id).cloned())
    }

    fn clients<'a>(&'a self, database: &'a str) -> StoreFuture<'a, Vec<Client>> {
        let tables = self.tables();
        done(
            tables
                .clients
                .values()
                .filter(|c| c.belongs_to(database))
                .cloned()
                .collect(),
        )
    }

    fn redirect_uris_from<'a>(&'a self, start: &'a str) -> StoreFuture<'a, Vec<String>> {
        done(self.tables().redirect_uris_from(start))
    }

    fn insert_client<'a>(&'a self, client: &'a Client) -> StoreFuture<'a, WriteOutcome> {
        done(self.tables().insert_client(client))
    }

    fn update_client<'a>(&'a self, read: &'a Client, client: &'a Client) -> StoreFuture<'a, bool> {
        done(self.tables().update_client(read, client))
    }

    fn delete_client<'a>(&'a self, id: &'a str, at: Timestamp) -> StoreFuture<'a, bool> {
        let mut tables = self.tables();
        tables.end_where(
            |session| session.client_id == id,
            EndReason::ClientDropped,
            at,
        );
        tables.flows.forget_clients(|client| client == id);
        done(tables.clients.remove(id).is_some())
    }

    fn user<'a>(&'a self, key: &'a UserKey) -> StoreFuture<'a, Option<User>> {
        done(self.tables().users.get(key).cloned())
    }

    fn users<'a>(&'a self, database: &'a str) -> StoreFuture<'a, Vec<User>> {
        let tables = self.tables();
        done(
            tables
                .users
                .values()
                .filter(|u| u.key.database == database)
                .cloned()
                .collect(),
        )
    }

    fn has_similar_user<'a>(&'a self, database: &'a str, name: &'a str) -> StoreFuture<'a, bool> {
        let tables = self.tables();
        let mut keys = tables.users.keys();
        done(keys.any(|key| key.database == database && key.name.eq_ignore_ascii_case(name)))
    }

    fn users_with_email<'a>(
        &'a self,
        database: &'a str,
        email: &'a str,
    ) -> StoreFuture<'a, Vec<User>> {
        done(self.tables().users_with_email(database, email))
    }

    fn user_of_identity<'a>(
        &'a self,
        database: &'a str,
        issuer: &'a str,
        subject: &'a str,
    ) -> StoreFuture<'a, Option<User>> {
        let tables = self.tables();
        let identity = [database, issuer, subject].map(str::to_owned);
        let key = tables.identities.get(&identity);
        done(key.and_then(|(key, _)| tables.users.get(key)).cloned())
    }

    fn insert_identity<'a>(
        &'a self,
        key: &'a UserKey,
        identity: &'a LinkedIdentity,
    ) -> StoreFuture<'a, bool> {
        done(self.tables().insert_identity(key, identity))
    }

    fn identities_of_user<'a>(&'a self, key: &'a UserKey) -> StoreFuture<'a, Vec<LinkedIdentity>> {
        done(self.tables().identities_of(key))
    }

    fn delete_identity<'a>(
        &'a self,
        key: &'a UserKey,
        issuer: &'a str,
        subject: &'a str,
    ) -> StoreFuture<'a, UnlinkOutcome> {
        let name = [&*key.database, issuer, subject].map(str::to_owned);
        done(self.tables().delete_identity(key, &name))
    }

    fn default_user<'a>(&'a self, database: &'a str) -> StoreFuture<'a, Option<User>> {
        done(self.tables().default_user(database).cloned())
    }

    fn anonymous_sql<'a>(&'a self, database: &'a str) -> StoreFuture<'a, AnonymousSql> {
        let setting = self.tables().anonymous_sql.get(database).copied();
        done(setting.unwrap_or_default())
    }

    fn set_anonymous_sql<'a>(
        &'a self,
        database: &'a str,
        setting: AnonymousSql,
    ) -> StoreFuture<'a, bool> {
        done(self.tables().set_anonymous_sql(database, setting))
    }

    fn impersonation<'a>(&'a self, database: &'a str) -> StoreFuture<'a, bool> {
        let tables = self.tables();
        done(tables.has_tenant(database) && !tables.without_impersonation.contains(database))
    }

    fn set_impersonation<'a>(&'a self, database: &'a str, allowed: bool) -> StoreFuture<'a, bool> {
        done(self.tables().set_impersonation(database, allowed))
    }

    fn insert_user<'a>(&'a self, user: &'a User) -> StoreFuture<'a, WriteOutcome> {
        done(self.tables().insert_user(user))
    }

    fn update_user<'a>(&'a self, read: &'a User, user: &'a User) -> StoreFuture<'a, WriteOutcome> {
        done(self.tables().update_user(read, user))
    }

    fn set_password_hash<'a>(
        &'a self,
        key: &'a UserKey,
        before: Option<&'a str>,
        hash: &'a str,
    ) -> StoreFuture<'a, bool> {
        let mut tables = self.tables();
        let user = tables.users.get_mut(key);
        let user = user.filter(|u| before.is_none() || u.password_hash.as_deref() == before);
        done(
            user.map(|user| user.password_hash = Some(hash.to_owned()))
                .is_some(),
        )
    }

    fn delete_user<'a>(&'a self, key: &'a UserKey, at: Timestamp) -> StoreFuture<'a, bool> {
        let mut tables = self.tables();
        tables.end_where(|session| session.user == *key, EndReason::UserDropped, at);
        tables.identities.retain(|_, (user, _)| user != key);
        tables.flows.forget(|user| user == key);
        done(tables.users.remove(key).is_some())
    }

    fn delete_tenant<'a>(&'a self, database: &'a str, at: Timestamp) -> StoreFuture<'a, ()> {
        let mut tables = self.tables();
        tables.end_where(
            |s| s.user.database == database,
            EndReason::TenantDropped,
            at,
        );
        tables.users.retain(|key, _| key.database != database);
        tables
            .identities
            .retain(|_, (user, _)| user.database != database);
        tables.flows.forget(|user| user.database == database);
        tables.drop_clients(database);
        done(())
    }

    fn insert_session<'a>(&'a self, session: &'a Session) -> StoreFuture<'a, ()> {
        self.tables().sessions.insert(session.id, session.clone());
        done(())
    }

    fn session(&self, id: SessionId) -> StoreFuture<'_, Option<Session>> {
        done(self.tables().sessions.get(&id).cloned())
    }

    fn sessions<'a>(
        &'a self,
        database: &'a str,
        now: Timestamp,
        limit: u32,
    ) -> StoreFuture<'a, Vec<Session>> {
        let tables = self.tables();
        let mut sessions: Vec<_> = tables
            .sessions
            .values()
            .filter(|session| session.user.database == database && session.is_alive(now))
            .filter(|session| session.grant != GrantKind::Guest)
            .cloned()
            .collect();
        sessions.sort_by_key(|session| (Reverse(session.refreshed_at), session.id));
        sessions.truncate(limit as usize);
        done(sessions)
    }

    fn present_refresh_token(
        &self,
        id: SessionId,
        number: u64,
        now: Timestamp,
        expires_at: Timestamp,
    ) -> StoreFuture<'_, RefreshOutcome> {
        done(self.tables().present(id, number, now, expires_at))
    }

    fn end_session(
        &self,
        id: SessionId,
        reason: EndReason,
        at: Timestamp,
    ) -> StoreFuture<'_, bool> {
        let ended = self
            .tables()
            .end_where(|session| session.id == id, reason, at);
        done(!ended.is_empty())
    }

    fn end_sessions_of_user<'a>(
        &'a self,
        key: &'a UserKey,
        reason: EndReason,
        at: Timestamp,
    ) -> StoreFuture<'a, Vec<SessionId>> {
        let mut tables = self.tables();
        tables.flows.leave(|browser| browser.user == *key);
        done(tables.end_where(|session| session.user == *key, reason, at))
    }

    fn ended_sessions(&self, since: Timestamp) -> StoreFuture<'_, Vec<EndedSession>> {
        done(self.tables().ended_since(since))
    }

    fn signing_keys(&self) -> StoreFuture<'_, Vec<SigningKeyRecord>> {
        done(self.tables().keys.clone())
    }

    fn insert_signing_key<'a>(&'a self, key: &'a SigningKeyRecord) -> StoreFuture<'a, bool> {
        done(self.tables().insert_key(key))
    }

    fn promote_signing_key<'a>(
        &'a self,
        next: &'a str,
        active: &'a str,
        at: Timestamp,
    ) -> StoreFuture<'a, bool> {
        done(self.tables().promote_key(next, active, at))
    }

    fn delete_signing_key<'a>(&'a self, id: &'a str) -> StoreFuture<'a, bool> {
        done(self.tables().delete_key(id))
    }

    fn count_attempt<'a>(
        &'a self,
        key: &'a AttemptKey,
        limit: &'a AttemptLimit,
        now: Timestamp,
    ) -> StoreFuture<'a, AttemptOutcome> {
        let mut tables = self.tables();
        let before = tables.attempts.get(key).copied();
        let (after, counted) = AttemptCounter::count(before, limit, now);
        tables.attempts.insert(key.clone(), after);
        done(counted)
    }

    fn refund_attempt<'a>(&'a self, key: &'a AttemptKey) -> StoreFuture<'a, ()> {
        if let Some(counter) = self.tables().attempts.get_mut(key) {
            *counter = counter.refund();
        }
        done(())
    }

    fn clear_attempts<'a>(&'a self, key: &'a AttemptKey) -> StoreFuture<'a, ()> {
        self.tables().attempts.remove(key);
        done(())
    }

    fn append_audit<'a>(&'a self, events: &'a [AuditEvent]) -> StoreFuture<'a, ()> {
        self.tables().append_audit(events);
        done(())
    }

    fn audit<'a>(
        &'a self,
        database: &'a str,
        since: AuditSince,
        limit: u32,
    ) -> StoreFuture<'a, AuditPage> {
        done(self.tables().audit(database, since, limit))
    }

    fn purge(&self, before: PurgeBefore) -> StoreFuture<'_, u64> {
        done(self.tables().purge(before))
    }

    fn purge_guests(&self, before: Timestamp, kept: u32) -> StoreFuture<'_, u64> {
        done(self.tables().purge_guests(before, kept))
    }
}
