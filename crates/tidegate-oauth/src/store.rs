//! The port to durable storage: records, and the few steps that must be atomic. The rules of
//! [`IdentityStore`] apply. These rules apply too:
//!
//! - The row of a session outlives its user and client: [`IssuerStore::ended_sessions`] must return
//!   ended sessions until [`IssuerStore::purge`] deletes them.
//! - Every change of sessions, keys and clients should notify the other nodes.

use async_trait::async_trait;
use tidegate_identity::{
    EndReason, IdentityStore, SecretHash, SessionId, StoreResult, Timestamp, UserKey,
};

use crate::{
    Approval, AuthorizationCode, Client, Consent, DeviceCode, DevicePoll, EndedSession, GrantKind,
    Session, SessionEnd, SigningKeyRecord,
};

/// The result of presenting a refresh token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefreshOutcome {
    /// The token is valid; contains the updated session.
    Accepted(Session),
    /// The session does not exist, has ended or has expired.
    Invalid,
    /// A later token of the session was presented before. The store has not changed the session;
    /// the calling function must end the session.
    Reused,
}

/// The times before which [`IssuerStore::purge`] deletes rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PurgeBefore {
    /// Sessions whose `expires_at` or `ended.at` is before this time are deleted.
    pub sessions: Timestamp,
    /// Attempt counters whose `expires_at` is before this time are deleted.
    pub attempts: Timestamp,
    /// Audit events before this time are deleted.
    pub audit: Timestamp,
    /// Authorization codes, device codes and browser sessions whose `expires_at` is before this
    /// time are deleted.
    pub flows: Timestamp,
}

/// The port to durable storage. Object safe; the issuer holds a `dyn IssuerStore`.
#[async_trait]
pub trait IssuerStore: IdentityStore {
    /// Stores `fingerprint` if no fingerprint is stored yet; returns the stored fingerprint. The
    /// call is atomic: if two nodes with different master keys start at the same time, one of them
    /// gets the other's fingerprint.
    async fn claim_master_key(&self, fingerprint: &str) -> StoreResult<String>;

    /// The client with this id, in any tenant.
    async fn client(&self, id: &str) -> StoreResult<Option<Client>>;

    /// A tenant's clients, sorted by id.
    async fn clients(&self, database: &str) -> StoreResult<Vec<Client>>;

    /// The redirect URIs that start with this prefix, of the clients of all tenants.
    async fn redirect_uris_from(&self, start: &str) -> StoreResult<Vec<String>>;

    /// Adds a client. `false` if its id is taken, by a client of any tenant.
    async fn insert_client(&self, client: &Client) -> StoreResult<bool>;

    /// Replaces all fields except `database` and `created_at`, if the client is unchanged since it
    /// was read. `false` after a concurrent change.
    async fn update_client(&self, read: &Client, client: &Client) -> StoreResult<bool>;

    /// Deletes a client with its codes and consents and, in the same transaction, ends its sessions
    /// ([`EndReason::ClientDropped`]). `false` if it does not exist.
    async fn delete_client(&self, id: &str, at: Timestamp) -> StoreResult<bool>;

    /// Ends the sessions that a client opened by a grant. Sessions that ended before are unchanged.
    async fn end_sessions_of_client(
        &self,
        id: &str,
        grant: GrantKind,
        end: SessionEnd,
    ) -> StoreResult<()>;

    /// Inserts a session, whose id must not exist yet.
    async fn insert_session(&self, session: &Session) -> StoreResult<()>;

    /// The session with this id, even if it has ended or expired.
    async fn session(&self, id: SessionId) -> StoreResult<Option<Session>>;

