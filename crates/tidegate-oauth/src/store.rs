//! The port to durable storage: records, and the few steps that must be atomic.
//!
//! Rules for an implementation:
//!
//! - "Not found" is `Ok(None)`, `Ok(false)` or [`WriteOutcome::Missing`], never an error.
//! - Times are arguments; a store reads no clock. Several nodes share one store.
//! - The row of a session outlives its user and client: [`Store::ended_sessions`] must return ended
//!   sessions until [`Store::purge`] deletes them.
//! - Every change of sessions, keys, users and clients should notify the other nodes, which then
//!   read the change through this port.

mod flows;

use std::future::Future;
use std::pin::Pin;

use crate::{
    AnonymousSql, AttemptKey, AttemptLimit, AttemptOutcome, AuditEvent, AuditPage, AuditSince,
    Client, EndReason, EndedSession, LinkedIdentity, Session, SessionId, SigningKeyRecord,
    StoreError, Timestamp, UnlinkOutcome, User, UserKey,
};

pub use flows::FlowStore;

/// The result of a store's methods.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// The result of an insert or update of a user or client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// The record was written.
    Done,
    /// Update: the record does not exist, or was changed concurrently.
    Missing,
    /// Insert: the name is taken. Client ids are unique across tenants; users conflict by name or
    /// role.
    Taken,
    /// The tenant has another default user.
    DefaultUserTaken,
}

/// The result of presenting a refresh token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefreshOutcome {
    /// The token is valid; the updated session.
    Accepted(Session),
    /// The session does not exist, has ended or has expired.
    Invalid,
    /// A successor was presented before. The session is unchanged; the caller must end it.
    Reused,
}

/// What [`Store::purge`] deletes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PurgeBefore {
    /// Sessions whose `expires_at` or `ended.at` is before this.
    pub sessions: Timestamp,
    /// Attempt counters whose `expires_at` is before this.
    pub attempts: Timestamp,
    /// Audit events before this.
    pub audit: Timestamp,
}

/// The port to durable storage. Object safe; the issuer holds a `dyn Store`.
pub trait Store: FlowStore + Send + Sync {
    /// Stores `fingerprint` if none is stored yet; returns the stored one. Atomic: if two nodes
    /// start at once with different master keys, one of them gets the other's fingerprint.
    fn claim_master_key<'a>(&'a self, fingerprint: &'a str) -> StoreFuture<'a, String>;

    /// The client with this id, in any tenant.
    fn client<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<Client>>;

    /// A tenant's clients, by id.
    fn clients<'a>(&'a self, database: &'a str) -> StoreFuture<'a, Vec<Client>>;

    /// The redirect URIs of clients of all tenants that start with this prefix.
    fn redirect_uris_from<'a>(&'a self, start: &'a str) -> StoreFuture<'a, Vec<String>>;

    /// Adds a client: `Done` or `Taken`.
    fn insert_client<'a>(&'a self, client: &'a Client) -> StoreFuture<'a, WriteOutcome>;

