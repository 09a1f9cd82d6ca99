//! A store in memory, for tests, examples and embedding without a database.

mod dependents;
mod tables;

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{
    AnonymousSql, AttemptKey, AttemptLimit, AttemptOutcome, AuditEvent, AuditPage, AuditSince,
    BrowserSession, CredentialKind, EndReason, IdentityStore, LinkedIdentity, Passkey,
    RemovalOutcome, SecondFactor, SecretHash, SessionId, StoreResult, Timestamp, User, UserKey,
    UserKind, UserQuery, WriteOutcome,
};
use async_trait::async_trait;
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

#[async_trait]
impl<T: DependentTables> IdentityStore for MemoryStore<T> {
    async fn user(&self, key: &UserKey) -> StoreResult<Option<User>> {
        Ok(self.lock().0.users.get(key).cloned())
    }

    async fn users_with_role(&self, database: &str) -> StoreResult<Vec<User>> {
        let query = UserQuery::of_kind(UserKind::Role);
        Ok(self.lock().0.user_page(database, &query))
    }

    async fn user_page(&self, database: &str, query: &UserQuery) -> StoreResult<Vec<User>> {
        Ok(self.lock().0.user_page(database, query))
    }

    async fn user_with_id(&self, database: &str, id: &str) -> StoreResult<Option<User>> {
        Ok(self.lock().0.user_with_id(database, id).cloned())
    }

    async fn member_groups(&self, database: &str) -> StoreResult<Vec<String>> {
        Ok(self.lock().0.member_groups(database))
    }

    async fn has_similar_user(&self, database: &str, name: &str) -> StoreResult<bool> {
        Ok(self.lock().0.has_similar_user(database, name))
    }

    async fn users_with_email(&self, database: &str, email: &str) -> StoreResult<Vec<User>> {
        Ok(self.lock().0.users_with_email(database, email))
    }

    async fn user_of_identity(
        &self,
        database: &str,
        issuer: &str,
        subject: &str,
    ) -> StoreResult<Option<User>> {
        let tables = &self.lock().0;
        let identity = [database, issuer, subject].map(str::to_owned);
        let key = tables.identities.get(&identity);
        Ok(key.and_then(|(key, _)| tables.users.get(key)).cloned())
    }

    async fn insert_identity(&self, key: &UserKey, identity: &LinkedIdentity) -> StoreResult<bool> {
        Ok(self.lock().0.insert_identity(key, identity))
    }

    async fn identities_of_user(&self, key: &UserKey) -> StoreResult<Vec<LinkedIdentity>> {
        Ok(self.lock().0.identities_of(key))
    }

    async fn delete_identity(
        &self,
        key: &UserKey,
        issuer: &str,
        subject: &str,
    ) -> StoreResult<RemovalOutcome> {
        let name = [&*key.database, issuer, subject].map(str::to_owned);
        Ok(self.lock().0.delete_identity(key, &name))
    }

    async fn default_user(&self, database: &str) -> StoreResult<Option<User>> {
        Ok(self.lock().0.default_user(database).cloned())
    }

    async fn anonymous_sql(&self, database: &str) -> StoreResult<AnonymousSql> {
        let setting = self.lock().0.anonymous_sql.get(database).copied();
        Ok(setting.unwrap_or_default())
    }

    async fn set_anonymous_sql(&self, database: &str, setting: AnonymousSql) -> StoreResult<bool> {
        Ok(self.lock().0.set_anonymous_sql(database, setting))
    }

    async fn impersonation(&self, database: &str) -> StoreResult<bool> {
        let tables = &self.lock().0;
        Ok(tables.has_tenant(database) && !tables.without_impersonation.contains(database))
    }

    async fn set_impersonation(&self, database: &str, allowed: bool) -> StoreResult<bool> {
        Ok(self.lock().0.set_impersonation(database, allowed))
    }

    async fn insert_user(&self, user: &User) -> StoreResult<WriteOutcome> {
        Ok(self.lock().0.insert_user(user))
    }

    async fn insert_members(&self, members: &[User]) -> StoreResult<Option<usize>> {
        Ok(self.lock().0.insert_members(members))
    }

    async fn update_user(&self, read: &User, user: &User) -> StoreResult<WriteOutcome> {
        Ok(self.lock().0.update_user(read, user))
    }

    async fn set_password_hash(
        &self,
        key: &UserKey,
        before: Option<&str>,
        hash: &str,
    ) -> StoreResult<bool> {
        let tables = &mut self.lock().0;
        let user = tables.users.get_mut(key);
        let user = user.filter(|u| before.is_none() || u.password_hash.as_deref() == before);
        Ok(user
            .map(|user| user.password_hash = Some(hash.to_owned()))
            .is_some())
    }

    async fn reserve_id(&self, user: &User) -> StoreResult<()> {
        self.lock().0.reserve_id(user);
        Ok(())
    }

    async fn delete_user(&self, key: &UserKey, at: Timestamp) -> StoreResult<bool> {
        let (tables, dependents) = &mut *self.lock();
        dependents.end_sessions(&|user| user == key, EndReason::UserDropped, at);
        let existed = tables.users.remove(key).is_some();
        tables.delete_users_data(|user| user == key);
        dependents.void_approvals(&|id| tables.browsers.contains_key(id));
        Ok(existed)
    }

    async fn delete_tenant(&self, database: &str, at: Timestamp) -> StoreResult<()> {
        let (tables, dependents) = &mut *self.lock();
        let of_tenant = |user: &UserKey| user.database == database;
        dependents.end_sessions(&of_tenant, EndReason::TenantDropped, at);
        tables.delete_users(database);
        tables.delete_users_data(of_tenant);
        dependents.void_approvals(&|id| tables.browsers.contains_key(id));
        dependents.delete_tenant(database);
        Ok(())
    }

