//! A user in a response.

use serde::Serialize;
use serde_json::{Map, Value};
use tidegate_identity::User as Record;

/// A user in a response, without the password.
#[derive(Serialize)]
pub(super) struct UserView<'a> {
    name: &'a str,
    email: Option<&'a str>,
    properties: Option<&'a Map<String, Value>>,
    user_group: Groups<'a>,
    default_user: bool,
    kind: &'static str,
    /// The result of `tidegate.user_id()`; null for the default user.
    id: Option<&'a str>,
    disabled: bool,
}

/// The groups of a user in a response: null, one name, or a list of several.
#[derive(Serialize)]
#[serde(untagged)]
enum Groups<'a> {
    None,
    One(&'a str),
    Several(&'a [String]),
}

impl<'a> Groups<'a> {
    fn of(groups: &'a [String]) -> Self {
        match groups {
            [] => Self::None,
            [group] => Self::One(group),
            several => Self::Several(several),
        }
    }
}

impl<'a> UserView<'a> {
    pub(super) fn of(user: &'a Record) -> Self {
        Self {
            name: &user.key.name,
            email: user.email.as_deref(),
            properties: user.properties.as_ref(),
            user_group: Groups::of(&user.user_groups),
            default_user: user.default_user,
            kind: user.kind().name(),
            id: user.own_id(),
            disabled: user.disabled,
        }
    }
}
