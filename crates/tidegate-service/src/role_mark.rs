//! How roles that Tidegate made are known.

/// The beginning of the comment of such a role. Only who may administer roles can set it.
pub const ROLE_MARK: &str = "made by Tidegate";
