//! Permissions to manage methods.

/// The user who defines, changes or removes methods.
///
/// Every user of the tenant may define, list and call methods. A call runs with the caller's
/// privileges in the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller<'a> {
    /// The name of the user. It is stored with a method as its creator.
    pub user: &'a str,
    /// Whether the user owns the tenant.
    pub owner: bool,
}

impl Caller<'_> {
    /// Whether the user may change and remove a method of `creator`. The owner may change every
    /// method, a sub-user only its own.
    pub fn may_change(&self, creator: &str) -> bool {
        self.owner || self.user == creator
    }
}