    /// A tenant's sessions that are alive at `now` and were not opened by the guest grant, the most
    /// recently used first, at most `limit`.
    async fn sessions(
        &self,
        database: &str,
        now: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<Session>>;

    /// Presents refresh token `number` of a session, in one atomic step: if the session is alive at
    /// `now` and `presented <= number`, sets `presented = number`, `refreshed_at = now` and
    /// `expires_at` to the earlier of the given time and `closes_at`, and returns the session.
    ///
    /// One conditional update suffices; parallel calls with the same number all succeed.
    async fn present_refresh_token(
        &self,
        id: SessionId,
        number: u64,
        now: Timestamp,
        expires_at: Timestamp,
    ) -> StoreResult<RefreshOutcome>;

    /// The session of the personal access token with this hash, if it is alive at `now`; sets its
    /// `refreshed_at` to `now`.
    async fn use_personal_token(
        &self,
        hash: SecretHash,
        now: Timestamp,
    ) -> StoreResult<Option<Session>>;

    /// A tenant's personal access tokens that are alive at `now`, the most recently used first, at
    /// most `limit`. `user` selects the tokens of one user, `None` those of all users.
    async fn personal_tokens(
        &self,
        database: &str,
        user: Option<&str>,
        now: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<Session>>;

    /// The consent of a user to a client; `None` if there is none.
    async fn consent(&self, key: &UserKey, client_id: &str) -> StoreResult<Option<Consent>>;

    /// The consents of a user, sorted by client. Consents are deleted with the user.
    async fn consents_of_user(&self, key: &UserKey) -> StoreResult<Vec<Consent>>;

    /// Adds a consent, or replaces the user's consent to the same client.
    async fn put_consent(&self, key: &UserKey, consent: &Consent) -> StoreResult<()>;

    /// Deletes a consent and, in the same transaction, the codes of this user and client that are
    /// not redeemed yet: authorization codes and approved device codes. Returns whether the consent
    /// existed. The codes are deleted even if it did not exist.
    async fn delete_consent(&self, key: &UserKey, client_id: &str) -> StoreResult<bool>;

    /// Ends a session; `false` if it has ended already or does not exist.
    async fn end_session(
        &self,
        id: SessionId,
        reason: EndReason,
        at: Timestamp,
    ) -> StoreResult<bool>;

    /// The sessions of all tenants that were ended at `since` or later: the denylist. Every node
    /// calls this every few seconds, so it must be an index range scan.
    async fn ended_sessions(&self, since: Timestamp) -> StoreResult<Vec<EndedSession>>;

    /// All signing keys.
    async fn signing_keys(&self) -> StoreResult<Vec<SigningKeyRecord>>;

    /// Adds a key in state `Next` or `Active`, unless there is a key in that state already; returns
    /// whether the key was added. The check and the insertion are one atomic step.
    async fn insert_signing_key(&self, key: &SigningKeyRecord) -> StoreResult<bool>;

    /// In one transaction, changes the state of `active` to `Retired` and of `next` to `Active`,
    /// both since `at`. Does nothing unless `next` is in state `Next` and `active` in state
    /// `Active`. Returns whether the states were changed.
    async fn promote_signing_key(
        &self,
        next: &str,
        active: &str,
        at: Timestamp,
    ) -> StoreResult<bool>;

    /// Deletes a key in state `Retired`; returns whether there was one.
    async fn delete_signing_key(&self, id: &str) -> StoreResult<bool>;

    /// Deletes expired rows; returns their number.
    async fn purge(&self, before: PurgeBefore) -> StoreResult<u64>;

    /// Deletes guest sessions that were not refreshed since `before`, except the `kept` most
    /// recently refreshed guest sessions of each tenant. Returns the number of deleted rows.
    async fn purge_guests(&self, before: Timestamp, kept: u32) -> StoreResult<u64>;

    /// Adds a code. The caller ensures that the hash is new and that the browser session exists.
    /// When the code's client is deleted, the store deletes the code. When the browser session is
    /// deleted, the store sets `browser` to `None`.
    async fn insert_code(&self, code: &AuthorizationCode) -> StoreResult<()>;

    /// The code with this hash, even if it was used or has expired.
    async fn code(&self, hash: SecretHash) -> StoreResult<Option<AuthorizationCode>>;

    /// Redeems a code in one atomic step: adds the session, and stores the session's id with the
    /// code. Does nothing unless the code is unused and not expired at the session's `created_at`,
    /// and the code's browser session exists. Returns whether the code was redeemed. If several
    /// calls run in parallel, exactly one returns `true`.
    async fn redeem_code(&self, hash: SecretHash, session: &Session) -> StoreResult<bool>;

    /// Adds a pending device code; `false` if its user code exists already. The store deletes the
    /// device code with its client, unless the client is built in.
    async fn insert_device_code(&self, device: &DeviceCode) -> StoreResult<bool>;

    /// The device code with this user code, in any state.
    async fn device_code(&self, user_code: &str) -> StoreResult<Option<DeviceCode>>;

    /// Records a poll at `now` and returns the device code, in one atomic step.
    /// [`DeviceCode::polled`] computes the new state. `None` when the client has no such device
    /// code.
    async fn poll_device_code(
        &self,
        hash: SecretHash,
        client_id: &str,
        now: Timestamp,
    ) -> StoreResult<Option<DevicePoll>>;

    /// Approves a device code that is pending and not expired at `now`, or denies it if `approval`
    /// is `None`. Returns `false` if the device code is not pending or has expired. When a browser
    /// session is deleted, the store deletes the device codes that were approved in it.
    async fn decide_device_code(
        &self,
        user_code: &str,
        approval: Option<&Approval>,
        now: Timestamp,
    ) -> StoreResult<bool>;

    /// In one atomic step, consumes the device code and adds the session. Does nothing unless the
    /// device code is approved and not expired at the session's `created_at`. Returns whether the
    /// device code was consumed.
    async fn redeem_device_code(&self, hash: SecretHash, session: &Session) -> StoreResult<bool>;

    /// A user's sessions that are alive at `now`, the most recently used first: those of the client
    /// `client_id`, or of all clients if it is `None`. A store may return only the first 1000.
    async fn sessions_of_user(
        &self,
        key: &UserKey,
        client_id: Option<&str>,
        now: Timestamp,
    ) -> StoreResult<Vec<Session>>;
}
