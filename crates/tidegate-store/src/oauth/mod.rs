//! The store of users and of the OAuth issuer. Each table has a module.

mod attempts;
mod audit;
mod browsers;
mod clients;
mod codes;
mod consents;
mod credentials;
mod devices;
mod factors;
mod identities;
mod identity;
mod keys;
mod members;
mod passkeys;
mod sessions;
mod tenants;
mod users;

use std::sync::Arc;

use tidegate_identity::{
    EndReason, SecretHash, SessionId, StoreError, StoreFuture, Timestamp, UserKey,
};
use tidegate_oauth::{
    Approval, AuthorizationCode, Client, Consent, DeviceCode, DevicePoll, EndedSession, GrantKind,
    IssuerStore, PurgeBefore, RefreshOutcome, Session, SessionEnd, SigningKeyRecord,
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
     ids as (delete from tidegate.dropped_ids where database = :database), \
     clients as (delete from tidegate.clients where database = :database returning id), \
     codes as (delete from tidegate.authorization_codes \
       where client_id in (select id from tidegate.clients where database = :database)), \
     devices as (delete from tidegate.device_codes \
       where client_id in (select id from tidegate.clients where database = :database)), \
     ended as (update tidegate.sessions \
       set ended_at = :at::timestamptz, end_reason = :reason \
       where database = :database and ended_at is null returning id), \
     issuers as (delete from tidegate.issuers where database = :database returning name) \
     select pg_catalog.pg_notify('tidegate', 'users ' || :database::text)::text, \
       (select pg_catalog.count(pg_catalog.pg_notify('tidegate', 'sessions')) from ended), \
       (select pg_catalog.count(pg_catalog.pg_notify('tidegate', 'client ' || id)) from clients), \
       (select pg_catalog.count(pg_catalog.pg_notify('tidegate', 'issuers')) from issuers)",
);
static PURGE: Query = Query::new(
    "with sessions as (delete from tidegate.sessions \
       where expires_at < :sessions::timestamptz or ended_at < :sessions::timestamptz returning 1), \
     attempts as (delete from tidegate.attempts \
       where expires_at < :attempts::timestamptz returning 1), \
     audit as (delete from tidegate.audit_events where at < :audit::timestamptz returning 1), \
     codes as (delete from tidegate.authorization_codes \
       where expires_at < :flows::timestamptz returning 1), \
     devices as (delete from tidegate.device_codes \
       where expires_at < :flows::timestamptz returning 1), \
     browsers as (delete from tidegate.browser_sessions \
       where expires_at < :flows::timestamptz returning 1) \
     select (select pg_catalog.count(*) from sessions) + (select pg_catalog.count(*) from attempts) \
       + (select pg_catalog.count(*) from audit) + (select pg_catalog.count(*) from codes) \
       + (select pg_catalog.count(*) from devices) + (select pg_catalog.count(*) from browsers)",
);

/// The records of users and of the issuer in the schema `tidegate` of the control database.
///
/// Most writes are a single statement, which is atomic; a few are transactions. Other nodes are
/// notified of changes by [`crate::Change`].
#[derive(Clone, Debug)]
pub struct PgOauthStore {
    database: Database,
}

impl PgOauthStore {
    /// A store in the control database that `executor` uses. [`crate::migrate`] must have run
    /// before.
    pub fn new(executor: Arc<dyn Executor>) -> Self {
        Self {
            database: Database::new(executor),
        }
    }

    /// Stores the fingerprint of the master key in the control database if it has none yet.
    /// Otherwise checks that the stored fingerprint is the same.
    ///
    /// # Errors
    ///
    /// [`Error::OtherMasterKey`] if the database has the fingerprint of another key.
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
        let PurgeBefore {
            sessions,
            attempts,
            audit,
            flows,
        } = &before;
        let values: [Argument<'_>; 4] = [sessions, attempts, audit, flows];
        let rows = self.database.row(&PURGE, &values, row::count).await?;
        Ok(rows.unwrap_or(0))
    }
}

