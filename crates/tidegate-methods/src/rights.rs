//! Who may do what with methods.

/// The user who asks.
///
/// Anybody of the tenant may define, list and call methods; a call runs with the caller's own
/// rights in the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actor<'a> {
    /// The user's name, as it is kept as a method's creator.
    pub user: &'a str,
    /// Whether the user owns the tenant.
    pub owner: bool,
}

impl Actor<'_> {
    /// Whether the user may change and drop a method that `creator` has defined: the owner every
    /// method, a sub-user its own.
    pub fn may_change(&self, creator: &str) -> bool {
        self.owner || self.user == creator
    }
}
