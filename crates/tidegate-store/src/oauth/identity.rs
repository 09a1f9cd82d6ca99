//! Implements [`IdentityStore`]: users, tenants, browser sessions, second factors, attempts and the
//! audit log.

use async_trait::async_trait;
use tidegate_identity::{
    AnonymousSql, AttemptKey, AttemptLimit, AttemptOutcome, AuditEvent, AuditPage, AuditSince,
    BrowserSession, CredentialKind, EndReason, IdentityStore, LinkedIdentity, Passkey,
    RemovalOutcome, SecondFactor, SecretHash, SessionId, StoreResult, Timestamp, User, UserKey,
    UserQuery, WriteOutcome,
};

use super::{
    PgOauthStore, attempts, audit, browsers, credentials, factors, identities, members, passkeys,
    sessions, tenants, users,
};

#[async_trait]
impl IdentityStore for PgOauthStore {
    async fn user(&self, key: &UserKey) -> StoreResult<Option<User>> {
        Ok(users::find(&self.database, key).await?)
    }

    async fn users_with_role(&self, database: &str) -> StoreResult<Vec<User>> {
        Ok(users::with_role(&self.database, database).await?)
    }

    async fn user_page(&self, database: &str, query: &UserQuery) -> StoreResult<Vec<User>> {
        Ok(members::page(&self.database, database, query).await?)
    }

    async fn user_with_id(&self, database: &str, id: &str) -> StoreResult<Option<User>> {
        Ok(users::find_by_id(&self.database, database, id).await?)
    }

    async fn member_groups(&self, database: &str) -> StoreResult<Vec<String>> {
        Ok(members::groups(&self.database, database).await?)
    }

    async fn has_similar_user(&self, database: &str, name: &str) -> StoreResult<bool> {
        Ok(users::has_similar(&self.database, database, name).await?)
    }

    async fn users_with_email(&self, database: &str, email: &str) -> StoreResult<Vec<User>> {
        Ok(users::with_email(&self.database, database, email).await?)
    }

    async fn user_of_identity(
        &self,
        database: &str,
        issuer: &str,
        subject: &str,
    ) -> StoreResult<Option<User>> {
        Ok(identities::user(&self.database, database, issuer, subject).await?)
    }

    async fn insert_identity(&self, key: &UserKey, identity: &LinkedIdentity) -> StoreResult<bool> {
        Ok(identities::insert(&self.database, key, identity).await?)
    }

    async fn identities_of_user(&self, key: &UserKey) -> StoreResult<Vec<LinkedIdentity>> {
        Ok(identities::list(&self.database, key).await?)
    }

    async fn delete_identity(
        &self,
        key: &UserKey,
        issuer: &str,
        subject: &str,
    ) -> StoreResult<RemovalOutcome> {
        Ok(identities::delete(&self.database, key, issuer, subject).await?)
    }

    async fn default_user(&self, database: &str) -> StoreResult<Option<User>> {
        Ok(users::find_default(&self.database, database).await?)
    }

    async fn anonymous_sql(&self, database: &str) -> StoreResult<AnonymousSql> {
        Ok(tenants::anonymous_sql(&self.database, database).await?)
    }

    async fn set_anonymous_sql(&self, database: &str, setting: AnonymousSql) -> StoreResult<bool> {
        Ok(tenants::set_anonymous_sql(&self.database, database, setting).await?)
    }

    async fn impersonation(&self, database: &str) -> StoreResult<bool> {
        Ok(tenants::impersonation(&self.database, database).await?)
    }

    async fn set_impersonation(&self, database: &str, allowed: bool) -> StoreResult<bool> {
        Ok(tenants::set_impersonation(&self.database, database, allowed).await?)
    }

    async fn insert_user(&self, user: &User) -> StoreResult<WriteOutcome> {
        Ok(users::insert(&self.database, user).await?)
    }

    async fn insert_members(&self, members: &[User]) -> StoreResult<Option<usize>> {
        Ok(members::insert(&self.database, members).await?)
    }

    async fn update_user(&self, read: &User, user: &User) -> StoreResult<WriteOutcome> {
        Ok(users::update(&self.database, read, user).await?)
    }

    async fn set_password_hash(
        &self,
        key: &UserKey,
        before: Option<&str>,
        hash: &str,
    ) -> StoreResult<bool> {
        Ok(users::set_password_hash(&self.database, key, before, hash).await?)
    }

    async fn reserve_id(&self, user: &User) -> StoreResult<()> {
        Ok(users::reserve_id(&self.database, user).await?)
    }

    async fn delete_user(&self, key: &UserKey, at: Timestamp) -> StoreResult<bool> {
        Ok(users::delete(&self.database, key, at).await?)
    }

