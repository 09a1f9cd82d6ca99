//! The endpoint `/api/v4/users`: the users of a tenant. The owner manages them; a sub-user sees and
//! changes only itself.

use bytes::Bytes;
use http::{Method as Verb, Response, StatusCode};
use serde::Serialize;
use serde_json::{Map, Value};
use tidegate_identity::{
    Accounts, NewUser, TenantName, User as Record, UserChange, UserKey, UserName,
};

use super::clients::{absent, refuse_ended};
use super::password;
use super::rest::{self, ObjectMembers};
use tidegate_http::app::App;
use tidegate_http::authenticate::{Scope, User};
use tidegate_http::body::Body;
use tidegate_http::call::{Call, no_content};
use tidegate_http::error::ApiError;
use tidegate_http::forwarded;
use tidegate_http::request_body::BodyError;

const BASE: &str = "/api/v4/users";
const MEMBERS: &str = "name, email, password, password_hash, properties, user_group, default_user";

/// A user in a response, without the password.
#[derive(Serialize)]
struct UserView<'a> {
    name: &'a str,
    email: Option<&'a str>,
    properties: Option<&'a Map<String, Value>>,
    user_group: Groups<'a>,
    default_user: bool,
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

/// The caller, and what manages the users of the caller's tenant.
struct UserAdmin {
    accounts: Accounts,
    user: User,
}

impl UserAdmin {
    async fn of<B>(call: &mut Call<'_, B>) -> Result<Self, ApiError> {
        let user = rest::user(call, Scope::Admin).await?;
        let accounts = call.app.accounts().ok_or_else(absent)?;
        let trusted = call.app.trusted_proxies();
        let address = forwarded::client_address(call.peer, &call.head.headers, trusted);
        Ok(Self {
            accounts: accounts.acting_as(user.claims.acting(), Some(address)),
            user,
        })
    }

    fn key(&self, name: &str) -> UserKey {
        UserKey::new(&self.user.claims.database, name)
    }

    /// Refuses a sub-user that names another user, whether that one exists or not.
    fn require_own_name(&self, names: &[&str]) -> Result<(), ApiError> {
        let claims = &self.user.claims;
        if claims.owner || names.iter().all(|name| *name == claims.user) {
            return Ok(());
        }
        Err(ApiError::insufficient_privileges(
            "a user sees and changes itself only",
        ))
    }

    async fn find(&self, names: &[&str]) -> Result<Vec<Record>, ApiError> {
        let mut found = Vec::with_capacity(names.len());
        for name in names {
            let user = self.accounts.directory().user(&self.key(name)).await;
            found.push(user.map_err(|error| rest::naming(error, "user", name))?);
        }
        Ok(found)
    }

    /// Makes changes of users take effect on this node at once.
    async fn apply(&self, app: &App) -> Result<(), ApiError> {
        app.forget_default_user(&self.user.claims.database);
        refuse_ended(app).await
    }
}

