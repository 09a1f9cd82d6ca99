//! The port to durable state: records in, records out, and the few steps that must be atomic.
//!
//! House rules for an implementation:
//!
//! - "Not found" is `Ok(None)`, `Ok(false)` or [`Written::Missing`], never an error.
//! - Times arrive as arguments; a store reads no clock. Several nodes share one store.
//! - A row of a session outlives its user and its client: ended sessions must be found by
//!   [`Store::ended_sessions`] until [`Store::purge`] takes them away.
//! - Every change of sessions, keys, users and clients should reach the other nodes as a notice;
//!   what they do with it is read again through this port.

mod flows;

use std::error::Error as StdError;
use std::future::Future;
use std::pin::Pin;

use crate::{
    AnonymousSql, AttemptKey, AttemptLimit, AuditEvent, AuditPage, AuditSince, Client, Counted,
    EndReason, EndedSession, LinkedIdentity, Session, SessionId, SigningKeyRecord, Timestamp,
    Unlinked, User, UserKey,
};

pub use flows::FlowStore;

/// What a store's methods return.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Why a store could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The store cannot be reached now; the same call may succeed later.
    #[error("the store cannot be reached")]
    Unavailable(#[source] Box<dyn StdError + Send + Sync>),
    /// The store answered something that it should not: a defect of it or of ours.
    #[error("the store failed")]
    Failed(#[source] Box<dyn StdError + Send + Sync>),
}

/// What became of an insert or update of a user or client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// It is done.
    Done,
    /// Update: there is no such record.
    Missing,
    /// Insert: the name is taken; for a client in any tenant, for a user also when its role is.
    Taken,
    /// Another user of the tenant is its default user already.
    DefaultUserTaken,
}

/// What became of presenting a refresh token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presented {
    /// The token stands; the session as it is now.
    Accepted(Session),
    /// No such session, or it is ended or expired.
    Dead,
    /// A successor was presented before. The session is as it was: the caller ends it.
    Superseded,
}

/// What [`Store::purge`] may take away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PurgeBefore {
    /// Sessions whose `expires_at` or `ended.at` lies before this.
    pub sessions: Timestamp,
    /// Attempt counters whose `expires_at` lies before this.
    pub attempts: Timestamp,
    /// Audit events before this.
    pub audit: Timestamp,
}

/// The port to durable state. Object safe; `dyn Store` is what the issuer holds.
pub trait Store: FlowStore + Send + Sync {
    /// Keeps `fingerprint` if none is kept yet; returns the one that is kept. Atomic: of two nodes
    /// that start at once with different master keys, one sees the other's fingerprint.
    fn claim_master_key<'a>(&'a self, fingerprint: &'a str) -> StoreFuture<'a, String>;

    /// The client with this id, of whatever tenant.
    fn client<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<Client>>;

    /// A tenant's clients, by id.
    fn clients<'a>(&'a self, database: &'a str) -> StoreFuture<'a, Vec<Client>>;

    /// The redirect addresses of clients, of whatever tenant, that begin like this.
    fn redirect_uris_from<'a>(&'a self, start: &'a str) -> StoreFuture<'a, Vec<String>>;

    /// Adds a client: `Done` or `Taken`.
    fn insert_client<'a>(&'a self, client: &'a Client) -> StoreFuture<'a, Written>;

