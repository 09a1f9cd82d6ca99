//! The port to durable storage: records, and the few steps that must be atomic.
//!
//! Rules for an implementation:
//!
//! - "Not found" is `Ok(None)`, `Ok(false)` or [`WriteOutcome::Missing`], never an error.
//! - Times are arguments; a store reads no clock. Several nodes share one store.
//! - Every change of users should notify the other nodes, which then read the change through this
//!   port.

use std::future::Future;
use std::pin::Pin;

use crate::{
    AnonymousSql, AttemptKey, AttemptLimit, AttemptOutcome, AuditEvent, AuditPage, AuditSince,
    BrowserSession, CredentialKind, EndReason, LinkedIdentity, Passkey, RemovalOutcome,
    SecondFactor, SecretHash, SessionId, StoreError, Timestamp, User, UserKey, UserKind,
};

/// The result of a store's methods.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// The result of an insert or update of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// The record was written.
    Done,
    /// After an update: the record does not exist, or was changed concurrently.
    Missing,
    /// The name of the new record is taken, or another user has the role.
    Taken,
    /// The tenant has another default user.
    DefaultUserTaken,
}

/// The selection of a page of a tenant's users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserQuery {
    /// Only users of this kind; `None` for all kinds.
    pub kind: Option<UserKind>,
    /// Only users of this group; `None` for all users.
    pub group: Option<String>,
    /// Only users whose names follow this name in the order of bytes; `None` to start with the
    /// first user.
    pub after: Option<String>,
    /// The maximum number of users.
    pub limit: u32,
}

impl UserQuery {
    /// All users of a kind.
    pub const fn of_kind(kind: UserKind) -> Self {
        Self {
            kind: Some(kind),
            group: None,
            after: None,
            limit: u32::MAX,
        }
    }
}

/// The port to durable storage of users. The trait is object safe.
pub trait IdentityStore: Send + Sync {
    /// The user with this key.
    fn user<'a>(&'a self, key: &'a UserKey) -> StoreFuture<'a, Option<User>>;

    /// A tenant's users with a role, sorted by name.
    fn users_with_role<'a>(&'a self, database: &'a str) -> StoreFuture<'a, Vec<User>>;

