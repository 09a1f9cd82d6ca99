//! Tables of another crate in the memory store.

use crate::{EndReason, SecretHash, SessionId, Timestamp, UserKey};

/// The tables of another crate in a [`MemoryStore`](crate::MemoryStore). Their rows depend on
/// users, tenants and browser sessions. A change of a user, tenant or browser session also changes
/// the dependent rows, in the same atomic step.
pub trait DependentTables: Send {
    /// Ends the sessions of the users for which `is_affected` returns `true`. If the users are
    /// dropped ([`EndReason::UserDropped`], [`EndReason::TenantDropped`]), also removes data that
    /// depends on them. Returns the ids of the ended sessions.
    fn end_sessions(
        &mut self,
        is_affected: &dyn Fn(&UserKey) -> bool,
        reason: EndReason,
        at: Timestamp,
    ) -> Vec<SessionId>;

    /// Voids the codes and device approvals whose browser session does not exist any more. `exists`
    /// returns whether the browser session with this id exists.
    fn void_approvals(&mut self, exists: &dyn Fn(&SecretHash) -> bool);

    /// Deletes the rows that belong to a tenant.
    fn delete_tenant(&mut self, database: &str);
}

/// A store without tables of another crate.
impl DependentTables for () {
    fn end_sessions(
        &mut self,
        _is_affected: &dyn Fn(&UserKey) -> bool,
        _reason: EndReason,
        _at: Timestamp,
    ) -> Vec<SessionId> {
        Vec::new()
    }

    fn void_approvals(&mut self, _exists: &dyn Fn(&SecretHash) -> bool) {}

    fn delete_tenant(&mut self, _database: &str) {}
}
