//! The part of the storage port for browser flows. The rules are those of [`Store`](crate::Store).

use crate::{
    Approval, AuthorizationCode, BrowserSession, DeviceCode, DevicePoll, SecondFactor, SecretHash,
    Session, StoreFuture, Timestamp, UserKey,
};

/// Codes, device codes, browser sessions and second factors.
pub trait FlowStore: Send + Sync {
    /// Adds a code with a new hash; its browser session exists. It is deleted with the
    /// client; when the browser session is deleted, its `browser` becomes `None`.
    fn insert_code<'a>(&'a self, code: &'a AuthorizationCode) -> StoreFuture<'a, ()>;

    /// The code with this hash, used or not, expired or not.
    fn code(&self, hash: SecretHash) -> StoreFuture<'_, Option<AuthorizationCode>>;

    /// Redeems a code in one atomic step: if it is unused, not expired at the session's
    /// `created_at` and its browser session exists, adds the session and stores its id with the
    /// code. Whether it did; of parallel calls exactly one does.
    fn redeem_code<'a>(&'a self, hash: SecretHash, session: &'a Session) -> StoreFuture<'a, bool>;

    /// Adds a pending device code. `false` if its user code exists already. It is deleted with its
    /// client, if that is not a built-in one.
    fn insert_device_code<'a>(&'a self, device: &'a DeviceCode) -> StoreFuture<'a, bool>;

    /// The device code with this user code, in any state.
    fn device_code<'a>(&'a self, user_code: &'a str) -> StoreFuture<'a, Option<DeviceCode>>;

    /// Records a poll at `now` and returns the device code, in one atomic step; the rule as code is
    /// [`DeviceCode::polled`]. `None` when the client has no such device code.
    fn poll_device_code<'a>(
        &'a self,
        hash: SecretHash,
        client_id: &'a str,
        now: Timestamp,
    ) -> StoreFuture<'a, Option<DevicePoll>>;

    /// Approves or denies a device code that is pending and not expired at `now`. Whether it did.
    /// An approval is deleted with its browser session.
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

    /// A user's sessions that are alive at `now`, the most recently used first.
    fn sessions_of_user<'a>(
        &'a self,
        key: &'a UserKey,
        now: Timestamp,
    ) -> StoreFuture<'a, Vec<Session>>;

    /// Adds a browser session with a new id. It is deleted with its user.
    fn insert_browser_session<'a>(&'a self, session: &'a BrowserSession) -> StoreFuture<'a, ()>;

    /// The browser session with this id, expired or not.
    fn browser_session(&self, id: SecretHash) -> StoreFuture<'_, Option<BrowserSession>>;

    /// Records that a browser session was used.
    fn touch_browser_session(
        &self,
        id: SecretHash,
        seen_at: Timestamp,
        expires_at: Timestamp,
    ) -> StoreFuture<'_, ()>;

    /// Deletes a browser session. Whether it existed.
    fn delete_browser_session(&self, id: SecretHash) -> StoreFuture<'_, bool>;

    /// A user's browser sessions that are not expired at `now`, the most recently used first.
    fn browser_sessions_of_user<'a>(
        &'a self,
        key: &'a UserKey,
        now: Timestamp,
    ) -> StoreFuture<'a, Vec<BrowserSession>>;

    /// A user's second factor.
    fn second_factor<'a>(&'a self, key: &'a UserKey) -> StoreFuture<'a, Option<SecondFactor>>;

    /// Adds a user's second factor with its recovery codes. `false` if the user has one. It is
    /// deleted with the user.
    fn insert_second_factor<'a>(
        &'a self,
        key: &'a UserKey,
        factor: &'a SecondFactor,
        recovery_codes: &'a [SecretHash],
    ) -> StoreFuture<'a, bool>;

    /// Marks the code of a step as used. `false` if it or a later one was used; of parallel calls
    /// for one step exactly one succeeds.
    fn use_second_factor_step<'a>(&'a self, key: &'a UserKey, step: u64) -> StoreFuture<'a, bool>;

    /// Deletes a recovery code. Whether it existed; of parallel calls exactly one finds it.
    fn use_recovery_code<'a>(&'a self, key: &'a UserKey, code: SecretHash)
    -> StoreFuture<'a, bool>;

    /// Deletes a user's second factor. Whether it existed.
    fn delete_second_factor<'a>(&'a self, key: &'a UserKey) -> StoreFuture<'a, bool>;

    /// Deletes codes, device codes and browser sessions that expired before this; returns the
    /// number of rows.
    fn purge_flows(&self, before: Timestamp) -> StoreFuture<'_, u64>;
}
