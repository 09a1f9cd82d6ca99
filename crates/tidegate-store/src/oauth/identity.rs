//! Implements [`IdentityStore`]: users, tenants, browser sessions, second factors, attempts and the
//! audit log.

use tidegate_identity::{
    AnonymousSql, AttemptKey, AttemptLimit, AttemptOutcome, AuditEvent, AuditPage, AuditSince,
    BrowserSession, CredentialKind, EndReason, IdentityStore, LinkedIdentity, Passkey,
    RemovalOutcome, SecondFactor, SecretHash, SessionId, StoreFuture, Timestamp, User, UserKey,
    UserQuery, WriteOutcome,
};

use super::{
    PgOauthStore, attempts, audit, browsers, credentials, factors, identities, members, passkeys,
    sessions, step, tenants, users,
};

impl IdentityStore for PgOauthStore {
    fn user<'a>(&'a self, key: &'a UserKey) -> StoreFuture<'a, Option<User>> {
        step(users::find(&self.database, key))
    }

    fn users_with_role<'a>(&'a self, database: &'a str) -> StoreFuture<'a, Vec<User>> {
        step(users::with_role(&self.database, database))
    }

    fn user_page<'a>(
        &'a self,
        database: &'a str,
        query: &'a UserQuery,
    ) -> StoreFuture<'a, Vec<User>> {
        step(members::page(&self.database, database, query))
    }

    fn user_with_id<'a>(&'a self, database: &'a str, id: &'a str) -> StoreFuture<'a, Option<User>> {
        step(users::find_by_id(&self.database, database, id))
    }

    fn member_groups<'a>(&'a self, database: &'a str) -> StoreFuture<'a, Vec<String>> {
        step(members::groups(&self.database, database))
    }

    fn has_similar_user<'a>(&'a self, database: &'a str, name: &'a str) -> StoreFuture<'a, bool> {
        step(users::has_similar(&self.database, database, name))
    }

    fn users_with_email<'a>(
        &'a self,
        database: &'a str,
        email: &'a str,
    ) -> StoreFuture<'a, Vec<User>> {
        step(users::with_email(&self.database, database, email))
    }

    fn user_of_identity<'a>(
        &'a self,
        database: &'a str,
        issuer: &'a str,
        subject: &'a str,
    ) -> StoreFuture<'a, Option<User>> {
        step(identities::user(&self.database, database, issuer, subject))
    }

    fn insert_identity<'a>(
        &'a self,
        key: &'a UserKey,
        identity: &'a LinkedIdentity,
    ) -> StoreFuture<'a, bool> {
        step(identities::insert(&self.database, key, identity))
    }

    fn identities_of_user<'a>(&'a self, key: &'a UserKey) -> StoreFuture<'a, Vec<LinkedIdentity>> {
        step(identities::list(&self.database, key))
    }

    fn delete_identity<'a>(
        &'a self,
        key: &'a UserKey,
        issuer: &'a str,
        subject: &'a str,
    ) -> StoreFuture<'a, RemovalOutcome> {
        step(identities::delete(&self.database, key, issuer, subject))
    }

    fn default_user<'a>(&'a self, database: &'a str) -> StoreFuture<'a, Option<User>> {
        step(users::find_default(&self.database, database))
    }

    fn anonymous_sql<'a>(&'a self, database: &'a str) -> StoreFuture<'a, AnonymousSql> {
        step(tenants::anonymous_sql(&self.database, database))
    }

    fn set_anonymous_sql<'a>(
        &'a self,
        database: &'a str,
        setting: AnonymousSql,
    ) -> StoreFuture<'a, bool> {
        step(tenants::set_anonymous_sql(
            &self.database,
            database,
            setting,
        ))
    }

    fn impersonation<'a>(&'a self, database: &'a str) -> StoreFuture<'a, bool> {
        step(tenants::impersonation(&self.database, database))
    }

    fn set_impersonation<'a>(&'a self, database: &'a str, allowed: bool) -> StoreFuture<'a, bool> {
        step(tenants::set_impersonation(
            &self.database,
            database,
            allowed,
        ))
    }

    fn insert_user<'a>(&'a self, user: &'a User) -> StoreFuture<'a, WriteOutcome> {
        step(users::insert(&self.database, user))
    }

    fn insert_members<'a>(&'a self, members: &'a [User]) -> StoreFuture<'a, Option<usize>> {
        step(members::insert(&self.database, members))
    }

    fn update_user<'a>(&'a self, read: &'a User, user: &'a User) -> StoreFuture<'a, WriteOutcome> {
        step(users::update(&self.database, read, user))
    }

    fn set_password_hash<'a>(
        &'a self,
        key: &'a UserKey,
        before: Option<&'a str>,
        hash: &'a str,
    ) -> StoreFuture<'a, bool> {
        step(users::set_password_hash(&self.database, key, before, hash))
    }

    fn reserve_id<'a>(&'a self, user: &'a User) -> StoreFuture<'a, ()> {
        step(users::reserve_id(&self.database, user))
    }

    fn delete_user<'a>(&'a self, key: &'a UserKey, at: Timestamp) -> StoreFuture<'a, bool> {
        step(users::delete(&self.database, key, at))
    }

    fn delete_tenant<'a>(&'a self, database: &'a str, at: Timestamp) -> StoreFuture<'a, ()> {
        step(self.drop_tenant(database, at))
    }

    fn end_sessions_of_user<'a>(
        &'a self,
        key: &'a UserKey,
        reason: EndReason,
        at: Timestamp,
    ) -> StoreFuture<'a, Vec<SessionId>> {
        step(sessions::end_of_user(&self.database, key, reason, at))
    }

    fn count_attempt<'a>(
        &'a self,
        key: &'a AttemptKey,
        limit: &'a AttemptLimit,
        now: Timestamp,
    ) -> StoreFuture<'a, AttemptOutcome> {
        step(attempts::count(&self.database, key, limit, now))
    }

    fn refund_attempt<'a>(&'a self, key: &'a AttemptKey) -> StoreFuture<'a, ()> {
        step(attempts::refund(&self.database, key))
    }

    fn clear_attempts<'a>(&'a self, key: &'a AttemptKey) -> StoreFuture<'a, ()> {
        step(attempts::clear(&self.database, key))
    }

    fn append_audit<'a>(&'a self, events: &'a [AuditEvent]) -> StoreFuture<'a, ()> {
        step(audit::append(&self.database, events))
    }

    fn audit<'a>(
        &'a self,
        database: &'a str,
        since: AuditSince,
        limit: u32,
    ) -> StoreFuture<'a, AuditPage> {
        step(audit::page(&self.database, database, since, limit))
    }

    fn insert_browser_session<'a>(&'a self, session: &'a BrowserSession) -> StoreFuture<'a, ()> {
        step(browsers::insert(&self.database, session))
    }

    fn browser_session(&self, id: SecretHash) -> StoreFuture<'_, Option<BrowserSession>> {
        step(browsers::find(&self.database, id))
    }

    fn touch_browser_session(
        &self,
        id: SecretHash,
        seen_at: Timestamp,
        expires_at: Timestamp,
    ) -> StoreFuture<'_, ()> {
        step(browsers::touch(&self.database, id, (seen_at, expires_at)))
    }

    fn delete_browser_session(&self, id: SecretHash) -> StoreFuture<'_, bool> {
        step(browsers::delete(&self.database, id))
    }

    fn browser_sessions_of_user<'a>(
        &'a self,
        key: &'a UserKey,
        now: Timestamp,
    ) -> StoreFuture<'a, Vec<BrowserSession>> {
        step(browsers::of_user(&self.database, key, now))
    }

    fn second_factor<'a>(&'a self, key: &'a UserKey) -> StoreFuture<'a, Option<SecondFactor>> {
        step(factors::find(&self.database, key))
    }

    fn insert_second_factor<'a>(
        &'a self,
        key: &'a UserKey,
        factor: &'a SecondFactor,
        recovery_codes: &'a [SecretHash],
    ) -> StoreFuture<'a, bool> {
        step(factors::insert(&self.database, key, factor, recovery_codes))
    }

    fn use_second_factor_step<'a>(
        &'a self,
        key: &'a UserKey,
        number: u64,
    ) -> StoreFuture<'a, bool> {
        step(factors::use_step(&self.database, key, number))
    }

    fn use_recovery_code<'a>(
        &'a self,
        key: &'a UserKey,
        code: SecretHash,
    ) -> StoreFuture<'a, bool> {
        step(factors::use_code(&self.database, key, code))
    }

    fn delete_second_factor<'a>(&'a self, key: &'a UserKey) -> StoreFuture<'a, bool> {
        step(factors::delete(&self.database, key))
    }

    fn passkey<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<(UserKey, Passkey)>> {
        step(passkeys::find(&self.database, id))
    }

    fn passkeys_of_user<'a>(&'a self, key: &'a UserKey) -> StoreFuture<'a, Vec<Passkey>> {
        step(passkeys::list(&self.database, key))
    }

    fn insert_passkey<'a>(
        &'a self,
        key: &'a UserKey,
        passkey: &'a Passkey,
    ) -> StoreFuture<'a, bool> {
        step(passkeys::insert(&self.database, key, passkey))
    }

    fn rename_passkey<'a>(
        &'a self,
        key: &'a UserKey,
        id: &'a str,
        name: &'a str,
    ) -> StoreFuture<'a, bool> {
        step(passkeys::rename(&self.database, key, (id, name)))
    }

    fn use_passkey<'a>(
        &'a self,
        read: &'a Passkey,
        record: &'a str,
        at: Timestamp,
    ) -> StoreFuture<'a, bool> {
        step(passkeys::update(&self.database, read, record, at))
    }

    fn delete_passkey<'a>(
        &'a self,
        key: &'a UserKey,
        id: &'a str,
    ) -> StoreFuture<'a, RemovalOutcome> {
        step(passkeys::delete(&self.database, key, id))
    }

    fn delete_credentials<'a>(
        &'a self,
        key: &'a UserKey,
        kind: CredentialKind,
    ) -> StoreFuture<'a, Vec<String>> {
        step(credentials::delete(&self.database, key, kind))
    }
}
