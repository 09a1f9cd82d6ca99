//! The port to durable storage: records, and the few steps that must be atomic.
//!
//! Rules for an implementation:
//!
//! - "Not found" is `Ok(None)`, `Ok(false)` or [`WriteOutcome::Missing`], never an error.
//! - Times are arguments; a store reads no clock. Several nodes share one store.
//! - Every change of users should notify the other nodes, which then read the change through this
//!   port.

use crate::{
    AnonymousSql, AttemptKey, AttemptLimit, AttemptOutcome, AuditEvent, AuditPage, AuditSince,
    BrowserSession, CredentialKind, EndReason, LinkedIdentity, Passkey, RemovalOutcome,
    SecondFactor, SecretHash, SessionId, StoreError, Timestamp, User, UserKey, UserKind,
};
use async_trait::async_trait;

/// The result of a store's methods.
pub type StoreResult<T> = Result<T, StoreError>;

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
#[async_trait]
pub trait IdentityStore: Send + Sync {
    /// The user with this key.
    async fn user(&self, key: &UserKey) -> StoreResult<Option<User>>;

    /// A tenant's users with a role, sorted by name.
    async fn users_with_role(&self, database: &str) -> StoreResult<Vec<User>>;

    /// A page of a tenant's users, sorted by name.
    async fn user_page(&self, database: &str, query: &UserQuery) -> StoreResult<Vec<User>>;

    /// The user of a tenant for whom `tidegate.user_id()` returns this id.
    async fn user_with_id(&self, database: &str, id: &str) -> StoreResult<Option<User>>;

    /// The groups of a tenant that have members, sorted.
    async fn member_groups(&self, database: &str) -> StoreResult<Vec<String>>;

    /// Whether a user of the tenant has this name, ignoring case, or the name is the reserved id of
    /// a dropped user (see [`reserve_id`](Self::reserve_id)).
    async fn has_similar_user(&self, database: &str, name: &str) -> StoreResult<bool>;

    /// A tenant's users with this email address, ignoring case, sorted by name; at most 10.
    async fn users_with_email(&self, database: &str, email: &str) -> StoreResult<Vec<User>>;

    /// The user of a tenant who has linked this account.
    async fn user_of_identity(
        &self,
        database: &str,
        issuer: &str,
        subject: &str,
    ) -> StoreResult<Option<User>>;

    /// Links an account to an existing user. Returns `false` if the account is already linked to a
    /// user of the tenant. The store deletes the linked account with the user.
    async fn insert_identity(&self, key: &UserKey, identity: &LinkedIdentity) -> StoreResult<bool>;

    /// The linked accounts of a user, sorted by issuer and subject.
    async fn identities_of_user(&self, key: &UserKey) -> StoreResult<Vec<LinkedIdentity>>;

    /// Unlinks an account unless it is the user's only credential. The step is atomic: if a user's
    /// only credentials are two linked accounts, and two calls unlink both at the same time, one of
    /// the calls fails.
    async fn delete_identity(
        &self,
        key: &UserKey,
        issuer: &str,
        subject: &str,
    ) -> StoreResult<RemovalOutcome>;

    /// The tenant's default user, if it has one.
    async fn default_user(&self, database: &str) -> StoreResult<Option<User>>;

    /// The kind of SQL statements that the tenant's default user may send; `Off` when the tenant
    /// does not exist.
    async fn anonymous_sql(&self, database: &str) -> StoreResult<AnonymousSql>;

    /// Sets the kind of SQL statements that the tenant's default user may send. `false` if the
    /// tenant does not exist.
    async fn set_anonymous_sql(&self, database: &str, setting: AnonymousSql) -> StoreResult<bool>;

    /// Whether the tenant's owner may act as its users; `false` when the tenant does not exist.
    async fn impersonation(&self, database: &str) -> StoreResult<bool>;

    /// Sets whether the tenant's owner may act as its users. `false` if the tenant does not exist.
    async fn set_impersonation(&self, database: &str, allowed: bool) -> StoreResult<bool>;

    /// Adds a user. Returns `Done`, `Taken` or `DefaultUserTaken`.
    async fn insert_user(&self, user: &User) -> StoreResult<WriteOutcome>;

    /// Adds members of one tenant, all or none. Returns `None` if all members were added. Otherwise
    /// returns the index of the first member with the name or id of another user. The names and ids
    /// in `members` must differ.
    async fn insert_members(&self, members: &[User]) -> StoreResult<Option<usize>>;

    /// Replaces `role`, `id`, `email`, `confirmed_email`, `properties`, `user_groups`,
    /// `default_user` and `disabled`, if these fields are unchanged since they were read. Returns
    /// `Done`, `Missing` (also after a concurrent change), `Taken` (if another user has the role)
    /// or `DefaultUserTaken`.
    async fn update_user(&self, read: &User, user: &User) -> StoreResult<WriteOutcome>;

    /// Replaces the password's hash. If `before` is given, the hash is replaced only if it equals
    /// `before`. So storing a new hash of the same password does not undo a change of the password.
    /// Ends no session. Returns whether the hash was replaced.
    async fn set_password_hash(
        &self,
        key: &UserKey,
        before: Option<&str>,
        hash: &str,
    ) -> StoreResult<bool>;

    /// Reserves the id of a user that is to be deleted, so that no person can sign up with this id
    /// as the user name. [`delete_tenant`](Self::delete_tenant) deletes the reserved ids too.
    async fn reserve_id(&self, user: &User) -> StoreResult<()>;

