//! The endpoint `/api/v4/users`: the users of a tenant. The owner manages them; a sub-user sees and
//! changes only itself.

mod body;
mod credentials;
mod page;
mod view;

use http::{Method as Verb, Response, StatusCode};
use tidegate_identity::{Accounts, User as Record, UserKey};

use super::clients::{absent, refuse_ended};
use super::rest;
pub(crate) use credentials::{remove as remove_credentials, show as credentials};
use tidegate_http::app::App;
use tidegate_http::authenticate::{Scope, User};
use tidegate_http::body::Body;
use tidegate_http::call::{Call, no_content};
use tidegate_http::error::ApiError;
use tidegate_http::request_body::IncomingBody;
use view::UserView;

const BASE: &str = "/api/v4/users";

/// Manages the users of the caller's tenant.
struct UserAdmin {
    /// The management of users. Its audit events name the caller as the actor.
    accounts: Accounts,
    /// The caller.
    user: User,
}

impl UserAdmin {
    async fn of<B>(call: &mut Call<'_, B>) -> Result<Self, ApiError> {
        let user = rest::user(call, Scope::Admin).await?;
        let accounts = call.app.accounts().ok_or_else(absent)?;
        let address = call.client_address();
        Ok(Self {
            accounts: accounts.acting_as(user.claims.acting(), Some(address)),
            user,
        })
    }

    fn key(&self, name: &str) -> UserKey {
        UserKey::new(&self.user.claims.database, name)
    }

    /// Refuses the request if the caller is a sub-user and names another user. The response is the
    /// same if the other user does not exist, so it does not show which users exist.
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

    /// Changes users one after the other. Before any change, checks all conversions to another
    /// kind. If a conversion would be refused, no user is changed.
    async fn change(&self, names: &[&str], patch: &body::Patch) -> Result<(), ApiError> {
        for name in names {
            let may = patch.check(&self.accounts, &self.key(name)).await;
            may.map_err(|error| rest::naming_one(error, "user", (name, names)))?;
        }
        for name in names {
            let changed = patch.apply(&self.accounts, &self.key(name)).await;
            changed.map_err(|error| rest::naming_one(error, "user", (name, names)))?;
        }
        Ok(())
    }

    /// Drops users one after the other, after checking that all of them may be dropped.
    async fn drop(&self, names: &[&str], reassign: bool) -> Result<(), ApiError> {
        for name in names {
            let may = self.accounts.check_drop(&self.key(name), reassign).await;
            may.map_err(|error| rest::naming_one(error, "user", (name, names)))?;
        }
        for name in names {
            let dropped = self.accounts.drop(&self.key(name), reassign).await;
            dropped.map_err(|error| rest::naming_one(error, "user", (name, names)))?;
        }
        Ok(())
    }

    /// Makes changes of users take effect on this node immediately.
    async fn apply(&self, app: &App) -> Result<(), ApiError> {
        app.forget_users(&self.user.claims.database);
        refuse_ended(app).await
    }
}

/// Handles `GET`, which lists the users that the caller may see, and `POST`, which creates users.
pub(crate) async fn collection<B: IncomingBody>(
    mut call: Call<'_, B>,
) -> Result<Response<Body>, ApiError> {
    let admin = UserAdmin::of(&mut call).await?;
    if call.head.method != Verb::POST {
        return page::list(&admin, call.head).await;
    }
    rest::require_owner(&admin.user.claims)?;
    rest::require_encrypted(call.app, call.peer, call.head)?;
    let body = rest::objects(call.app, call.head, call.body, call.subject).await?;
    let listed = body.listed;
    let place = |failure, index| rest::at_index(failure, listed, index);
    let mut new = Vec::with_capacity(body.objects.len());
    for (index, object) in body.objects.into_iter().enumerate() {
        let user = body::new(object, &admin.user.claims.database);
        new.push(user.map_err(|failure| place(failure, index))?);
    }
    let names: Vec<_> = new.iter().map(|user| user.name.to_string()).collect();
    let created = admin.accounts.create_all(&new).await;
    created.map_err(|(index, error)| place(ApiError::from_accounts(error), index))?;
    admin.apply(call.app).await?;
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    rest::linked(StatusCode::CREATED, BASE, &names)
}

/// Handles `GET`, `PATCH` and `DELETE`, which show, change and drop the users in the path.
pub(crate) async fn members<B: IncomingBody>(
    mut call: Call<'_, B>,
    names: &str,
) -> Result<Response<Body>, ApiError> {
    let admin = UserAdmin::of(&mut call).await?;
    let names = rest::names(call.app, names)?;
    match call.head.method {
        Verb::PATCH => {
            admin.require_own_name(&names)?;
            rest::require_encrypted(call.app, call.peer, call.head)?;
            let members = rest::object_of(call.app, call.head, call.body, call.subject).await?;
            let patch = body::patch(&admin.user.claims, members, reassign(call.head)?)?;
            admin.find(&names).await?;
            let changed = admin.change(&names, &patch).await;
            // `apply` is also called after an error, because the users before the failed one have
            // changed.
            admin.apply(call.app).await?;
            changed?;
            rest::linked(StatusCode::SEE_OTHER, BASE, &names)
        }
        Verb::DELETE => {
            rest::require_owner(&admin.user.claims)?;
            let reassign = reassign(call.head)?;
            let dropped = admin.drop(&names, reassign).await;
            // `apply` is also called after an error, because the users before the failed one were
            // dropped.
            admin.apply(call.app).await?;
            dropped?;
            Ok(no_content())
        }
        _ => {
            admin.require_own_name(&names)?;
            match &*admin.find(&names).await? {
                [user] => rest::shown(&UserView::of(user)),
                several => rest::shown(&several.iter().map(UserView::of).collect::<Vec<_>>()),
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
