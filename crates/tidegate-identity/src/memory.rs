//! A store in memory, for tests, examples and embedding without a database.

mod dependents;
mod tables;

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{
    AnonymousSql, AttemptKey, AttemptLimit, AttemptOutcome, AuditEvent, AuditPage, AuditSince,
    BrowserSession, CredentialKind, EndReason, IdentityStore, LinkedIdentity, Passkey,
    RemovalOutcome, SecondFactor, SecretHash, SessionId, StoreFuture, Timestamp, User, UserKey,
    UserKind, UserQuery, WriteOutcome,
};
pub use dependents::DependentTables;
use tables::Tables;

/// A store that keeps all records in this process, with the tables `T` of another crate. One lock
/// makes every step atomic.
#[derive(Default)]
pub struct MemoryStore<T = ()>(Mutex<(Tables, T)>);

impl<T: Default> MemoryStore<T> {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }
}

impl<T> MemoryStore<T> {
    /// The audit events so far.
    pub fn audit_log(&self) -> Vec<AuditEvent> {
        let events = self.lock().0.audit.clone();
        events.into_iter().map(|(_, event)| event).collect()
    }

    /// Runs one atomic step on the tables `T`, which belong to another crate.
    pub fn step<R>(&self, step: impl FnOnce(&mut T) -> R) -> R {
        step(&mut self.lock().1)
    }

    /// Deletes attempt counters that expired before `attempts`, audit events from before `audit`,
    /// and browser sessions that expired before `browsers`. Returns the number of deleted rows.
    pub fn purge_identity(&self, attempts: Timestamp, audit: Timestamp, browsers: Timestamp) -> u64
    where
        T: DependentTables,
    {
        let (tables, dependents) = &mut *self.lock();
        let purged = tables.purge(attempts, audit, browsers);
        dependents.void_approvals(&|id| tables.browsers.contains_key(id));
        purged
    }

    fn lock(&self) -> MutexGuard<'_, (Tables, T)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> fmt::Debug for MemoryStore<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

/// Wraps a finished result as a future.
fn done<'a, T: Send + 'a>(value: T) -> StoreFuture<'a, T> {
    Box::pin(std::future::ready(Ok(value)))
}

impl<T: DependentTables> IdentityStore for MemoryStore<T> {
    fn user<'a>(&'a self, key: &'a UserKey) -> StoreFuture<'a, Option<User>> {
        done(self.lock().0.users.get(key).cloned())
    }

    fn users_with_role<'a>(&'a self, database: &'a str) -> StoreFuture<'a, Vec<User>> {
        let query = UserQuery::of_kind(UserKind::Role);
        done(self.lock().0.user_page(database, &query))
    }