/// Handles `GET`, which lists the users that the caller may see, and `POST`, which creates one or
/// several.
pub(crate) async fn collection<B>(mut call: Call<'_, B>) -> Result<Response<Body>, ApiError>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<BodyError>,
{
    let admin = UserAdmin::of(&mut call).await?;
    if call.head.method != Verb::POST {
        return list(&admin).await;
    }
    rest::require_owner(&admin.user.claims)?;
    rest::require_encrypted(call.app, call.peer, call.head)?;
    let body = rest::objects(call.app, call.head, call.body, call.subject).await?;
    let listed = body.listed;
    let place = |failure, index| rest::at_index(failure, listed, index);
    let mut new = Vec::with_capacity(body.objects.len());
    for (index, object) in body.objects.into_iter().enumerate() {
        let user = read(object, &admin.user.claims.database);
        new.push(user.map_err(|failure| place(failure, index))?);
    }
    let mut made: Vec<Record> = Vec::with_capacity(new.len());
    for (index, user) in new.into_iter().enumerate() {
        match admin.accounts.create(user).await {
            Ok(user) => made.push(user),
            Err(error) => {
                for user in &made {
                    let dropped = admin.accounts.drop(&user.key, false).await;
                    dropped.map_err(ApiError::from_accounts)?;
                }
                return Err(place(ApiError::from_accounts(error), index));
            }
        }
    }
    admin.apply(call.app).await?;
    let names: Vec<_> = made.iter().map(|user| user.key.name.as_str()).collect();
    rest::linked(StatusCode::CREATED, BASE, &names)
}

async fn list(admin: &UserAdmin) -> Result<Response<Body>, ApiError> {
    let claims = &admin.user.claims;
    let users = if claims.owner {
        let users = admin.accounts.directory().users(&claims.database).await;
        users.map_err(ApiError::from_accounts)?
    } else {
        admin.find(&[&claims.user]).await?
    };
    rest::shown(&users.iter().map(shown).collect::<Vec<_>>())
}

/// Handles `GET`, `PATCH` and `DELETE`, which show, change and drop the users in the path.
pub(crate) async fn members<B>(
    mut call: Call<'_, B>,
    names: &str,
) -> Result<Response<Body>, ApiError>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<BodyError>,
{
    let admin = UserAdmin::of(&mut call).await?;
    let names = rest::names(call.app, names)?;
    match call.head.method {
        Verb::PATCH => {
            admin.require_own_name(&names)?;
            rest::require_encrypted(call.app, call.peer, call.head)?;
            let members = rest::object_of(call.app, call.head, call.body, call.subject).await?;
            let change = patch(&admin, members)?;
            admin.find(&names).await?;
            for name in &names {
                let key = admin.key(name);
                let changed = admin.accounts.change(&key, change.clone());
                changed
                    .await
                    .map_err(|error| rest::naming(error, "user", name))?;
            }
            admin.apply(call.app).await?;
            rest::linked(StatusCode::SEE_OTHER, BASE, &names)
        }
        Verb::DELETE => {
            rest::require_owner(&admin.user.claims)?;
            let reassign = reassign(call.head)?;
            for name in &names {
                let may = admin.accounts.check_drop(&admin.key(name), reassign).await;
                may.map_err(|error| rest::naming(error, "user", name))?;
            }
            for name in &names {
                let dropped = admin.accounts.drop(&admin.key(name), reassign).await;
                dropped.map_err(|error| rest::naming(error, "user", name))?;
            }
            admin.apply(call.app).await?;
            Ok(no_content())
        }
        _ => {
            admin.require_own_name(&names)?;
            match &*admin.find(&names).await? {
                [user] => rest::shown(&shown(user)),
                several => rest::shown(&several.iter().map(shown).collect::<Vec<_>>()),
            }
        }
    }
}

fn reassign(head: &http::request::Parts) -> Result<bool, ApiError> {
    let query = rest::query(head, &["reassign"])?;
    match query.last().map(|(_, value)| value.as_str()) {
        Some("true") => Ok(true),
        Some("false") | None => Ok(false),
        Some(_) => Err(ApiError::input("`reassign`: expected true or false")),
    }
}

fn shown(user: &Record) -> UserView<'_> {
    UserView {
        name: &user.key.name,
        email: user.email.as_deref(),
        properties: user.properties.as_ref(),
        user_group: Groups::of(&user.user_groups),
        default_user: user.default_user,
    }
}

fn read(object: Map<String, Value>, database: &str) -> Result<NewUser, ApiError> {
    let mut members = ObjectMembers::new(object);
    let database = TenantName::adopted(database).map_err(ApiError::internal)?;
    let name = UserName::parse(&members.required("name")?).map_err(ApiError::from_accounts)?;
    let mut user = NewUser::new(database, name);
    user.email = members.optional_text("email")?.flatten();
    (user.password, user.password_hash) = password::read(&mut members)?;
    user.properties = members.object_or_text("properties")?.flatten();
    user.user_groups = members.names("user_group")?.unwrap_or_default();
    user.default_user = members.flag("default_user")?.unwrap_or(false);
    members.finish(MEMBERS)?;
    if user.password.is_none() && user.password_hash.is_none() && !user.default_user {
        return Err(ApiError::input(
            "`password`: missing; only a default user may have none",
        ));
    }
    Ok(user)
}

/// The changes in a body. A sub-user may not change members that determine its privileges.
fn patch(admin: &UserAdmin, mut members: ObjectMembers) -> Result<UserChange, ApiError> {
    let claims = &admin.user.claims;
    if claims.shared {
        return Err(ApiError::insufficient_privileges(
            "the default user, which anonymous callers share, cannot change itself",
        ));
    }
    for name in ["password_hash", "properties", "user_group", "default_user"] {
        if !claims.owner && members.has(name) {
            return Err(ApiError::insufficient_privileges(format!(
                "`{name}`: only the owner of the database changes this"
            )));
        }
    }
    if members.has("name") {
        return Err(ApiError::input("`name`: a user keeps its name"));
    }
    let (password, password_hash) = password::read(&mut members)?;
    let change = UserChange {
        email: members.optional_text("email")?,
        properties: members.object_or_text("properties")?,
        user_groups: members.names("user_group")?,
        default_user: members.flag("default_user")?,
        password,
        password_hash,
    };
    members.finish(MEMBERS.trim_start_matches("name, "))?;
    Ok(change)
}