    async fn end_sessions_of_user(
        &self,
        key: &UserKey,
        reason: EndReason,
        at: Timestamp,
    ) -> StoreResult<Vec<SessionId>> {
        let (tables, dependents) = &mut *self.lock();
        tables.browsers.retain(|_, browser| browser.user != *key);
        dependents.void_approvals(&|id| tables.browsers.contains_key(id));
        Ok(dependents.end_sessions(&|user| user == key, reason, at))
    }

    async fn count_attempt(
        &self,
        key: &AttemptKey,
        limit: &AttemptLimit,
        now: Timestamp,
    ) -> StoreResult<AttemptOutcome> {
        Ok(self.lock().0.count_attempt(key, limit, now))
    }

    async fn refund_attempt(&self, key: &AttemptKey) -> StoreResult<()> {
        self.lock().0.refund_attempt(key);
        Ok(())
    }

    async fn clear_attempts(&self, key: &AttemptKey) -> StoreResult<()> {
        self.lock().0.attempts.remove(key);
        Ok(())
    }

    async fn append_audit(&self, events: &[AuditEvent]) -> StoreResult<()> {
        self.lock().0.append_audit(events);
        Ok(())
    }

    async fn audit(&self, database: &str, since: AuditSince, limit: u32) -> StoreResult<AuditPage> {
        Ok(self.lock().0.audit(database, since, limit))
    }

    async fn insert_browser_session(&self, session: &BrowserSession) -> StoreResult<()> {
        self.lock().0.browsers.insert(session.id, session.clone());
        Ok(())
    }

    async fn browser_session(&self, id: SecretHash) -> StoreResult<Option<BrowserSession>> {
        Ok(self.lock().0.browsers.get(&id).cloned())
    }

    async fn touch_browser_session(
        &self,
        id: SecretHash,
        seen_at: Timestamp,
        expires_at: Timestamp,
    ) -> StoreResult<()> {
        if let Some(session) = self.lock().0.browsers.get_mut(&id) {
            (session.seen_at, session.expires_at) = (seen_at, expires_at);
        }
        Ok(())
    }

    async fn delete_browser_session(&self, id: SecretHash) -> StoreResult<bool> {
        let (tables, dependents) = &mut *self.lock();
        let existed = tables.browsers.remove(&id).is_some();
        dependents.void_approvals(&|id| tables.browsers.contains_key(id));
        Ok(existed)
    }

    async fn browser_sessions_of_user(
        &self,
        key: &UserKey,
        now: Timestamp,
    ) -> StoreResult<Vec<BrowserSession>> {
        Ok(self.lock().0.browser_sessions_of(key, now))
    }

    async fn second_factor(&self, key: &UserKey) -> StoreResult<Option<SecondFactor>> {
        let tables = &self.lock().0;
        let found = tables.factors.get(key);
        Ok(found.map(|(factor, codes)| SecondFactor {
            recovery_codes: codes.len() as u64,
            ..factor.clone()
        }))
    }

    async fn insert_second_factor(
        &self,
        key: &UserKey,
        factor: &SecondFactor,
        recovery_codes: &[SecretHash],
    ) -> StoreResult<bool> {
        let tables = &mut self.lock().0;
        let free = !tables.factors.contains_key(key);
        if free {
            let factor = (factor.clone(), recovery_codes.to_vec());
            tables.factors.insert(key.clone(), factor);
        }
        Ok(free)
    }

    async fn use_second_factor_step(&self, key: &UserKey, step: u64) -> StoreResult<bool> {
        let tables = &mut self.lock().0;
        let factor = tables.factors.get_mut(key);
        let factor = factor.filter(|(factor, _)| factor.used_step < step);
        Ok(factor.map(|(factor, _)| factor.used_step = step).is_some())
    }

    async fn use_recovery_code(&self, key: &UserKey, code: SecretHash) -> StoreResult<bool> {
        let tables = &mut self.lock().0;
        let codes = tables.factors.get_mut(key).map(|(_, codes)| codes);
        Ok(codes.is_some_and(|codes| {
            let before = codes.len();
            codes.retain(|known| *known != code);
            codes.len() < before
        }))
    }

    async fn delete_second_factor(&self, key: &UserKey) -> StoreResult<bool> {
        Ok(self.lock().0.factors.remove(key).is_some())
    }

    async fn passkey(&self, id: &str) -> StoreResult<Option<(UserKey, Passkey)>> {
        Ok(self.lock().0.passkeys.get(id).cloned())
    }

    async fn passkeys_of_user(&self, key: &UserKey) -> StoreResult<Vec<Passkey>> {
        Ok(self.lock().0.passkeys_of(key))
    }

    async fn insert_passkey(&self, key: &UserKey, passkey: &Passkey) -> StoreResult<bool> {
        Ok(self.lock().0.insert_passkey(key, passkey))
    }

    async fn rename_passkey(&self, key: &UserKey, id: &str, name: &str) -> StoreResult<bool> {
        Ok(self.lock().0.rename_passkey(key, id, name))
    }

    async fn use_passkey(&self, read: &Passkey, record: &str, at: Timestamp) -> StoreResult<bool> {
        Ok(self.lock().0.use_passkey(read, record, at))
    }

    async fn delete_passkey(&self, key: &UserKey, id: &str) -> StoreResult<RemovalOutcome> {
        Ok(self.lock().0.delete_passkey(key, id))
    }

    async fn delete_credentials(
        &self,
        key: &UserKey,
        kind: CredentialKind,
    ) -> StoreResult<Vec<String>> {
        Ok(self.lock().0.delete_credentials(key, kind))
    }
}
