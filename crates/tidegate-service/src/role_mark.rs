//! Marks the roles that Tidegate created.

/// The beginning of the comment (`COMMENT ON ROLE`) on a role that Tidegate created. Only roles
/// that may administer a role can set its comment.
pub const ROLE_MARK: &str = "made by Tidegate";
