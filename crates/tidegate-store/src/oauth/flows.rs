//! [`FlowStore`]: codes, device codes, browser sessions and second factors.

use tidegate_oauth::{
    Approval, AuthorizationCode, BrowserSession, DeviceCode, DevicePoll, FlowStore, SecondFactor,
    SecretHash, Session, StoreFuture, Timestamp, UserKey,
};

use super::{PgOauthStore, browsers, codes, devices, factors, sessions, step};
use crate::error::Result;
use crate::query::{Database, Query};
use crate::row;

static PURGE: Query = Query::new(
    "with codes as (delete from tidegate.authorization_codes \
       where expires_at < :before::timestamptz returning 1), \
     devices as (delete from tidegate.device_codes \
       where expires_at < :before::timestamptz returning 1), \
     browsers as (delete from tidegate.browser_sessions \
       where expires_at < :before::timestamptz returning 1) \
     select (select pg_catalog.count(*) from codes) + (select pg_catalog.count(*) from devices) \
       + (select pg_catalog.count(*) from browsers)",
);

async fn purge(database: &Database, before: Timestamp) -> Result<u64> {
    let rows = database.row(&PURGE, &[&before], row::count).await?;
    Ok(rows.unwrap_or(0))
}

impl FlowStore for PgOauthStore {
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
        now: Timestamp,
    ) -> StoreFuture<'a, Vec<Session>> {
        step(sessions::of_user(&self.database, key, now))
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

    fn purge_flows(&self, before: Timestamp) -> StoreFuture<'_, u64> {
        step(purge(&self.database, before))
    }
}
