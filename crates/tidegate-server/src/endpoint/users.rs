//! `/api/v4/users`: the users of a tenant. The owner manages them; a sub-user sees and changes
//! itself.

use bytes::Bytes;
use http::{Method as Verb, Response, StatusCode};
use serde::Serialize;
use serde_json::{Map, Value};
use tidegate_identity::{
    Accounts, NewUser, Secret, TenantName, User as Record, UserChange, UserKey, UserName,
};

use super::clients::{absent, refuse_ended};
use super::rest::{self, Members};
use tidegate_http::app::App;
use tidegate_http::authenticate::User;
use tidegate_http::body::Body;
use tidegate_http::call::{Call, no_content};
use tidegate_http::error::Failure;
use tidegate_http::forwarded;
use tidegate_http::request_body::BodyError;

const BASE: &str = "/api/v4/users";
const MEMBERS: &str = "name, email, password, properties, user_group, default_user";

/// A user as it is shown: everything but the password.
#[derive(Serialize)]
struct Shown<'a> {
    name: &'a str,
    email: Option<&'a str>,
    properties: Option<&'a Map<String, Value>>,
    user_group: Groups<'a>,
    default_user: bool,
}

/// The groups of a user: null, a name, or a list of several.
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

/// Who manages the users, and on whose behalf.
struct Desk {
    accounts: Accounts,
    user: User,
}