    /// Deletes a user and, in the same transaction, ends its sessions ([`EndReason::UserDropped`]).
    /// `false` if the user does not exist.
    async fn delete_user(&self, key: &UserKey, at: Timestamp) -> StoreResult<bool>;

    /// Deletes all rows of a tenant and, in the same transaction, ends its sessions
    /// ([`EndReason::TenantDropped`]). A tenant without rows is no error.
    async fn delete_tenant(&self, database: &str, at: Timestamp) -> StoreResult<()>;

    /// Ends all live sessions of a user and returns their ids; deletes the user's browser sessions.
    async fn end_sessions_of_user(
        &self,
        key: &UserKey,
        reason: EndReason,
        at: Timestamp,
    ) -> StoreResult<Vec<SessionId>>;

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
    async fn count_attempt(
        &self,
        key: &AttemptKey,
        limit: &AttemptLimit,
        now: Timestamp,
    ) -> StoreResult<AttemptOutcome>;

    /// Refunds an attempt: `count` becomes `max(0, count - 1)`, and `open_at` becomes `None`. A
    /// missing counter is no error.
    async fn refund_attempt(&self, key: &AttemptKey) -> StoreResult<()>;

    /// Deletes an attempt counter, so that the next attempt is allowed immediately.
    async fn clear_attempts(&self, key: &AttemptKey) -> StoreResult<()>;

    /// Appends events to the audit log.
    async fn append_audit(&self, events: &[AuditEvent]) -> StoreResult<()>;

    /// A tenant's audit events from `since` on, sorted by number, at most `limit`. The call waits
    /// for events that are being written, so that a caller that continues at [`AuditPage::next`]
    /// misses no event.
    async fn audit(&self, database: &str, since: AuditSince, limit: u32) -> StoreResult<AuditPage>;

    /// Adds a browser session with a new id. The store deletes it with its user.
    async fn insert_browser_session(&self, session: &BrowserSession) -> StoreResult<()>;

    /// The browser session with this id, expired or not.
    async fn browser_session(&self, id: SecretHash) -> StoreResult<Option<BrowserSession>>;

    /// Records that a browser session was used at `seen_at`, and replaces the time at which it
    /// expires.
    async fn touch_browser_session(
        &self,
        id: SecretHash,
        seen_at: Timestamp,
        expires_at: Timestamp,
    ) -> StoreResult<()>;

    /// Deletes a browser session. Its unused authorization codes and device approvals become
    /// invalid. Returns whether the session existed.
    async fn delete_browser_session(&self, id: SecretHash) -> StoreResult<bool>;

    /// A user's browser sessions that are not expired at `now`, the most recently used first.
    async fn browser_sessions_of_user(
        &self,
        key: &UserKey,
        now: Timestamp,
    ) -> StoreResult<Vec<BrowserSession>>;

    /// A user's second factor.
    async fn second_factor(&self, key: &UserKey) -> StoreResult<Option<SecondFactor>>;

    /// Adds a user's second factor with its recovery codes; `false` if the user has a second factor
    /// already. The store deletes the second factor with the user.
    async fn insert_second_factor(
        &self,
        key: &UserKey,
        factor: &SecondFactor,
        recovery_codes: &[SecretHash],
    ) -> StoreResult<bool>;

    /// Marks the TOTP code of a time step as used; `false` if the code of this or a later step was
    /// used before. If several calls for one step run in parallel, exactly one succeeds.
    async fn use_second_factor_step(&self, key: &UserKey, step: u64) -> StoreResult<bool>;

    /// Deletes a recovery code; returns whether it existed. If several calls run in parallel,
    /// exactly one returns `true`.
    async fn use_recovery_code(&self, key: &UserKey, code: SecretHash) -> StoreResult<bool>;

    /// Deletes a user's second factor; returns whether it existed.
    async fn delete_second_factor(&self, key: &UserKey) -> StoreResult<bool>;

    /// The passkey with this id and its user.
    async fn passkey(&self, id: &str) -> StoreResult<Option<(UserKey, Passkey)>>;

    /// A user's passkeys, the oldest first.
    async fn passkeys_of_user(&self, key: &UserKey) -> StoreResult<Vec<Passkey>>;

    /// Adds a passkey to a user; `false` if a passkey with its id exists, or if the user has
    /// [`Passkey::MAX_COUNT`] passkeys. The step is atomic: parallel calls never add more. The
    /// store deletes the passkey with the user.
    async fn insert_passkey(&self, key: &UserKey, passkey: &Passkey) -> StoreResult<bool>;

    /// Renames a user's passkey; returns whether the passkey exists.
    async fn rename_passkey(&self, key: &UserKey, id: &str, name: &str) -> StoreResult<bool>;

    /// Replaces the record of a passkey that was used at `at`, if the stored record still equals
    /// `read`. Returns whether it was replaced.
    async fn use_passkey(&self, read: &Passkey, record: &str, at: Timestamp) -> StoreResult<bool>;

    /// Deletes a user's passkey unless it is the user's only credential. The step is atomic, as in
    /// [`delete_identity`](Self::delete_identity).
    async fn delete_passkey(&self, key: &UserKey, id: &str) -> StoreResult<RemovalOutcome>;

    /// Deletes all credentials of a user that are of the kind `kind`, even if the user then has no
    /// credential. Returns the name of each passkey, the issuer of each linked account, and an
    /// empty text for a second factor.
    async fn delete_credentials(
        &self,
        key: &UserKey,
        kind: CredentialKind,
    ) -> StoreResult<Vec<String>>;
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
