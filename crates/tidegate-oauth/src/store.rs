//! The port to durable storage: records, and the few steps that must be atomic. The rules of
//! [`IdentityStore`] apply, and these:
//!
//! - The row of a session outlives its user and client: [`IssuerStore::ended_sessions`] must return
//!   ended sessions until [`IssuerStore::purge`] deletes them.
//! - Every change of sessions, keys and clients should notify the other nodes.

use tidegate_identity::{
    EndReason, IdentityStore, SecretHash, SessionId, StoreFuture, Timestamp, UserKey,
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
pub trait IssuerStore: IdentityStore {
    /// Stores `fingerprint` if no fingerprint is stored yet; returns the stored fingerprint. The
    /// call is atomic: if two nodes with different master keys start at the same time, one of them
    /// gets the other's fingerprint.
    fn claim_master_key<'a>(&'a self, fingerprint: &'a str) -> StoreFuture<'a, String>;

    /// The client with this id, in any tenant.
    fn client<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<Client>>;

    /// A tenant's clients, sorted by id.
    fn clients<'a>(&'a self, database: &'a str) -> StoreFuture<'a, Vec<Client>>;

    /// The redirect URIs that start with this prefix, of the clients of all tenants.
    fn redirect_uris_from<'a>(&'a self, start: &'a str) -> StoreFuture<'a, Vec<String>>;

    /// Adds a client. `false` if its id is taken, by a client of any tenant.
    fn insert_client<'a>(&'a self, client: &'a Client) -> StoreFuture<'a, bool>;

    /// Replaces all fields except `database` and `created_at`, if the client is unchanged since it
    /// was read. `false` after a concurrent change.
    fn update_client<'a>(&'a self, read: &'a Client, client: &'a Client) -> StoreFuture<'a, bool>;

    /// Deletes a client with its codes and consents and, in the same transaction, ends its sessions
    /// ([`EndReason::ClientDropped`]). `false` if it does not exist.
    fn delete_client<'a>(&'a self, id: &'a str, at: Timestamp) -> StoreFuture<'a, bool>;

    /// Ends the sessions that a client opened by a grant. Sessions that ended before are unchanged.
    fn end_sessions_of_client<'a>(
        &'a self,
        id: &'a str,
        grant: GrantKind,
        end: SessionEnd,
    ) -> StoreFuture<'a, ()>;

    /// Inserts a session, whose id must not exist yet.
    fn insert_session<'a>(&'a self, session: &'a Session) -> StoreFuture<'a, ()>;

    /// The session with this id, even if it has ended or expired.
    fn session(&self, id: SessionId) -> StoreFuture<'_, Option<Session>>;

    /// A tenant's sessions that are alive at `now` and were not opened by the guest grant, the most
    /// recently used first, at most `limit`.
    fn sessions<'a>(
        &'a self,
        database: &'a str,
        now: Timestamp,
        limit: u32,
    ) -> StoreFuture<'a, Vec<Session>>;

    /// Presents refresh token `number` of a session, in one atomic step: if the session is alive at
    /// `now` and `presented <= number`, sets `presented = number`, `refreshed_at = now` and
    /// `expires_at` to the earlier of the given time and `closes_at`, and returns the session.
    ///
    /// One conditional update suffices; parallel calls with the same number all succeed.
    fn present_refresh_token(
        &self,
        id: SessionId,
        number: u64,
        now: Timestamp,
        expires_at: Timestamp,
    ) -> StoreFuture<'_, RefreshOutcome>;

    /// The session of the personal access token with this hash, if it is alive at `now`; sets its
    /// `refreshed_at` to `now`.
    fn use_personal_token(
        &self,
        hash: SecretHash,
        now: Timestamp,
    ) -> StoreFuture<'_, Option<Session>>;

    /// A tenant's personal access tokens that are alive at `now`, the most recently used first, at
    /// most `limit`. `user` selects the tokens of one user, `None` those of all users.
    fn personal_tokens<'a>(
        &'a self,
        database: &'a str,
        user: Option<&'a str>,
        now: Timestamp,
        limit: u32,
    ) -> StoreFuture<'a, Vec<Session>>;

    /// The consent of a user to a client; `None` if there is none.
    fn consent<'a>(
        &'a self,
        key: &'a UserKey,
        client_id: &'a str,
    ) -> StoreFuture<'a, Option<Consent>>;

    /// The consents of a user, sorted by client. Consents are deleted with the user.
    fn consents_of_user<'a>(&'a self, key: &'a UserKey) -> StoreFuture<'a, Vec<Consent>>;

    /// Adds a consent, or replaces the user's consent to the same client.
    fn put_consent<'a>(&'a self, key: &'a UserKey, consent: &'a Consent) -> StoreFuture<'a, ()>;

    /// Deletes a consent and, in the same transaction, the codes of this user and client that are
    /// not redeemed yet: authorization codes and approved device codes. Returns whether the consent
    /// existed. The codes are deleted even if it did not exist.
    fn delete_consent<'a>(&'a self, key: &'a UserKey, client_id: &'a str) -> StoreFuture<'a, bool>;

    /// Ends a session; `false` if it has ended already or does not exist.
    fn end_session(&self, id: SessionId, reason: EndReason, at: Timestamp)
    -> StoreFuture<'_, bool>;

    /// The sessions of all tenants that were ended at `since` or later: the denylist. Every node
    /// calls this every few seconds, so it must be an index range scan.
    fn ended_sessions(&self, since: Timestamp) -> StoreFuture<'_, Vec<EndedSession>>;

    /// All signing keys.
    fn signing_keys(&self) -> StoreFuture<'_, Vec<SigningKeyRecord>>;

    /// Adds a key in state `Next` or `Active`, unless there is a key in that state already; returns
    /// whether the key was added. The check and the insertion are one atomic step.
    fn insert_signing_key<'a>(&'a self, key: &'a SigningKeyRecord) -> StoreFuture<'a, bool>;

    /// In one transaction, changes the state of `active` to `Retired` and of `next` to `Active`,
    /// both since `at`. Does nothing unless `next` is in state `Next` and `active` in state
    /// `Active`. Returns whether the states were changed.
    fn promote_signing_key<'a>(
        &'a self,
        next: &'a str,
        active: &'a str,
        at: Timestamp,
    ) -> StoreFuture<'a, bool>;

    /// Deletes a key in state `Retired`; returns whether there was one.
    fn delete_signing_key<'a>(&'a self, id: &'a str) -> StoreFuture<'a, bool>;

    /// Deletes expired rows; returns their number.
    fn purge(&self, before: PurgeBefore) -> StoreFuture<'_, u64>;

    /// Deletes guest sessions that were not refreshed since `before`, except the `kept` most
    /// recently refreshed guest sessions of each tenant. Returns the number of deleted rows.
    fn purge_guests(&self, before: Timestamp, kept: u32) -> StoreFuture<'_, u64>;

    /// Adds a code, whose hash is new and whose browser session exists. The store deletes the code
    /// with its client, and sets `browser` to `None` when the browser session is deleted.
    fn insert_code<'a>(&'a self, code: &'a AuthorizationCode) -> StoreFuture<'a, ()>;

    /// The code with this hash, even if it was used or has expired.
    fn code(&self, hash: SecretHash) -> StoreFuture<'_, Option<AuthorizationCode>>;

    /// Redeems a code in one atomic step: adds the session, and stores the session's id with the
    /// code. Does nothing unless the code is unused and not expired at the session's `created_at`,
    /// and the code's browser session exists. Returns whether the code was redeemed. If several
    /// calls run in parallel, exactly one returns `true`.
    fn redeem_code<'a>(&'a self, hash: SecretHash, session: &'a Session) -> StoreFuture<'a, bool>;

    /// Adds a pending device code; `false` if its user code exists already. The store deletes the
    /// device code with its client, unless the client is built in.
    fn insert_device_code<'a>(&'a self, device: &'a DeviceCode) -> StoreFuture<'a, bool>;

    /// The device code with this user code, in any state.
    fn device_code<'a>(&'a self, user_code: &'a str) -> StoreFuture<'a, Option<DeviceCode>>;

    /// Records a poll at `now` and returns the device code, in one atomic step.
    /// [`DeviceCode::polled`] computes the new state. `None` when the client has no such device
    /// code.
    fn poll_device_code<'a>(
        &'a self,
        hash: SecretHash,
        client_id: &'a str,
        now: Timestamp,
    ) -> StoreFuture<'a, Option<DevicePoll>>;

    /// Approves a device code that is pending and not expired at `now`, or denies it if `approval`
    /// is `None`. Returns `false` if the device code is not pending or has expired. When a browser
    /// session is deleted, the store deletes the device codes that were approved in it.
    fn decide_device_code<'a>(
        &'a self,
        user_code: &'a str,
        approval: Option<&'a Approval>,
        now: Timestamp,
    ) -> StoreFuture<'a, bool>;

    /// In one atomic step, consumes the device code and adds the session. Does nothing unless the
    /// device code is approved and not expired at the session's `created_at`. Returns whether the
    /// device code was consumed.
    fn redeem_device_code<'a>(
        &'a self,
        hash: SecretHash,
        session: &'a Session,
    ) -> StoreFuture<'a, bool>;

    /// A user's sessions that are alive at `now`, the most recently used first: those of the client
    /// `client_id`, or of all clients if it is `None`. A store may return only the first 1000.
    fn sessions_of_user<'a>(
        &'a self,
        key: &'a UserKey,
        client_id: Option<&'a str>,
        now: Timestamp,
    ) -> StoreFuture<'a, Vec<Session>>;
}
