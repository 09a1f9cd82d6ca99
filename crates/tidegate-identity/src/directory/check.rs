//! The rules for the fields of a user's record.

use serde_json::Value;

use crate::{Error, Result, User, group_role};

/// The maximum size of a user's properties as JSON, in bytes. Tokens contain the properties and
/// must stay below 8 KiB.
const PROPERTY_BYTES: usize = 3 * 1024;
const MAX_TEXT_LENGTH: usize = 254;
const MAX_GROUPS: usize = 32;
/// The maximum length of a member's id, in bytes.
const MAX_ID_LENGTH: usize = 255;

/// Checks the names and the number of groups; fails with [`Error::InvalidElement`] or
/// [`Error::InvalidField`].
pub(crate) fn check_groups(database: &str, groups: &[String]) -> Result<()> {
    for (index, group) in groups.iter().enumerate() {
        group_role(database, group).map_err(|error| match error {
            Error::InvalidField { field, expected } if groups.len() > 1 => Error::InvalidElement {
                field,
                index,
                expected,
            },
            error => error,
        })?;
        if index == MAX_GROUPS || groups[..index].contains(group) {
            return Err(Error::InvalidField {
                field: "user_group",
                expected: "at most 32 different groups",
            });
        }
    }
    Ok(())
}

/// Whether `text` is one email address without quotes and comments: atoms with dots between them
/// (RFC 5322, section 3.2.3) around an `@`. Without this check, other text would cause an error
/// only when the first email is sent.
fn is_email(text: &str) -> bool {
    let atoms = |half: &str, marks: &str| {
        half.split('.').all(|atom| {
            !atom.is_empty()
                && atom.chars().all(|c| {
                    c.is_ascii_alphanumeric()
                        || marks.contains(c)
                        || !(c.is_ascii() || c.is_control() || c.is_whitespace())
                })
        })
    };
    text.len() <= MAX_TEXT_LENGTH
        && text.rsplit_once('@').is_some_and(|(local, domain)| {
            atoms(local, "!#$%&'*+-/=?^_`{|}~") && atoms(domain, "-")
        })
}

/// Checks the fields of a record. Fails with [`Error::InvalidField`], which names the first
/// invalid field.
pub(crate) fn check(user: &User) -> Result<()> {
    let invalid = |field, expected| Err(Error::InvalidField { field, expected });
    check_kind(user)?;
    if !user.email.as_deref().is_none_or(is_email) {
        return invalid("email", "an e-mail address");
    }
    let properties = user.properties.as_ref().map(serde_json::to_vec);
    if properties.is_some_and(|json| json.map_or(true, |json| json.len() > PROPERTY_BYTES)) {
        return invalid("properties", "a JSON object of at most 3072 bytes");
    }
    // Policies read the properties as jsonb, which cannot contain the character U+0000.
    let properties = user.properties.iter().flatten();
    if properties
        .into_iter()
        .any(|(name, value)| has_nul(name, value))
    {
        return invalid("properties", "an object without the character U+0000");
    }
    if user.disabled && (user.default_user || user.key.is_owner()) {
        return invalid("disabled", "false for the owner and the default user");
    }
    if user.default_user && user.key.is_owner() {
        return invalid(
            "default_user",
            "a sub-user; the owner cannot be the default user",
        );
    }
    Ok(())
}

/// Checks the id, and the fields that depend on the kind of the user; fails with
/// [`Error::InvalidField`].
fn check_kind(user: &User) -> Result<()> {
    let invalid = |field, expected| Err(Error::InvalidField { field, expected });
    let id = user.id.as_deref();
    if id.is_some_and(|id| {
        id.is_empty() || id.len() > MAX_ID_LENGTH || id.contains(char::is_control)
    }) {
        return invalid("id", "1 to 255 bytes without control characters");
    }
    if !user.is_member() {
        return Ok(());
    }
    if user.key.is_owner() {
        return invalid("kind", "role for the owner of the database");
    }
    if user.default_user {
        return invalid("default_user", "false for a member");
    }
    if user.user_groups.len() != 1 {
        return invalid("user_group", "exactly one group for a member");
    }
    Ok(())
}

/// Whether a member of a JSON object contains the character U+0000.
fn has_nul(name: &str, value: &Value) -> bool {
    name.contains('\0')
        || match value {
            Value::String(text) => text.contains('\0'),
            Value::Array(items) => items.iter().any(|item| has_nul("", item)),
            Value::Object(members) => members.iter().any(|(name, value)| has_nul(name, value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
}
