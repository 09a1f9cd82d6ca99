//! The part of the port that flows through a browser need. The house rules are those of
//! [`Store`](crate::Store).

use crate::{
    Approval, AuthorizationCode, BrowserSession, DeviceCode, Polled, SecondFactor, SecretHash,
    Session, StoreFuture, Timestamp, UserKey,
};

/// Codes, device codes, browser sessions and second factors.
pub trait FlowStore: Send + Sync {
    /// Adds a code; its hash is new, its client and its browser session are there. It goes when the
    /// client does; when the browser session does it loses it.
    fn insert_code<'a>(&'a self, code: &'a AuthorizationCode) -> StoreFuture<'a, ()>;

    /// The code with this hash, used or not, expired or not.
    fn code(&self, hash: SecretHash) -> StoreFuture<'_, Option<AuthorizationCode>>;

    /// In one atomic step, if the code is unused, not expired at the session's `created_at`, and
    /// its browser session is there: notes the session as what it gave, and adds the session.
    /// Whether it did; of parallel calls exactly one does.
    fn redeem_code<'a>(&'a self, hash: SecretHash, session: &'a Session) -> StoreFuture<'a, bool>;

    /// Adds a device code that is pending, unless its user code is kept already. Whether it did.
    /// Its client is there; it goes when the client does.
    fn insert_device_code<'a>(&'a self, device: &'a DeviceCode) -> StoreFuture<'a, bool>;

    /// The device code with this user code, whatever its state.
    fn device_code<'a>(&'a self, user_code: &'a str) -> StoreFuture<'a, Option<DeviceCode>>;

    /// Notes a poll at `now` and tells what the device code is: one atomic step, whose rule as code
    /// is [`DeviceCode::polled`]. None when the client has no such device code.
    fn poll_device_code<'a>(
        &'a self,
        hash: SecretHash,
        client_id: &'a str,
        now: Timestamp,
    ) -> StoreFuture<'a, Option<Polled>>;

    /// Decides about a device code that is pending and not expired at `now`: approved, or denied.
    /// Whether it did. One that was approved goes when that browser session does.
    fn decide_device_code<'a>(
        &'a self,
        user_code: &'a str,
        approval: Option<&'a Approval>,
        now: Timestamp,
    ) -> StoreFuture<'a, bool>;

    /// In one atomic step, if the device code is approved and not expired at the session's
    /// `created_at`: consumes it and adds the session. Whether it did.
    fn redeem_device_code<'a>(
        &'a self,
        hash: SecretHash,
        session: &'a Session,
    ) -> StoreFuture<'a, bool>;

    /// A user's sessions that are alive at `now`, the last used first.
    fn sessions_of_user<'a>(
        &'a self,
        key: &'a UserKey,
        now: Timestamp,
    ) -> StoreFuture<'a, Vec<Session>>;

    /// Adds a browser session; its id is new and its user is there. It goes when the user does.
    fn insert_browser_session<'a>(&'a self, session: &'a BrowserSession) -> StoreFuture<'a, ()>;

    /// The browser session with this id, expired or not.
    fn browser_session(&self, id: SecretHash) -> StoreFuture<'_, Option<BrowserSession>>;

    /// Notes that a browser session was used.
    fn touch_browser_session(
        &self,
        id: SecretHash,
        seen_at: Timestamp,
        expires_at: Timestamp,
    ) -> StoreFuture<'_, ()>;

    /// Deletes a browser session. Whether there was one.
    fn delete_browser_session(&self, id: SecretHash) -> StoreFuture<'_, bool>;

    /// A user's browser sessions that are not expired at `now`, the last used first.
    fn browser_sessions_of_user<'a>(
        &'a self,
        key: &'a UserKey,
        now: Timestamp,
    ) -> StoreFuture<'a, Vec<BrowserSession>>;

    /// A user's second factor.
    fn second_factor<'a>(&'a self, key: &'a UserKey) -> StoreFuture<'a, Option<SecondFactor>>;

    /// Adds a user's second factor with its recovery codes, unless the user has one. Whether it
    /// did. It goes when the user does.
    fn insert_second_factor<'a>(
        &'a self,
        key: &'a UserKey,
        factor: &'a SecondFactor,
        recovery_codes: &'a [SecretHash],
    ) -> StoreFuture<'a, bool>;

    /// Notes that the code of a step was used, if no code of it or of a later one was. Whether it
    /// did; of parallel calls for one step exactly one does.
    fn use_second_factor_step<'a>(&'a self, key: &'a UserKey, step: u64) -> StoreFuture<'a, bool>;

    /// Deletes a recovery code. Whether there was one; of parallel calls exactly one finds it.
    fn use_recovery_code<'a>(&'a self, key: &'a UserKey, code: SecretHash)
    -> StoreFuture<'a, bool>;

    /// Deletes a user's second factor. Whether there was one.
    fn delete_second_factor<'a>(&'a self, key: &'a UserKey) -> StoreFuture<'a, bool>;

    /// Takes away codes, device codes and browser sessions that expired before this; returns the
    /// number of rows.
    fn purge_flows(&self, before: Timestamp) -> StoreFuture<'_, u64>;
}