    /// A page of a tenant's users, sorted by name.
    fn user_page<'a>(
        &'a self,
        database: &'a str,
        query: &'a UserQuery,
    ) -> StoreFuture<'a, Vec<User>>;

    /// The user of a tenant for whom `tidegate.user_id()` returns this id.
    fn user_with_id<'a>(&'a self, database: &'a str, id: &'a str) -> StoreFuture<'a, Option<User>>;

    /// The groups of a tenant that have members, sorted.
    fn member_groups<'a>(&'a self, database: &'a str) -> StoreFuture<'a, Vec<String>>;

    /// Whether this name is used in the tenant: a user has it, ignoring case, or a dropped user had
    /// it as its id (see [`reserve_id`](Self::reserve_id)).
    fn has_similar_user<'a>(&'a self, database: &'a str, name: &'a str) -> StoreFuture<'a, bool>;

    /// A tenant's users with this email address, ignoring case, sorted by name; at most 10.
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

    /// Links an account to an existing user. Returns `false` if the account is already linked to a
    /// user of the tenant. The store deletes the linked account with the user.
    fn insert_identity<'a>(
        &'a self,
        key: &'a UserKey,
        identity: &'a LinkedIdentity,
    ) -> StoreFuture<'a, bool>;

    /// The linked accounts of a user, sorted by issuer and subject.
    fn identities_of_user<'a>(&'a self, key: &'a UserKey) -> StoreFuture<'a, Vec<LinkedIdentity>>;

    /// Unlinks an account unless it is the user's only credential. The step is atomic: if a user's
    /// only credentials are two linked accounts, and two calls unlink both at the same time, one of
    /// the calls fails.
    fn delete_identity<'a>(
        &'a self,
        key: &'a UserKey,
        issuer: &'a str,
        subject: &'a str,
    ) -> StoreFuture<'a, RemovalOutcome>;

    /// The tenant's default user, if it has one.
    fn default_user<'a>(&'a self, database: &'a str) -> StoreFuture<'a, Option<User>>;

    /// The kind of SQL statements that the tenant's default user may send; `Off` when the tenant
    /// does not exist.
    fn anonymous_sql<'a>(&'a self, database: &'a str) -> StoreFuture<'a, AnonymousSql>;

    /// Sets the kind of SQL statements that the tenant's default user may send. `false` if the
    /// tenant does not exist.
    fn set_anonymous_sql<'a>(
        &'a self,
        database: &'a str,
        setting: AnonymousSql,
    ) -> StoreFuture<'a, bool>;

    /// Whether the tenant's owner may act as its users; `false` when the tenant does not exist.
    fn impersonation<'a>(&'a self, database: &'a str) -> StoreFuture<'a, bool>;

    /// Sets whether the tenant's owner may act as its users. `false` if the tenant does not exist.
    fn set_impersonation<'a>(&'a self, database: &'a str, allowed: bool) -> StoreFuture<'a, bool>;

    /// Adds a user. Returns `Done`, `Taken` or `DefaultUserTaken`.
    fn insert_user<'a>(&'a self, user: &'a User) -> StoreFuture<'a, WriteOutcome>;

    /// Adds members of one tenant, all or none. Returns the index of the first member whose name or
    /// id another user has; `None` if all members were added. The names and ids in `members` must
    /// differ.
    fn insert_members<'a>(&'a self, members: &'a [User]) -> StoreFuture<'a, Option<usize>>;

    /// Replaces `role`, `id`, `email`, `confirmed_email`, `properties`, `user_groups`,
    /// `default_user` and `disabled`, if these fields are unchanged since they were read. Returns
    /// `Done`, `Missing` (also after a concurrent change), `Taken` (if another user has the role)
    /// or `DefaultUserTaken`.
    fn update_user<'a>(&'a self, read: &'a User, user: &'a User) -> StoreFuture<'a, WriteOutcome>;

    /// Replaces the password's hash. If `before` is given, the hash is replaced only if it equals
    /// `before`. So storing a new hash of the same password does not undo a change of the password.
    /// Ends no session. Returns whether the hash was replaced.
    fn set_password_hash<'a>(
        &'a self,
        key: &'a UserKey,
        before: Option<&'a str>,
        hash: &'a str,
    ) -> StoreFuture<'a, bool>;

    /// Reserves the id of a user that is to be deleted, so that no person can sign up with this id
    /// as the user name. [`delete_tenant`](Self::delete_tenant) deletes the reserved ids too.
    fn reserve_id<'a>(&'a self, user: &'a User) -> StoreFuture<'a, ()>;

    /// Deletes a user and, in the same transaction, ends its sessions ([`EndReason::UserDropped`]).
    /// `false` if it does not exist.
    fn delete_user<'a>(&'a self, key: &'a UserKey, at: Timestamp) -> StoreFuture<'a, bool>;

    /// Deletes all rows of a tenant and, in the same transaction, ends its sessions
    /// ([`EndReason::TenantDropped`]). A tenant without rows is no error.
    fn delete_tenant<'a>(&'a self, database: &'a str, at: Timestamp) -> StoreFuture<'a, ()>;

    /// Ends all live sessions of a user and returns their ids; deletes the user's browser sessions.
    fn end_sessions_of_user<'a>(
        &'a self,
        key: &'a UserKey,
        reason: EndReason,
        at: Timestamp,
    ) -> StoreFuture<'a, Vec<SessionId>>;

    /// Counts an attempt in one atomic step; parallel calls for one counter are serialised:
    ///
    /// 1. A counter that is absent or has `expires_at <= now` starts with `count = 0`,
    ///    `open_at = None` and `expires_at = now + window`.
    /// 2. If `open_at > now`, the result is `Refused { until: open_at }`, and nothing is stored.
    /// 3. Otherwise `count` grows by one, and the result is `Allowed`. If `count` is then less than
    ///    `limit.count`, `open_at` becomes `None`. If not, `open_at` becomes
    ///    `now + min(longest_delay, first_delay * 2^(count - limit.count))`, and `expires_at`
    ///    becomes `max(expires_at, open_at + memory)`.
    ///
    /// In SQL, this is an upsert whose `DO UPDATE` has a `WHERE`. If it returns no row, the attempt
    /// is refused. [`AttemptCounter::count`](crate::AttemptCounter::count) implements this rule.
    fn count_attempt<'a>(
        &'a self,
        key: &'a AttemptKey,
        limit: &'a AttemptLimit,
        now: Timestamp,
    ) -> StoreFuture<'a, AttemptOutcome>;

    /// Refunds a successful attempt: `count` becomes `max(0, count - 1)`, and `open_at` becomes
    /// `None`. A missing counter is no error.
    fn refund_attempt<'a>(&'a self, key: &'a AttemptKey) -> StoreFuture<'a, ()>;

    /// Deletes an attempt counter, which ends its wait.
    fn clear_attempts<'a>(&'a self, key: &'a AttemptKey) -> StoreFuture<'a, ()>;

    /// Appends events to the audit log.
    fn append_audit<'a>(&'a self, events: &'a [AuditEvent]) -> StoreFuture<'a, ()>;

    /// A tenant's audit events from `since` on, sorted by number, at most `limit`. The call waits
    /// for events that are being written, so that a caller that continues at [`AuditPage::next`]
    /// misses no event.
    fn audit<'a>(
        &'a self,
        database: &'a str,
        since: AuditSince,
        limit: u32,
    ) -> StoreFuture<'a, AuditPage>;

    /// Adds a browser session with a new id. The store deletes it with its user.
    fn insert_browser_session<'a>(&'a self, session: &'a BrowserSession) -> StoreFuture<'a, ()>;

    /// The browser session with this id, expired or not.
    fn browser_session(&self, id: SecretHash) -> StoreFuture<'_, Option<BrowserSession>>;

    /// Records that a browser session was used at `seen_at`, and replaces the time at which it
    /// expires.
    fn touch_browser_session(
        &self,
        id: SecretHash,
        seen_at: Timestamp,
        expires_at: Timestamp,
    ) -> StoreFuture<'_, ()>;

    /// Deletes a browser session, and voids its unredeemed codes and device approvals. Returns
    /// whether the session existed.
    fn delete_browser_session(&self, id: SecretHash) -> StoreFuture<'_, bool>;

    /// A user's browser sessions that are not expired at `now`, the most recently used first.
    fn browser_sessions_of_user<'a>(
        &'a self,
        key: &'a UserKey,
        now: Timestamp,
    ) -> StoreFuture<'a, Vec<BrowserSession>>;

    /// A user's second factor.
    fn second_factor<'a>(&'a self, key: &'a UserKey) -> StoreFuture<'a, Option<SecondFactor>>;

    /// Adds a user's second factor with its recovery codes; `false` if the user has a second factor
    /// already. The store deletes the second factor with the user.
    fn insert_second_factor<'a>(
        &'a self,
        key: &'a UserKey,
        factor: &'a SecondFactor,
        recovery_codes: &'a [SecretHash],
    ) -> StoreFuture<'a, bool>;

    /// Marks the TOTP code of a time step as used; `false` if the code of this or a later step was
    /// used before. If several calls for one step run in parallel, exactly one succeeds.
    fn use_second_factor_step<'a>(&'a self, key: &'a UserKey, step: u64) -> StoreFuture<'a, bool>;

    /// Deletes a recovery code; returns whether it existed. If several calls run in parallel,
    /// exactly one returns `true`.
    fn use_recovery_code<'a>(&'a self, key: &'a UserKey, code: SecretHash)
    -> StoreFuture<'a, bool>;

    /// Deletes a user's second factor; returns whether it existed.
    fn delete_second_factor<'a>(&'a self, key: &'a UserKey) -> StoreFuture<'a, bool>;

    /// The passkey with this id and its user.
    fn passkey<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<(UserKey, Passkey)>>;

    /// A user's passkeys, the oldest first.
    fn passkeys_of_user<'a>(&'a self, key: &'a UserKey) -> StoreFuture<'a, Vec<Passkey>>;

    /// Adds a passkey to a user; `false` if a passkey with its id exists, or if the user has
    /// [`Passkey::MAX_COUNT`] passkeys. The step is atomic: parallel calls never add more. The
    /// store deletes the passkey with the user.
    fn insert_passkey<'a>(
        &'a self,
        key: &'a UserKey,
        passkey: &'a Passkey,
    ) -> StoreFuture<'a, bool>;

    /// Renames a user's passkey; returns whether the passkey exists.
    fn rename_passkey<'a>(
        &'a self,
        key: &'a UserKey,
        id: &'a str,
        name: &'a str,
    ) -> StoreFuture<'a, bool>;

    /// Replaces the record of a passkey that was used at `at`, if the stored record still equals
    /// `read`. Returns whether it was replaced.
    fn use_passkey<'a>(
        &'a self,
        read: &'a Passkey,
        record: &'a str,
        at: Timestamp,
    ) -> StoreFuture<'a, bool>;

    /// Deletes a user's passkey unless it is the user's only credential. The step is atomic, as in
    /// [`delete_identity`](Self::delete_identity).
    fn delete_passkey<'a>(
        &'a self,
        key: &'a UserKey,
        id: &'a str,
    ) -> StoreFuture<'a, RemovalOutcome>;

    /// Deletes all credentials of a user that are of the kind `kind`, even if the user then has no
    /// credential. Returns the name of each passkey, the issuer of each linked account, and an
    /// empty text for a second factor.
    fn delete_credentials<'a>(
        &'a self,
        key: &'a UserKey,
        kind: CredentialKind,
    ) -> StoreFuture<'a, Vec<String>>;
}

impl dyn IdentityStore + '_ {
    /// Appends events to the audit log. A failure is only logged, because the reported actions have
    /// already happened.
    pub async fn append_audit_or_log(&self, events: &[AuditEvent]) {
        if let Err(error) = self.append_audit(events).await {
            tracing::warn!(%error, events = events.len(), "audit events could not be written");
        }
    }
}
