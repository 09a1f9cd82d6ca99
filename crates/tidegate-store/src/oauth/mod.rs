//! The store of the OAuth issuer.

mod attempts;
mod audit;
mod browsers;
mod clients;
mod codes;
mod devices;
mod factors;
mod flows;
mod identities;
mod keys;
mod sessions;
mod tenants;
mod users;

use std::sync::Arc;

use tidegate_oauth::{
    AnonymousSql, AttemptKey, AttemptLimit, AttemptOutcome, AuditEvent, AuditPage, AuditSince,
    Client, EndReason, EndedSession, LinkedIdentity, PurgeBefore, RefreshOutcome, Session,
    SessionId, SigningKeyRecord, Store, StoreError, StoreFuture, Timestamp, UnlinkOutcome, User,
    UserKey, WriteOutcome,
};
use tidegate_sql::Executor;

use crate::error::{Error, Result};
use crate::query::{Argument, Database, Query};
use crate::row;

static CLAIM: Query = Query::new(
    "insert into tidegate.master_key as kept (fingerprint) values (:fingerprint) \
     on conflict (only_row) do update set fingerprint = kept.fingerprint returning fingerprint",
);
static DELETE_TENANT: Query = Query::new(
    "with users as (delete from tidegate.users where database = :database), \
     clients as (delete from tidegate.clients where database = :database returning id), \
     codes as (delete from tidegate.authorization_codes \
       where client_id in (select id from tidegate.clients where database = :database)), \
     devices as (delete from tidegate.device_codes \
       where client_id in (select id from tidegate.clients where database = :database)), \
     ended as (update tidegate.sessions \
       set ended_at = :at::timestamptz, end_reason = :reason \
       where database = :database and ended_at is null returning id) \
     select pg_catalog.pg_notify('tidegate', 'users ' || :database::text)::text, \
       (select pg_catalog.count(pg_catalog.pg_notify('tidegate', 'sessions')) from ended), \
       (select pg_catalog.count(pg_catalog.pg_notify('tidegate', 'client ' || id)) from clients)",
);
static PURGE: Query = Query::new(
    "with sessions as (delete from tidegate.sessions \
       where expires_at < :sessions::timestamptz or ended_at < :sessions::timestamptz returning 1), \
     attempts as (delete from tidegate.attempts \
       where expires_at < :attempts::timestamptz returning 1), \
     audit as (delete from tidegate.audit_events where at < :audit::timestamptz returning 1) \
     select (select pg_catalog.count(*) from sessions) + (select pg_catalog.count(*) from attempts) \
       + (select pg_catalog.count(*) from audit)",
);

/// The issuer's records in the schema `tidegate` of the control database.
///
/// Every atomic step is one statement, except for a few transactions. Other nodes are notified of
/// changes by [`crate::Change`].
#[derive(Clone, Debug)]
pub struct PgOauthStore {
    database: Database,
}

impl PgOauthStore {
    /// A store in the control database of this executor; run [`crate::migrate`] first.
    pub fn new(executor: Arc<dyn Executor>) -> Self {
        Self {
            database: Database::new(executor),
        }
    }

    /// Claims the control database for a master key, or checks that it belongs to this one.
    ///
    /// # Errors
    ///
    /// [`Error::OtherMasterKey`] when the database belongs to another key.
    pub async fn check_master_key(&self, fingerprint: &str) -> Result<()> {
        if self.claim(fingerprint).await? == fingerprint {
            Ok(())
        } else {
            Err(Error::OtherMasterKey)
        }
    }

    async fn claim(&self, fingerprint: &str) -> Result<String> {
        let kept = self
            .database
            .row(&CLAIM, &[&fingerprint], row::string)
            .await?;
        kept.ok_or_else(|| Error::failed("a claim returned nothing"))
    }

