//! Marks the roles that Tidegate created.

/// The beginning of the comment on a role that Tidegate created. Only roles that may administer the
/// role can set its comment.
pub const ROLE_MARK: &str = "made by Tidegate";