/// Boxes a future for the store traits, and converts its error.
fn step<'a, T: 'a>(work: impl Future<Output = Result<T>> + Send + 'a) -> StoreFuture<'a, T> {
    Box::pin(async move { work.await.map_err(StoreError::from) })
}

impl IssuerStore for PgOauthStore {
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

    fn insert_client<'a>(&'a self, client: &'a Client) -> StoreFuture<'a, bool> {
        step(clients::insert(&self.database, client))
    }

    fn update_client<'a>(&'a self, read: &'a Client, client: &'a Client) -> StoreFuture<'a, bool> {
        step(clients::update(&self.database, read, client))
    }

    fn delete_client<'a>(&'a self, id: &'a str, at: Timestamp) -> StoreFuture<'a, bool> {
        step(clients::delete(&self.database, id, at))
    }

    fn end_sessions_of_client<'a>(
        &'a self,
        id: &'a str,
        grant: GrantKind,
        end: SessionEnd,
    ) -> StoreFuture<'a, ()> {
        step(sessions::end_of_client(&self.database, id, grant, end))
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

    fn use_personal_token(
        &self,
        hash: SecretHash,
        now: Timestamp,
    ) -> StoreFuture<'_, Option<Session>> {
        step(sessions::use_token(&self.database, hash, now))
    }

    fn personal_tokens<'a>(
        &'a self,
        database: &'a str,
        user: Option<&'a str>,
        now: Timestamp,
        limit: u32,
    ) -> StoreFuture<'a, Vec<Session>> {
        let of = (database, user);
        step(sessions::tokens(&self.database, of, (now, limit)))
    }

    fn consent<'a>(
        &'a self,
        key: &'a UserKey,
        client_id: &'a str,
    ) -> StoreFuture<'a, Option<Consent>> {
        step(consents::find(&self.database, key, client_id))
    }

    fn consents_of_user<'a>(&'a self, key: &'a UserKey) -> StoreFuture<'a, Vec<Consent>> {
        step(consents::list(&self.database, key))
    }

    fn put_consent<'a>(&'a self, key: &'a UserKey, consent: &'a Consent) -> StoreFuture<'a, ()> {
        step(consents::put(&self.database, key, consent))
    }

    fn delete_consent<'a>(&'a self, key: &'a UserKey, client_id: &'a str) -> StoreFuture<'a, bool> {
        step(consents::delete(&self.database, key, client_id))
    }

    fn end_session(
        &self,
        id: SessionId,
        reason: EndReason,
        at: Timestamp,
    ) -> StoreFuture<'_, bool> {
        step(sessions::end(&self.database, id, reason, at))
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

    fn purge(&self, before: PurgeBefore) -> StoreFuture<'_, u64> {
        step(self.purge_expired(before))
    }

    fn purge_guests(&self, before: Timestamp, kept: u32) -> StoreFuture<'_, u64> {
        step(sessions::purge_guests(&self.database, before, kept))
    }

    fn insert_code<'a>(&'a self, code: &'a AuthorizationCode) -> StoreFuture<'a, ()> {
        step(codes::insert(&self.database, code))
    }

    fn code(&self, hash: SecretHash) -> StoreFuture<'_, Option<AuthorizationCode>> {
        step(codes::find(&self.database, hash))
    }

    fn redeem_code<'a>(&'a self, hash: SecretHash, session: &'a Session) -> StoreFuture<'a, bool> {
        step(codes::redeem(&self.database, hash, session))
    }

    fn insert_device_code<'a>(&'a self, device: &'a DeviceCode) -> StoreFuture<'a, bool> {
        step(devices::insert(&self.database, device))
    }

    fn device_code<'a>(&'a self, user_code: &'a str) -> StoreFuture<'a, Option<DeviceCode>> {
        step(devices::find(&self.database, user_code))
    }

    fn poll_device_code<'a>(
        &'a self,
        hash: SecretHash,
        client_id: &'a str,
        now: Timestamp,
    ) -> StoreFuture<'a, Option<DevicePoll>> {
        step(devices::poll(&self.database, hash, client_id, now))
    }

    fn decide_device_code<'a>(
        &'a self,
        user_code: &'a str,
        approval: Option<&'a Approval>,
        now: Timestamp,
    ) -> StoreFuture<'a, bool> {
        step(devices::decide(&self.database, user_code, approval, now))
    }

    fn redeem_device_code<'a>(
        &'a self,
        hash: SecretHash,
        session: &'a Session,
    ) -> StoreFuture<'a, bool> {
        step(devices::redeem(&self.database, hash, session))
    }

    fn sessions_of_user<'a>(
        &'a self,
        key: &'a UserKey,
        client_id: Option<&'a str>,
        now: Timestamp,
    ) -> StoreFuture<'a, Vec<Session>> {
        step(sessions::of_user(&self.database, key, client_id, now))
    }
}
