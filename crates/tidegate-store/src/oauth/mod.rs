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

use async_trait::async_trait;
use tidegate_identity::{EndReason, SecretHash, SessionId, StoreResult, Timestamp, UserKey};
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

#[async_trait]
impl IssuerStore for PgOauthStore {
    async fn claim_master_key(&self, fingerprint: &str) -> StoreResult<String> {
        Ok(self.claim(fingerprint).await?)
    }

    async fn client(&self, id: &str) -> StoreResult<Option<Client>> {
        Ok(clients::find(&self.database, id).await?)
    }

    async fn clients(&self, database: &str) -> StoreResult<Vec<Client>> {
        Ok(clients::list(&self.database, database).await?)
    }

    async fn redirect_uris_from(&self, start: &str) -> StoreResult<Vec<String>> {
        Ok(clients::redirect_uris_from(&self.database, start).await?)
    }

    async fn insert_client(&self, client: &Client) -> StoreResult<bool> {
        Ok(clients::insert(&self.database, client).await?)
    }

    async fn update_client(&self, read: &Client, client: &Client) -> StoreResult<bool> {
        Ok(clients::update(&self.database, read, client).await?)
    }

    async fn delete_client(&self, id: &str, at: Timestamp) -> StoreResult<bool> {
        Ok(clients::delete(&self.database, id, at).await?)
    }

    async fn end_sessions_of_client(
        &self,
        id: &str,
        grant: GrantKind,
        end: SessionEnd,
    ) -> StoreResult<()> {
        Ok(sessions::end_of_client(&self.database, id, grant, end).await?)
    }

    async fn insert_session(&self, session: &Session) -> StoreResult<()> {
        Ok(sessions::insert(&self.database, session).await?)
    }

    async fn session(&self, id: SessionId) -> StoreResult<Option<Session>> {
        Ok(sessions::find(&self.database, id).await?)
    }

    async fn sessions(
        &self,
        database: &str,
        now: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<Session>> {
        Ok(sessions::of_tenant(&self.database, database, (now, limit)).await?)
    }

    async fn present_refresh_token(
        &self,
        id: SessionId,
        number: u64,
        now: Timestamp,
        expires_at: Timestamp,
    ) -> StoreResult<RefreshOutcome> {
        Ok(sessions::present(&self.database, id, number, (now, expires_at)).await?)
    }

    async fn use_personal_token(
        &self,
        hash: SecretHash,
        now: Timestamp,
    ) -> StoreResult<Option<Session>> {
        Ok(sessions::use_token(&self.database, hash, now).await?)
    }

    async fn personal_tokens(
        &self,
        database: &str,
        user: Option<&str>,
        now: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<Session>> {
        let of = (database, user);
        Ok(sessions::tokens(&self.database, of, (now, limit)).await?)
    }

    async fn consent(&self, key: &UserKey, client_id: &str) -> StoreResult<Option<Consent>> {
        Ok(consents::find(&self.database, key, client_id).await?)
    }

    async fn consents_of_user(&self, key: &UserKey) -> StoreResult<Vec<Consent>> {
        Ok(consents::list(&self.database, key).await?)
    }

    async fn put_consent(&self, key: &UserKey, consent: &Consent) -> StoreResult<()> {
        Ok(consents::put(&self.database, key, consent).await?)
    }

    async fn delete_consent(&self, key: &UserKey, client_id: &str) -> StoreResult<bool> {
        Ok(consents::delete(&self.database, key, client_id).await?)
    }

    async fn end_session(
        &self,
        id: SessionId,
        reason: EndReason,
        at: Timestamp,
    ) -> StoreResult<bool> {
        Ok(sessions::end(&self.database, id, reason, at).await?)
    }

    async fn ended_sessions(&self, since: Timestamp) -> StoreResult<Vec<EndedSession>> {
        Ok(sessions::ended(&self.database, since).await?)
    }

    async fn signing_keys(&self) -> StoreResult<Vec<SigningKeyRecord>> {
        Ok(keys::list(&self.database).await?)
    }

    async fn insert_signing_key(&self, key: &SigningKeyRecord) -> StoreResult<bool> {
        Ok(keys::insert(&self.database, key).await?)
    }

    async fn promote_signing_key(
        &self,
        next: &str,
        active: &str,
        at: Timestamp,
    ) -> StoreResult<bool> {
        Ok(keys::promote(&self.database, next, active, at).await?)
    }

    async fn delete_signing_key(&self, id: &str) -> StoreResult<bool> {
        Ok(keys::delete(&self.database, id).await?)
    }

    async fn purge(&self, before: PurgeBefore) -> StoreResult<u64> {
        Ok(self.purge_expired(before).await?)
    }

    async fn purge_guests(&self, before: Timestamp, kept: u32) -> StoreResult<u64> {
        Ok(sessions::purge_guests(&self.database, before, kept).await?)
    }

    async fn insert_code(&self, code: &AuthorizationCode) -> StoreResult<()> {
        Ok(codes::insert(&self.database, code).await?)
    }

    async fn code(&self, hash: SecretHash) -> StoreResult<Option<AuthorizationCode>> {
        Ok(codes::find(&self.database, hash).await?)
    }

    async fn redeem_code(&self, hash: SecretHash, session: &Session) -> StoreResult<bool> {
        Ok(codes::redeem(&self.database, hash, session).await?)
    }

    async fn insert_device_code(&self, device: &DeviceCode) -> StoreResult<bool> {
        Ok(devices::insert(&self.database, device).await?)
    }

    async fn device_code(&self, user_code: &str) -> StoreResult<Option<DeviceCode>> {
        Ok(devices::find(&self.database, user_code).await?)
    }

    async fn poll_device_code(
        &self,
        hash: SecretHash,
        client_id: &str,
        now: Timestamp,
    ) -> StoreResult<Option<DevicePoll>> {
        Ok(devices::poll(&self.database, hash, client_id, now).await?)
    }

    async fn decide_device_code(
        &self,
        user_code: &str,
        approval: Option<&Approval>,
        now: Timestamp,
    ) -> StoreResult<bool> {
        Ok(devices::decide(&self.database, user_code, approval, now).await?)
    }

    async fn redeem_device_code(&self, hash: SecretHash, session: &Session) -> StoreResult<bool> {
        Ok(devices::redeem(&self.database, hash, session).await?)
    }

    async fn sessions_of_user(
        &self,
        key: &UserKey,
        client_id: Option<&str>,
        now: Timestamp,
    ) -> StoreResult<Vec<Session>> {
        Ok(sessions::of_user(&self.database, key, client_id, now).await?)
    }
}
