//! The password of a user in a request body: in plain text, or as a hash from another system.

use tidegate_identity::{PasswordHash, Secret};

use super::rest::ObjectMembers;
use tidegate_http::error::ApiError;

/// Reads `password` and `password_hash`. A body has at most one of the two.
pub(super) fn read(
    members: &mut ObjectMembers,
) -> Result<(Option<Secret>, Option<PasswordHash>), ApiError> {
    let password = members.text("password")?.map(Secret::new);
    let hash = members.text("password_hash")?;
    if password.is_some() && hash.is_some() {
        return Err(ApiError::input(
            "`password_hash`: give this or `password`, not both",
        ));
    }
    let hash = hash.as_deref().map(PasswordHash::imported).transpose();
    Ok((password, hash.map_err(ApiError::from_accounts)?))
}
