//! Marks the roles that Tidegate created.

/// The beginning of the comment on such a role. Only roles that may administer it can set the
/// comment.
pub const ROLE_MARK: &str = "made by Tidegate";
