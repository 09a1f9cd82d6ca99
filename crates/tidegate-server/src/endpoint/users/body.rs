//! Users in the bodies of requests.

use serde_json::{Map, Value};
use tidegate_identity::{
    Accounts, Conversion, Error, NewUser, TenantName, UserChange, UserKey, UserKind, UserName,
    inexact_number,
};
use tidegate_oauth::Claims;

use crate::endpoint::password;
use crate::endpoint::rest::ObjectMembers;
use tidegate_http::error::ApiError;

const MEMBERS: &str =
    "name, kind, id, email, password, password_hash, properties, user_group, default_user";
const CHANGEABLE: &str =
    "kind, email, password, password_hash, properties, user_group, default_user, disabled";

pub(super) fn new(object: Map<String, Value>, database: &str) -> Result<NewUser, ApiError> {
    let mut members = ObjectMembers::new(object);
    let database = TenantName::adopted(database).map_err(ApiError::internal)?;
    let name = UserName::parse(&members.required("name")?).map_err(ApiError::from_accounts)?;
    let mut user = NewUser::new(database, name);
    user.kind = members.user_kind("kind")?.unwrap_or(UserKind::Role);
    user.id = members.optional_text("id")?.flatten();
    user.email = members.optional_text("email")?.flatten();
    (user.password, user.password_hash) = password::read(&mut members)?;
    user.properties = properties(&mut members)?.flatten();
    user.user_groups = members.names("user_group")?.unwrap_or_default();
    user.default_user = members.flag("default_user")?.unwrap_or(false);
    members.finish(MEMBERS)?;
    let has_password = user.password.is_some() || user.password_hash.is_some();
    if !has_password && !user.default_user && user.kind == UserKind::Role {
        return Err(ApiError::input(
            "`password`: missing; only a default user and members may have none",
        ));
    }
    Ok(user)
}

/// Parses the properties of a user. Refuses whole numbers of more than 64 bits, because they would
/// be rounded.
#[expect(
    clippy::option_option,
    reason = "absent, null and given are three things"
)]
fn properties(members: &mut ObjectMembers) -> Result<Option<Option<Map<String, Value>>>, ApiError> {
    let read = members.object_or_text("properties")?;
    match read
        .as_ref()
        .and_then(|read| inexact_number(read.as_ref()?))
    {
        None => Ok(read),
        Some(path) => Err(ApiError::input(format!(
            "`properties`: the number in `{path}` has more than 64 bits; expected a string instead"
        ))),
    }
}

/// The changes that a `PATCH` requests.
pub(super) struct Patch {
    /// The conversion to another kind; `None` if the kind does not change.
    conversion: Option<Conversion>,
    change: UserChange,
}

impl Patch {
    /// If the request changes the user's kind, checks that the user can be converted.
    pub(super) async fn check(&self, accounts: &Accounts, key: &UserKey) -> Result<(), Error> {
        match &self.conversion {
            Some(conversion) => accounts.check_convert(key, conversion).await.map(drop),
            None => Ok(()),
        }
    }

    /// Converts the user if the request changes the user's kind, and then makes the other changes.
    pub(super) async fn apply(&self, accounts: &Accounts, key: &UserKey) -> Result<(), Error> {
        if let Some(conversion) = &self.conversion {
            accounts.convert(key, conversion).await?;
        }
        accounts.change(key, self.change.clone()).await.map(drop)
    }
}

/// Parses the changes in a body. The default user may change nothing. A sub-user may change only
/// its email address and its password.
pub(super) fn patch(
    claims: &Claims,
    mut members: ObjectMembers,
    reassign: bool,
) -> Result<Patch, ApiError> {
    if claims.shared {
        return Err(ApiError::insufficient_privileges(
            "the default user, which anonymous callers share, cannot change itself",
        ));
    }
    for name in [
        "kind",
        "password_hash",
        "properties",
        "user_group",
        "default_user",
        "disabled",
    ] {
        if !claims.owner && members.has(name) {
            return Err(ApiError::insufficient_privileges(format!(
                "`{name}`: only the owner of the database changes this"
            )));
        }
    }
    for name in ["name", "id"] {
        if members.has(name) {
            return Err(ApiError::input(format!(
                "`{name}`: a user keeps its {name}"
            )));
        }
    }
    let kind = members.user_kind("kind")?;
    let user_groups = members.names("user_group")?;
    let (password, password_hash) = password::read(&mut members)?;
    let change = UserChange {
        email: members.optional_text("email")?,
        properties: properties(&mut members)?,
        user_groups: user_groups.clone().filter(|_| kind.is_none()),
        default_user: members.flag("default_user")?,
        disabled: members.flag("disabled")?,
        password,
        password_hash,
    };
    members.finish(CHANGEABLE)?;
    let conversion = kind.map(|kind| Conversion {
        kind,
        user_groups,
        reassign,
    });
    Ok(Patch { conversion, change })
}