    /// Replaces every field of the client with this id but `database` and `created_at`, if it is
    /// still as it was read. Whether it was: two changes at once must not undo one another.
    fn update_client<'a>(&'a self, read: &'a Client, client: &'a Client) -> StoreFuture<'a, bool>;

    /// Deletes a client and, in the same transaction, ends its sessions
    /// ([`EndReason::ClientDropped`]). Whether there was one.
    fn delete_client<'a>(&'a self, id: &'a str, at: Timestamp) -> StoreFuture<'a, bool>;

    /// The user with this key.
    fn user<'a>(&'a self, key: &'a UserKey) -> StoreFuture<'a, Option<User>>;

    /// A tenant's users, by name.
    fn users<'a>(&'a self, database: &'a str) -> StoreFuture<'a, Vec<User>>;

    /// Whether a tenant has a user of this name, whatever the case of its letters.
    fn has_similar_user<'a>(&'a self, database: &'a str, name: &'a str) -> StoreFuture<'a, bool>;

    /// A tenant's users with this address of e-mail, whatever its case, by name; 10 at most.
    fn users_with_email<'a>(
        &'a self,
        database: &'a str,
        email: &'a str,
    ) -> StoreFuture<'a, Vec<User>>;

    /// The user of a tenant who signs in with this account elsewhere.
    fn user_of_identity<'a>(
        &'a self,
        database: &'a str,
        issuer: &'a str,
        subject: &'a str,
    ) -> StoreFuture<'a, Option<User>>;

    /// Links an account elsewhere to a user who is there, unless it is linked in the tenant
    /// already. Whether it did. The link goes when the user does.
    fn insert_identity<'a>(
        &'a self,
        key: &'a UserKey,
        identity: &'a LinkedIdentity,
    ) -> StoreFuture<'a, bool>;

    /// The accounts elsewhere of a user, by issuer and subject.
    fn identities_of_user<'a>(&'a self, key: &'a UserKey) -> StoreFuture<'a, Vec<LinkedIdentity>>;

    /// Takes a link away from its user, unless nobody could sign in as the user any more. One
    /// atomic step: of two links that go at once, one stays where there is no password.
    fn delete_identity<'a>(
        &'a self,
        key: &'a UserKey,
        issuer: &'a str,
        subject: &'a str,
    ) -> StoreFuture<'a, Unlinked>;

    /// The user that strangers run as; none when the tenant has none or does not exist.
    fn default_user<'a>(&'a self, database: &'a str) -> StoreFuture<'a, Option<User>>;

    /// What the tenant lets its default user do with raw SQL; `Off` when it does not exist.
    fn anonymous_sql<'a>(&'a self, database: &'a str) -> StoreFuture<'a, AnonymousSql>;

    /// Sets what the tenant lets its default user do with raw SQL. Whether there is such a tenant.
    fn set_anonymous_sql<'a>(
        &'a self,
        database: &'a str,
        setting: AnonymousSql,
    ) -> StoreFuture<'a, bool>;

    /// Adds a user: `Done`, `Taken` or `DefaultUserTaken`.
    fn insert_user<'a>(&'a self, user: &'a User) -> StoreFuture<'a, Written>;

    /// Replaces `email`, `properties`, `user_groups` and `default_user`, nothing else, if these four
    /// are still as they were read: `Done`, `Missing` (also when they are not) or
    /// `DefaultUserTaken`.
    fn update_user<'a>(&'a self, read: &'a User, user: &'a User) -> StoreFuture<'a, Written>;

    /// Replaces the password's hash, if it still is `before` where one is given (an upgrade of the
    /// hash must not undo a change of the password). Ends no session. Whether it did.
    fn set_password_hash<'a>(
        &'a self,
        key: &'a UserKey,
        before: Option<&'a str>,
        hash: &'a str,
    ) -> StoreFuture<'a, bool>;

    /// Deletes a user and, in the same transaction, ends its sessions
    /// ([`EndReason::UserDropped`]). Whether there was one.
    fn delete_user<'a>(&'a self, key: &'a UserKey, at: Timestamp) -> StoreFuture<'a, bool>;

    /// Deletes a tenant's users and clients and, in the same transaction, ends its sessions
    /// ([`EndReason::TenantDropped`]). Nothing to delete is no error.
    fn delete_tenant<'a>(&'a self, database: &'a str, at: Timestamp) -> StoreFuture<'a, ()>;

    /// Adds a session; its id is new.
    fn insert_session<'a>(&'a self, session: &'a Session) -> StoreFuture<'a, ()>;

    /// The session with this id, alive or not.
    fn session(&self, id: SessionId) -> StoreFuture<'_, Option<Session>>;

    /// Presents refresh token `number` of a session, in one atomic step: if the session is alive at
    /// `now` and `presented <= number`, sets `presented = number`, `refreshed_at = now` and
    /// `expires_at` to the earlier of the one given and `closes_at`, and returns the session.
    ///
    /// One conditional update does it; of parallel calls with one number all are accepted.
    fn present_refresh_token(
        &self,
        id: SessionId,
        number: u64,
        now: Timestamp,
        expires_at: Timestamp,
    ) -> StoreFuture<'_, Presented>;

    /// Ends a session, if it is not ended yet. Whether this call did.
    fn end_session(&self, id: SessionId, reason: EndReason, at: Timestamp)
    -> StoreFuture<'_, bool>;

    /// Ends all sessions of a user that are not ended yet, and returns their ids; deletes the user's
    /// browser sessions.
    fn end_sessions_of_user<'a>(
        &'a self,
        key: &'a UserKey,
        reason: EndReason,
        at: Timestamp,
    ) -> StoreFuture<'a, Vec<SessionId>>;

    /// The sessions of all tenants that were ended at `since` or later: the denylist. Called by
    /// every node every few seconds, so it must be an index range.
    fn ended_sessions(&self, since: Timestamp) -> StoreFuture<'_, Vec<EndedSession>>;

    /// All signing keys.
    fn signing_keys(&self) -> StoreFuture<'_, Vec<SigningKeyRecord>>;

    /// Adds a key in state `Next` or `Active`, unless there is one in that state: at most one key
    /// is `Next` and at most one `Active`. Whether it was added. Atomic.
    fn insert_signing_key<'a>(&'a self, key: &'a SigningKeyRecord) -> StoreFuture<'a, bool>;

    /// In one transaction, if `next` is in state `Next` and `active` in state `Active`: `active`
    /// becomes `Retired` and `next` becomes `Active`, both since `at`. Whether it did.
    fn promote_signing_key<'a>(
        &'a self,
        next: &'a str,
        active: &'a str,
        at: Timestamp,
    ) -> StoreFuture<'a, bool>;

    /// Deletes a key that is `Retired`. Whether it did.
    fn delete_signing_key<'a>(&'a self, id: &'a str) -> StoreFuture<'a, bool>;

    /// Counts an attempt, in one atomic step that parallel calls for one key pass one by one:
    ///
    /// 1. a counter that is absent or has `expires_at <= now` becomes
    ///    `{count: 0, open_at: null, expires_at: now + window}`;
    /// 2. if `open_at > now`: `Refused { until: open_at }` and nothing changes;
    /// 3. `count += 1`; if now `count >= limit.count` then
    ///    `open_at = now + min(longest_delay, first_delay * 2^(count - limit.count))` and
    ///    `expires_at = max(expires_at, open_at + memory)`, else `open_at = null`; `Allowed`.
    ///
    /// In SQL: an upsert whose `DO UPDATE` has a `WHERE`; no row returned means refused. The rule
    /// as code is [`AttemptCounter::count`](crate::AttemptCounter::count).
    fn count_attempt<'a>(
        &'a self,
        key: &'a AttemptKey,
        limit: &'a AttemptLimit,
        now: Timestamp,
    ) -> StoreFuture<'a, Counted>;

    /// Gives a counted attempt back that turned out right: `count = max(0, count - 1)`,
    /// `open_at = null`. An absent counter is no error.
    fn give_attempt_back<'a>(&'a self, key: &'a AttemptKey) -> StoreFuture<'a, ()>;

    /// Deletes a counter, so that its owner may try again at once.
    fn clear_attempts<'a>(&'a self, key: &'a AttemptKey) -> StoreFuture<'a, ()>;

    /// Appends events to the audit log.
    fn append_audit<'a>(&'a self, events: &'a [AuditEvent]) -> StoreFuture<'a, ()>;

    /// A tenant's events from `since` on, by number, at most `limit`. Who goes on with
    /// [`AuditPage::next`] misses none: events that are being written are waited for.
    fn audit<'a>(
        &'a self,
        database: &'a str,
        since: AuditSince,
        limit: u32,
    ) -> StoreFuture<'a, AuditPage>;

    /// Takes away what nobody needs any more; returns the number of rows.
    fn purge(&self, before: PurgeBefore) -> StoreFuture<'_, u64>;

    /// Takes away guests' sessions that were refreshed last before this, but the `kept` of each
    /// tenant that were refreshed last of all; returns the number of rows.
    fn purge_guests(&self, before: Timestamp, kept: u32) -> StoreFuture<'_, u64>;
}