    async fn delete_tenant(&self, database: &str, at: Timestamp) -> StoreResult<()> {
        Ok(self.drop_tenant(database, at).await?)
    }

    async fn end_sessions_of_user(
        &self,
        key: &UserKey,
        reason: EndReason,
        at: Timestamp,
    ) -> StoreResult<Vec<SessionId>> {
        Ok(sessions::end_of_user(&self.database, key, reason, at).await?)
    }

    async fn count_attempt(
        &self,
        key: &AttemptKey,
        limit: &AttemptLimit,
        now: Timestamp,
    ) -> StoreResult<AttemptOutcome> {
        Ok(attempts::count(&self.database, key, limit, now).await?)
    }

    async fn refund_attempt(&self, key: &AttemptKey) -> StoreResult<()> {
        Ok(attempts::refund(&self.database, key).await?)
    }

    async fn clear_attempts(&self, key: &AttemptKey) -> StoreResult<()> {
        Ok(attempts::clear(&self.database, key).await?)
    }

    async fn append_audit(&self, events: &[AuditEvent]) -> StoreResult<()> {
        Ok(audit::append(&self.database, events).await?)
    }

    async fn audit(&self, database: &str, since: AuditSince, limit: u32) -> StoreResult<AuditPage> {
        Ok(audit::page(&self.database, database, since, limit).await?)
    }

    async fn insert_browser_session(&self, session: &BrowserSession) -> StoreResult<()> {
        Ok(browsers::insert(&self.database, session).await?)
    }

    async fn browser_session(&self, id: SecretHash) -> StoreResult<Option<BrowserSession>> {
        Ok(browsers::find(&self.database, id).await?)
    }

    async fn touch_browser_session(
        &self,
        id: SecretHash,
        seen_at: Timestamp,
        expires_at: Timestamp,
    ) -> StoreResult<()> {
        Ok(browsers::touch(&self.database, id, (seen_at, expires_at)).await?)
    }

    async fn delete_browser_session(&self, id: SecretHash) -> StoreResult<bool> {
        Ok(browsers::delete(&self.database, id).await?)
    }

    async fn browser_sessions_of_user(
        &self,
        key: &UserKey,
        now: Timestamp,
    ) -> StoreResult<Vec<BrowserSession>> {
        Ok(browsers::of_user(&self.database, key, now).await?)
    }

    async fn second_factor(&self, key: &UserKey) -> StoreResult<Option<SecondFactor>> {
        Ok(factors::find(&self.database, key).await?)
    }

    async fn insert_second_factor(
        &self,
        key: &UserKey,
        factor: &SecondFactor,
        recovery_codes: &[SecretHash],
    ) -> StoreResult<bool> {
        Ok(factors::insert(&self.database, key, factor, recovery_codes).await?)
    }

    async fn use_second_factor_step(&self, key: &UserKey, number: u64) -> StoreResult<bool> {
        Ok(factors::use_step(&self.database, key, number).await?)
    }

    async fn use_recovery_code(&self, key: &UserKey, code: SecretHash) -> StoreResult<bool> {
        Ok(factors::use_code(&self.database, key, code).await?)
    }

    async fn delete_second_factor(&self, key: &UserKey) -> StoreResult<bool> {
        Ok(factors::delete(&self.database, key).await?)
    }

    async fn passkey(&self, id: &str) -> StoreResult<Option<(UserKey, Passkey)>> {
        Ok(passkeys::find(&self.database, id).await?)
    }

    async fn passkeys_of_user(&self, key: &UserKey) -> StoreResult<Vec<Passkey>> {
        Ok(passkeys::list(&self.database, key).await?)
    }

    async fn insert_passkey(&self, key: &UserKey, passkey: &Passkey) -> StoreResult<bool> {
        Ok(passkeys::insert(&self.database, key, passkey).await?)
    }

    async fn rename_passkey(&self, key: &UserKey, id: &str, name: &str) -> StoreResult<bool> {
        Ok(passkeys::rename(&self.database, key, (id, name)).await?)
    }

    async fn use_passkey(&self, read: &Passkey, record: &str, at: Timestamp) -> StoreResult<bool> {
        Ok(passkeys::update(&self.database, read, record, at).await?)
    }

    async fn delete_passkey(&self, key: &UserKey, id: &str) -> StoreResult<RemovalOutcome> {
        Ok(passkeys::delete(&self.database, key, id).await?)
    }

    async fn delete_credentials(
        &self,
        key: &UserKey,
        kind: CredentialKind,
    ) -> StoreResult<Vec<String>> {
        Ok(credentials::delete(&self.database, key, kind).await?)
    }
}