    async fn drop_tenant(&self, database: &str, at: Timestamp) -> Result<()> {
        let reason = EndReason::TenantDropped.name();
        let values: [Argument<'_>; 3] = [&database, &at, &reason];
        self.database
            .row(&DELETE_TENANT, &values, row::nothing)
            .await?;
        Ok(())
    }

    async fn purge_expired(&self, before: PurgeBefore) -> Result<u64> {
        let values: [Argument<'_>; 3] = [&before.sessions, &before.attempts, &before.audit];
        let rows = self.database.row(&PURGE, &values, row::count).await?;
        Ok(rows.unwrap_or(0))
    }
}

/// Boxes a future for the port and converts its error.
fn step<'a, T: 'a>(work: impl Future<Output = Result<T>> + Send + 'a) -> StoreFuture<'a, T> {
    Box::pin(async move { work.await.map_err(StoreError::from) })
}

impl Store for PgOauthStore {
    fn claim_master_key<'a>(&'a self, fingerprint: &'a str) -> StoreFuture<'a, String> {
        step(self.claim(fingerprint))
    }

    fn client<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<Client>> {
        step(clients::find(&self.database, id))
    }

    fn clients<'a>(&'a self, database: &'a str) -> StoreFuture<'a, Vec<Client>> {
        step(clients::list(&self.database, database))
    }

    fn redirect_uris_from<'a>(&'a self, start: &'a str) -> StoreFuture<'a, Vec<String>> {
        step(clients::redirect_uris_from(&self.database, start))
    }

    fn insert_client<'a>(&'a self, client: &'a Client) -> StoreFuture<'a, WriteOutcome> {
        step(clients::insert(&self.database, client))
    }

    fn update_client<'a>(&'a self, read: &'a Client, client: &'a Client) -> StoreFuture<'a, bool> {
        step(clients::update(&self.database, read, client))
    }

    fn delete_client<'a>(&'a self, id: &'a str, at: Timestamp) -> StoreFuture<'a, bool> {
        step(clients::delete(&self.database, id, at))
    }

    fn user<'a>(&'a self, key: &'a UserKey) -> StoreFuture<'a, Option<User>> {
        step(users::find(&self.database, key))
    }

    fn users<'a>(&'a self, database: &'a str) -> StoreFuture<'a, Vec<User>> {
        step(users::list(&self.database, database))
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
    ) -> StoreFuture<'a, UnlinkOutcome> {
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

    fn delete_user<'a>(&'a self, key: &'a UserKey, at: Timestamp) -> StoreFuture<'a, bool> {
        step(users::delete(&self.database, key, at))
    }

    fn delete_tenant<'a>(&'a self, database: &'a str, at: Timestamp) -> StoreFuture<'a, ()> {
        step(self.drop_tenant(database, at))
    }

    fn insert_session<'a>(&'a self, session: &'a Session) -> StoreFuture<'a, ()> {
        step(sessions::insert(&self.database, session))
    }

    fn session(&self, id: SessionId) -> StoreFuture<'_, Option<Session>> {
        step(sessions::find(&self.database, id))
    }

    fn sessions<'a>(
        &'a self,
        database: &'a str,
        now: Timestamp,
        limit: u32,
    ) -> StoreFuture<'a, Vec<Session>> {
        step(sessions::of_tenant(&self.database, database, (now, limit)))
    }

    fn present_refresh_token(
        &self,
        id: SessionId,
        number: u64,
        now: Timestamp,
        expires_at: Timestamp,
    ) -> StoreFuture<'_, RefreshOutcome> {
        step(sessions::present(
            &self.database,
            id,
            number,
            (now, expires_at),
        ))
    }

    fn end_session(
        &self,
        id: SessionId,
        reason: EndReason,
        at: Timestamp,
    ) -> StoreFuture<'_, bool> {
        step(sessions::end(&self.database, id, reason, at))
    }

    fn end_sessions_of_user<'a>(
        &'a self,
        key: &'a UserKey,
        reason: EndReason,
        at: Timestamp,
    ) -> StoreFuture<'a, Vec<SessionId>> {
        step(sessions::end_of_user(&self.database, key, reason, at))
    }

    fn ended_sessions(&self, since: Timestamp) -> StoreFuture<'_, Vec<EndedSession>> {
        step(sessions::ended(&self.database, since))
    }

    fn signing_keys(&self) -> StoreFuture<'_, Vec<SigningKeyRecord>> {
        step(keys::list(&self.database))
    }

    fn insert_signing_key<'a>(&'a self, key: &'a SigningKeyRecord) -> StoreFuture<'a, bool> {
        step(keys::insert(&self.database, key))
    }

    fn promote_signing_key<'a>(
        &'a self,
        next: &'a str,
        active: &'a str,
        at: Timestamp,
    ) -> StoreFuture<'a, bool> {
        step(keys::promote(&self.database, next, active, at))
    }

    fn delete_signing_key<'a>(&'a self, id: &'a str) -> StoreFuture<'a, bool> {
        step(keys::delete(&self.database, id))
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

    fn purge(&self, before: PurgeBefore) -> StoreFuture<'_, u64> {
        step(self.purge_expired(before))
    }

    fn purge_guests(&self, before: Timestamp, kept: u32) -> StoreFuture<'_, u64> {
        step(sessions::purge_guests(&self.database, before, kept))
    }
}