    fn user_page<'a>(
        &'a self,
        database: &'a str,
        query: &'a UserQuery,
    ) -> StoreFuture<'a, Vec<User>> {
        done(self.lock().0.user_page(database, query))
    }

    fn user_with_id<'a>(&'a self, database: &'a str, id: &'a str) -> StoreFuture<'a, Option<User>> {
        done(self.lock().0.user_with_id(database, id).cloned())
    }

    fn member_groups<'a>(&'a self, database: &'a str) -> StoreFuture<'a, Vec<String>> {
        done(self.lock().0.member_groups(database))
    }

    fn has_similar_user<'a>(&'a self, database: &'a str, name: &'a str) -> StoreFuture<'a, bool> {
        done(self.lock().0.has_similar_user(database, name))
    }

    fn users_with_email<'a>(
        &'a self,
        database: &'a str,
        email: &'a str,
    ) -> StoreFuture<'a, Vec<User>> {
        done(self.lock().0.users_with_email(database, email))
    }

    fn user_of_identity<'a>(
        &'a self,
        database: &'a str,
        issuer: &'a str,
        subject: &'a str,
    ) -> StoreFuture<'a, Option<User>> {
        let tables = &self.lock().0;
        let identity = [database, issuer, subject].map(str::to_owned);
        let key = tables.identities.get(&identity);
        done(key.and_then(|(key, _)| tables.users.get(key)).cloned())
    }

    fn insert_identity<'a>(
        &'a self,
        key: &'a UserKey,
        identity: &'a LinkedIdentity,
    ) -> StoreFuture<'a, bool> {
        done(self.lock().0.insert_identity(key, identity))
    }

    fn identities_of_user<'a>(&'a self, key: &'a UserKey) -> StoreFuture<'a, Vec<LinkedIdentity>> {
        done(self.lock().0.identities_of(key))
    }

    fn delete_identity<'a>(
        &'a self,
        key: &'a UserKey,
        issuer: &'a str,
        subject: &'a str,
    ) -> StoreFuture<'a, RemovalOutcome> {
        let name = [&*key.database, issuer, subject].map(str::to_owned);
        done(self.lock().0.delete_identity(key, &name))
    }

    fn default_user<'a>(&'a self, database: &'a str) -> StoreFuture<'a, Option<User>> {
        done(self.lock().0.default_user(database).cloned())
    }

    fn anonymous_sql<'a>(&'a self, database: &'a str) -> StoreFuture<'a, AnonymousSql> {
        let setting = self.lock().0.anonymous_sql.get(database).copied();
        done(setting.unwrap_or_default())
    }

    fn set_anonymous_sql<'a>(
        &'a self,
        database: &'a str,
        setting: AnonymousSql,
    ) -> StoreFuture<'a, bool> {
        done(self.lock().0.set_anonymous_sql(database, setting))
    }

    fn impersonation<'a>(&'a self, database: &'a str) -> StoreFuture<'a, bool> {
        let tables = &self.lock().0;
        done(tables.has_tenant(database) && !tables.without_impersonation.contains(database))
    }

    fn set_impersonation<'a>(&'a self, database: &'a str, allowed: bool) -> StoreFuture<'a, bool> {
        done(self.lock().0.set_impersonation(database, allowed))
    }

    fn insert_user<'a>(&'a self, user: &'a User) -> StoreFuture<'a, WriteOutcome> {
        done(self.lock().0.insert_user(user))
    }

    fn insert_members<'a>(&'a self, members: &'a [User]) -> StoreFuture<'a, Option<usize>> {
        done(self.lock().0.insert_members(members))
    }

    fn update_user<'a>(&'a self, read: &'a User, user: &'a User) -> StoreFuture<'a, WriteOutcome> {
        done(self.lock().0.update_user(read, user))
    }

    fn set_password_hash<'a>(
        &'a self,
        key: &'a UserKey,
        before: Option<&'a str>,
        hash: &'a str,
    ) -> StoreFuture<'a, bool> {
        let tables = &mut self.lock().0;
        let user = tables.users.get_mut(key);
        let user = user.filter(|u| before.is_none() || u.password_hash.as_deref() == before);
        done(
            user.map(|user| user.password_hash = Some(hash.to_owned()))
                .is_some(),
        )
    }

    fn reserve_id<'a>(&'a self, user: &'a User) -> StoreFuture<'a, ()> {
        self.lock().0.reserve_id(user);
        done(())
    }

    fn delete_user<'a>(&'a self, key: &'a UserKey, at: Timestamp) -> StoreFuture<'a, bool> {
        let (tables, dependents) = &mut *self.lock();
        dependents.end_sessions(&|user| user == key, EndReason::UserDropped, at);
        let existed = tables.users.remove(key).is_some();
        tables.delete_users_data(|user| user == key);
        dependents.void_approvals(&|id| tables.browsers.contains_key(id));
        done(existed)
    }

    fn delete_tenant<'a>(&'a self, database: &'a str, at: Timestamp) -> StoreFuture<'a, ()> {
        let (tables, dependents) = &mut *self.lock();
        let of_tenant = |user: &UserKey| user.database == database;
        dependents.end_sessions(&of_tenant, EndReason::TenantDropped, at);
        tables.delete_users(database);
        tables.delete_users_data(of_tenant);
        dependents.void_approvals(&|id| tables.browsers.contains_key(id));
        dependents.delete_tenant(database);
        done(())
    }

    fn end_sessions_of_user<'a>(
        &'a self,
        key: &'a UserKey,
        reason: EndReason,
        at: Timestamp,
    ) -> StoreFuture<'a, Vec<SessionId>> {
        let (tables, dependents) = &mut *self.lock();
        tables.browsers.retain(|_, browser| browser.user != *key);
        dependents.void_approvals(&|id| tables.browsers.contains_key(id));
        done(dependents.end_sessions(&|user| user == key, reason, at))
    }

    fn count_attempt<'a>(
        &'a self,
        key: &'a AttemptKey,
        limit: &'a AttemptLimit,
        now: Timestamp,
    ) -> StoreFuture<'a, AttemptOutcome> {
        done(self.lock().0.count_attempt(key, limit, now))
    }

    fn refund_attempt<'a>(&'a self, key: &'a AttemptKey) -> StoreFuture<'a, ()> {
        self.lock().0.refund_attempt(key);
        done(())
    }

    fn clear_attempts<'a>(&'a self, key: &'a AttemptKey) -> StoreFuture<'a, ()> {
        self.lock().0.attempts.remove(key);
        done(())
    }

    fn append_audit<'a>(&'a self, events: &'a [AuditEvent]) -> StoreFuture<'a, ()> {
        self.lock().0.append_audit(events);
        done(())
    }

    fn audit<'a>(
        &'a self,
        database: &'a str,
        since: AuditSince,
        limit: u32,
    ) -> StoreFuture<'a, AuditPage> {
        done(self.lock().0.audit(database, since, limit))
    }

    fn insert_browser_session<'a>(&'a self, session: &'a BrowserSession) -> StoreFuture<'a, ()> {
        self.lock().0.browsers.insert(session.id, session.clone());
        done(())
    }

    fn browser_session(&self, id: SecretHash) -> StoreFuture<'_, Option<BrowserSession>> {
        done(self.lock().0.browsers.get(&id).cloned())
    }

    fn touch_browser_session(
        &self,
        id: SecretHash,
        seen_at: Timestamp,
        expires_at: Timestamp,
    ) -> StoreFuture<'_, ()> {
        if let Some(session) = self.lock().0.browsers.get_mut(&id) {
            (session.seen_at, session.expires_at) = (seen_at, expires_at);
        }
        done(())
    }

    fn delete_browser_session(&self, id: SecretHash) -> StoreFuture<'_, bool> {
        let (tables, dependents) = &mut *self.lock();
        let existed = tables.browsers.remove(&id).is_some();
        dependents.void_approvals(&|id| tables.browsers.contains_key(id));
        done(existed)
    }

    fn browser_sessions_of_user<'a>(
        &'a self,
        key: &'a UserKey,
        now: Timestamp,
    ) -> StoreFuture<'a, Vec<BrowserSession>> {
        done(self.lock().0.browser_sessions_of(key, now))
    }

    fn second_factor<'a>(&'a self, key: &'a UserKey) -> StoreFuture<'a, Option<SecondFactor>> {
        let tables = &self.lock().0;
        let found = tables.factors.get(key);
        done(found.map(|(factor, codes)| SecondFactor {
            recovery_codes: codes.len() as u64,
            ..factor.clone()
        }))
    }

    fn insert_second_factor<'a>(
        &'a self,
        key: &'a UserKey,
        factor: &'a SecondFactor,
        recovery_codes: &'a [SecretHash],
    ) -> StoreFuture<'a, bool> {
        let tables = &mut self.lock().0;
        let free = !tables.factors.contains_key(key);
        if free {
            let factor = (factor.clone(), recovery_codes.to_vec());
            tables.factors.insert(key.clone(), factor);
        }
        done(free)
    }

    fn use_second_factor_step<'a>(&'a self, key: &'a UserKey, step: u64) -> StoreFuture<'a, bool> {
        let tables = &mut self.lock().0;
        let factor = tables.factors.get_mut(key);
        let factor = factor.filter(|(factor, _)| factor.used_step < step);
        done(factor.map(|(factor, _)| factor.used_step = step).is_some())
    }

    fn use_recovery_code<'a>(
        &'a self,
        key: &'a UserKey,
        code: SecretHash,
    ) -> StoreFuture<'a, bool> {
        let tables = &mut self.lock().0;
        let codes = tables.factors.get_mut(key).map(|(_, codes)| codes);
        done(codes.is_some_and(|codes| {
            let before = codes.len();
            codes.retain(|known| *known != code);
            codes.len() < before
        }))
    }

    fn delete_second_factor<'a>(&'a self, key: &'a UserKey) -> StoreFuture<'a, bool> {
        done(self.lock().0.factors.remove(key).is_some())
    }

    fn passkey<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<(UserKey, Passkey)>> {
        done(self.lock().0.passkeys.get(id).cloned())
    }

    fn passkeys_of_user<'a>(&'a self, key: &'a UserKey) -> StoreFuture<'a, Vec<Passkey>> {
        done(self.lock().0.passkeys_of(key))
    }

    fn insert_passkey<'a>(
        &'a self,
        key: &'a UserKey,
        passkey: &'a Passkey,
    ) -> StoreFuture<'a, bool> {
        done(self.lock().0.insert_passkey(key, passkey))
    }

    fn rename_passkey<'a>(
        &'a self,
        key: &'a UserKey,
        id: &'a str,
        name: &'a str,
    ) -> StoreFuture<'a, bool> {
        done(self.lock().0.rename_passkey(key, id, name))
    }

    fn use_passkey<'a>(
        &'a self,
        read: &'a Passkey,
        record: &'a str,
        at: Timestamp,
    ) -> StoreFuture<'a, bool> {
        done(self.lock().0.use_passkey(read, record, at))
    }

    fn delete_passkey<'a>(
        &'a self,
        key: &'a UserKey,
        id: &'a str,
    ) -> StoreFuture<'a, RemovalOutcome> {
        done(self.lock().0.delete_passkey(key, id))
    }

    fn delete_credentials<'a>(
        &'a self,
        key: &'a UserKey,
        kind: CredentialKind,
    ) -> StoreFuture<'a, Vec<String>> {
        done(self.lock().0.delete_credentials(key, kind))
    }
}