    /// Replaces all fields except `database` and `created_at`, if the client is unchanged since it
    /// was read. `false` after a concurrent change.
    fn update_client<'a>(&'a self, read: &'a Client, client: &'a Client) -> StoreFuture<'a, bool>;

    /// Deletes a client with its codes and, in the same transaction, ends its sessions
    /// ([`EndReason::ClientDropped`]). `false` if it does not exist.
    fn delete_client<'a>(&'a self, id: &'a str, at: Timestamp) -> StoreFuture<'a, bool>;

    /// The user with this key.
    fn user<'a>(&'a self, key: &'a UserKey) -> StoreFuture<'a, Option<User>>;

    /// A tenant's users, by name.
    fn users<'a>(&'a self, database: &'a str) -> StoreFuture<'a, Vec<User>>;

    /// Whether a tenant has a user of this name, ignoring case.
    fn has_similar_user<'a>(&'a self, database: &'a str, name: &'a str) -> StoreFuture<'a, bool>;

    /// A tenant's users with this email address, ignoring case, by name; at most 10.
    fn users_with_email<'a>(
        &'a self,
        database: &'a str,
        email: &'a str,
    ) -> StoreFuture<'a, Vec<User>>;

    /// The user of a tenant who has linked this account.
    fn user_of_identity<'a>(
        &'a self,
        database: &'a str,
        issuer: &'a str,
        subject: &'a str,
    ) -> StoreFuture<'a, Option<User>>;

    /// Links an account to an existing user. `false` if the account is linked in the tenant
    /// already. The link is deleted with the user.
    fn insert_identity<'a>(
        &'a self,
        key: &'a UserKey,
        identity: &'a LinkedIdentity,
    ) -> StoreFuture<'a, bool>;

    /// The linked accounts of a user, by issuer and subject.
    fn identities_of_user<'a>(&'a self, key: &'a UserKey) -> StoreFuture<'a, Vec<LinkedIdentity>>;

    /// Deletes a link unless it is the user's only credential. Atomic: of two concurrent calls for
    /// a user without a password, one fails.
    fn delete_identity<'a>(
        &'a self,
        key: &'a UserKey,
        issuer: &'a str,
        subject: &'a str,
    ) -> StoreFuture<'a, UnlinkOutcome>;

    /// The tenant's default user, if it has one.
    fn default_user<'a>(&'a self, database: &'a str) -> StoreFuture<'a, Option<User>>;

    /// Which SQL the tenant runs for its default user; `Off` when the tenant does not exist.
    fn anonymous_sql<'a>(&'a self, database: &'a str) -> StoreFuture<'a, AnonymousSql>;

    /// Sets which SQL the tenant runs for its default user. `false` if the tenant does not exist.
    fn set_anonymous_sql<'a>(
        &'a self,
        database: &'a str,
        setting: AnonymousSql,
    ) -> StoreFuture<'a, bool>;

    /// Whether the tenant's owner may act as its users; `false` when the tenant does not exist.
    fn impersonation<'a>(&'a self, database: &'a str) -> StoreFuture<'a, bool>;

    /// Sets whether the tenant's owner may act as its users. `false` if the tenant does not exist.
    fn set_impersonation<'a>(&'a self, database: &'a str, allowed: bool) -> StoreFuture<'a, bool>;

    /// Adds a user: `Done`, `Taken` or `DefaultUserTaken`.
    fn insert_user<'a>(&'a self, user: &'a User) -> StoreFuture<'a, WriteOutcome>;

    /// Replaces `email`, `properties`, `user_groups` and `default_user`, if these are unchanged
    /// since they were read: `Done`, `Missing` (also after a concurrent change) or
    /// `DefaultUserTaken`.
    fn update_user<'a>(&'a self, read: &'a User, user: &'a User) -> StoreFuture<'a, WriteOutcome>;

    /// Replaces the password's hash, if it equals `before` where that is given (so that rehashing
    /// does not undo a change of the password). Ends no session. Whether it was replaced.
    fn set_password_hash<'a>(
        &'a self,
        key: &'a UserKey,
        before: Option<&'a str>,
        hash: &'a str,
    ) -> StoreFuture<'a, bool>;

    /// Deletes a user and, in the same transaction, ends its sessions ([`EndReason::UserDropped`]).
    /// `false` if it does not exist.
    fn delete_user<'a>(&'a self, key: &'a UserKey, at: Timestamp) -> StoreFuture<'a, bool>;

    /// Deletes a tenant's users, clients and codes and, in the same transaction, ends its sessions
    /// ([`EndReason::TenantDropped`]). No error if there are none.
    fn delete_tenant<'a>(&'a self, database: &'a str, at: Timestamp) -> StoreFuture<'a, ()>;

    /// Adds a session with a new id.
    fn insert_session<'a>(&'a self, session: &'a Session) -> StoreFuture<'a, ()>;

    /// The session with this id, alive or not.
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

    /// Ends a session. Whether this call ended it.
    fn end_session(&self, id: SessionId, reason: EndReason, at: Timestamp)
    -> StoreFuture<'_, bool>;

    /// Ends all live sessions of a user and returns their ids; deletes the user's browser sessions.
    fn end_sessions_of_user<'a>(
        &'a self,
        key: &'a UserKey,
        reason: EndReason,
        at: Timestamp,
    ) -> StoreFuture<'a, Vec<SessionId>>;

    /// The sessions of all tenants that were ended at `since` or later: the denylist. Every node
    /// calls this every few seconds, so it must be an index range scan.
    fn ended_sessions(&self, since: Timestamp) -> StoreFuture<'_, Vec<EndedSession>>;

    /// All signing keys.
    fn signing_keys(&self) -> StoreFuture<'_, Vec<SigningKeyRecord>>;

    /// Adds a key in state `Next` or `Active`, unless there is one in that state already. Whether
    /// it was added. Atomic.
    fn insert_signing_key<'a>(&'a self, key: &'a SigningKeyRecord) -> StoreFuture<'a, bool>;

    /// In one transaction, if `next` is in state `Next` and `active` in state `Active`: `active`
    /// becomes `Retired` and `next` becomes `Active`, both since `at`. Whether it did.
    fn promote_signing_key<'a>(
        &'a self,
        next: &'a str,
        active: &'a str,
        at: Timestamp,
    ) -> StoreFuture<'a, bool>;

    /// Deletes a key in state `Retired`. Whether it was deleted.
    fn delete_signing_key<'a>(&'a self, id: &'a str) -> StoreFuture<'a, bool>;

    /// Counts an attempt in one atomic step; parallel calls for one key are serialised:
    ///
    /// 1. a counter that is absent or has `expires_at <= now` becomes
    ///    `{count: 0, open_at: null, expires_at: now + window}`;
    /// 2. if `open_at > now`: `Refused { until: open_at }` and nothing changes;
    /// 3. `count += 1`; if now `count >= limit.count` then
    ///    `open_at = now + min(longest_delay, first_delay * 2^(count - limit.count))` and
    ///    `expires_at = max(expires_at, open_at + memory)`, else `open_at = null`; `Allowed`.
    ///
    /// In SQL: an upsert whose `DO UPDATE` has a `WHERE`; no returned row means refused. The rule
    /// as code is [`AttemptCounter::count`](crate::AttemptCounter::count).
    fn count_attempt<'a>(
        &'a self,
        key: &'a AttemptKey,
        limit: &'a AttemptLimit,
        now: Timestamp,
    ) -> StoreFuture<'a, AttemptOutcome>;

    /// Refunds a successful attempt: `count = max(0, count - 1)`, `open_at = null`. A missing
    /// counter is no error.
    fn refund_attempt<'a>(&'a self, key: &'a AttemptKey) -> StoreFuture<'a, ()>;

    /// Deletes a counter, which lifts its wait.
    fn clear_attempts<'a>(&'a self, key: &'a AttemptKey) -> StoreFuture<'a, ()>;

    /// Appends events to the audit log.
    fn append_audit<'a>(&'a self, events: &'a [AuditEvent]) -> StoreFuture<'a, ()>;

    /// A tenant's events from `since` on, by number, at most `limit`. Reading on from
    /// [`AuditPage::next`] misses no event: the call waits for events that are being written.
    fn audit<'a>(
        &'a self,
        database: &'a str,
        since: AuditSince,
        limit: u32,
    ) -> StoreFuture<'a, AuditPage>;

    /// Deletes expired rows; returns their number.
    fn purge(&self, before: PurgeBefore) -> StoreFuture<'_, u64>;

    /// Deletes guest sessions last refreshed before this, except the `kept` most recently refreshed
    /// of each tenant; returns the number of rows.
    fn purge_guests(&self, before: Timestamp, kept: u32) -> StoreFuture<'_, u64>;
}