impl Desk {
    fn of<B>(call: &mut Call<'_, B>) -> Result<Self, Failure> {
        let user = rest::user(call)?;
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

    /// Refuses a sub-user to whom others than itself are named, whether they are there or not.
    fn require_itself(&self, names: &[&str]) -> Result<(), Failure> {
        let claims = &self.user.claims;
        if claims.owner || names.iter().all(|name| *name == claims.user) {
            return Ok(());
        }
        Err(Failure::insufficient_privileges(
            "a user sees and changes itself only",
        ))
    }

    async fn find(&self, names: &[&str]) -> Result<Vec<Record>, Failure> {
        let mut found = Vec::with_capacity(names.len());
        for name in names {
            let user = self.accounts.directory().user(&self.key(name)).await;
            found.push(user.map_err(|error| rest::about(error, "user", name))?);
        }
        Ok(found)
    }

    /// What a change of users brings about on this node at once.
    async fn settle(&self, app: &App) -> Result<(), Failure> {
        app.forget_default_user(&self.user.claims.database);
        refuse_ended(app).await
    }
}

/// `GET` lists the users that the caller may see, `POST` creates one or several.
pub(crate) async fn collection<B>(mut call: Call<'_, B>) -> Result<Response<Body>, Failure>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<BodyError>,
{
    let desk = Desk::of(&mut call)?;
    if call.head.method != Verb::POST {
        return list(&desk).await;
    }
    rest::require_owner(&desk.user.claims)?;
    rest::require_private(call.app, call.peer, call.head)?;
    let body = rest::objects(call.app, call.head, call.body, call.subject).await?;
    let listed = body.listed;
    let place = |failure, index| rest::placed(failure, listed, index);
    let mut new = Vec::with_capacity(body.objects.len());
    for (index, object) in body.objects.into_iter().enumerate() {
        let user = read(object, &desk.user.claims.database);
        new.push(user.map_err(|failure| place(failure, index))?);
    }
    let mut made: Vec<Record> = Vec::with_capacity(new.len());
    for (index, user) in new.into_iter().enumerate() {
        match desk.accounts.create(user).await {
            Ok(user) => made.push(user),
            Err(error) => {
                for user in &made {
                    let dropped = desk.accounts.drop(&user.key, false).await;
                    dropped.map_err(Failure::from_accounts)?;
                }
                return Err(place(Failure::from_accounts(error), index));
            }
        }
    }
    desk.settle(call.app).await?;
    let names: Vec<_> = made.iter().map(|user| user.key.name.as_str()).collect();
    rest::linked(StatusCode::CREATED, BASE, &names)
}

async fn list(desk: &Desk) -> Result<Response<Body>, Failure> {
    let claims = &desk.user.claims;
    let users = if claims.owner {
        let users = desk.accounts.directory().users(&claims.database).await;
        users.map_err(Failure::from_accounts)?
    } else {
        desk.find(&[&claims.user]).await?
    };
    rest::shown(&users.iter().map(shown).collect::<Vec<_>>())
}

/// `GET` shows, `PATCH` changes, `DELETE` drops the users of the path.
pub(crate) async fn members<B>(
    mut call: Call<'_, B>,
    names: &str,
) -> Result<Response<Body>, Failure>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<BodyError>,
{
    let desk = Desk::of(&mut call)?;
    let names = rest::names(call.app, names)?;
    match call.head.method {
        Verb::PATCH => {
            desk.require_itself(&names)?;
            rest::require_private(call.app, call.peer, call.head)?;
            let members = rest::object_of(call.app, call.head, call.body, call.subject).await?;
            let change = patch(&desk, members)?;
            desk.find(&names).await?;
            for name in &names {
                let key = desk.key(name);
                let changed = desk.accounts.change(&key, change.clone());
                changed
                    .await
                    .map_err(|error| rest::about(error, "user", name))?;
            }
            desk.settle(call.app).await?;
            rest::linked(StatusCode::SEE_OTHER, BASE, &names)
        }
        Verb::DELETE => {
            rest::require_owner(&desk.user.claims)?;
            let reassign = reassign(call.head)?;
            for name in &names {
                let may = desk.accounts.check_drop(&desk.key(name), reassign).await;
                may.map_err(|error| rest::about(error, "user", name))?;
            }
            for name in &names {
                let dropped = desk.accounts.drop(&desk.key(name), reassign).await;
                dropped.map_err(|error| rest::about(error, "user", name))?;
            }
            desk.settle(call.app).await?;
            Ok(no_content())
        }
        _ => {
            desk.require_itself(&names)?;
            match &*desk.find(&names).await? {
                [user] => rest::shown(&shown(user)),
                several => rest::shown(&several.iter().map(shown).collect::<Vec<_>>()),
            }
        }
    }
}

fn reassign(head: &http::request::Parts) -> Result<bool, Failure> {
    let query = rest::query(head, &["reassign"])?;
    match query.last().map(|(_, value)| value.as_str()) {
        Some("true") => Ok(true),
        Some("false") | None => Ok(false),
        Some(_) => Err(Failure::input("`reassign`: expected true or false")),
    }
}

fn shown(user: &Record) -> Shown<'_> {
    Shown {
        name: &user.key.name,
        email: user.email.as_deref(),
        properties: user.properties.as_ref(),
        user_group: Groups::of(&user.user_groups),
        default_user: user.default_user,
    }
}

fn read(object: Map<String, Value>, database: &str) -> Result<NewUser, Failure> {
    let mut members = Members::new(object);
    let database = TenantName::adopted(database).map_err(Failure::internal)?;
    let name = UserName::parse(&members.required("name")?).map_err(Failure::from_accounts)?;
    let mut user = NewUser::new(database, name);
    user.email = members.optional_text("email")?.flatten();
    user.password = members.text("password")?.map(Secret::new);
    user.properties = members.object_or_text("properties")?.flatten();
    user.user_groups = members.names("user_group")?.unwrap_or_default();
    user.default_user = members.flag("default_user")?.unwrap_or(false);
    members.finish(MEMBERS)?;
    if user.password.is_none() && !user.default_user {
        return Err(Failure::input(
            "`password`: missing; only a default user may have none",
        ));
    }
    Ok(user)
}

/// What a sub-user may change about itself: not what decides over its rights.
fn patch(desk: &Desk, mut members: Members) -> Result<UserChange, Failure> {
    let claims = &desk.user.claims;
    if claims.shared {
        return Err(Failure::insufficient_privileges(
            "the default user, which anonymous callers share, cannot change itself",
        ));
    }
    for name in ["properties", "user_group", "default_user"] {
        if !claims.owner && members.has(name) {
            return Err(Failure::insufficient_privileges(format!(
                "`{name}`: only the owner of the database changes this"
            )));
        }
    }
    if members.has("name") {
        return Err(Failure::input("`name`: a user keeps its name"));
    }
    let change = UserChange {
        email: members.optional_text("email")?,
        properties: members.object_or_text("properties")?,
        user_groups: members.names("user_group")?,
        default_user: members.flag("default_user")?,
        password: members.text("password")?.map(Secret::new),
    };
    members.finish(MEMBERS.trim_start_matches("name, "))?;
    Ok(change)
}
