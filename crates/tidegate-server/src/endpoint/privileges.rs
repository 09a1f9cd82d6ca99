//! `/api/v4/schemas/{schema}/tables/{table}/privileges`: the privileges of sub-users on a table.

use std::collections::BTreeMap;
use std::time::Instant;

use http::{Method as Verb, Response, StatusCode};
use serde::Serialize;
use serde_json::{Map, Value};
use tidegate_catalog::{Access, RoleAccess, TableName};
use tidegate_identity::User as Record;
use tidegate_sql::{DatabaseName, Login, QueryOptions, RoleName, RoleUse};

use super::rest::{self, ObjectMembers};
use tidegate_http::app::App;
use tidegate_http::authenticate::{Scope, User};
use tidegate_http::body::Body;
use tidegate_http::call::Call;
use tidegate_http::error::ApiError;
use tidegate_http::request_body::IncomingBody;

/// The privileges of a sub-user in a response.
#[derive(Serialize)]
struct PrivilegesView<'a> {
    subuser: &'a str,
    privilege: &'static str,
    privileges: &'a [String],
    columns: BTreeMap<&'a str, Vec<&'a str>>,
    usage: bool,
}

/// A sub-user, and the access level that the request wants to set.
struct RequestedAccess<'u> {
    user: &'u Record,
    access: Access,
}

/// Handles `GET`, which shows the privileges of each sub-user as PostgreSQL reports them, and
/// `PATCH`, which grants and revokes them.
pub(crate) async fn of_table<B: IncomingBody>(
    mut call: Call<'_, B>,
    schema: &str,
    table: &str,
) -> Result<Response<Body>, ApiError> {
    let owner = rest::user(&mut call, Scope::Admin).await?;
    rest::require_owner(&owner.claims)?;
    let database = &owner.login.database;
    let users = call.app.store().users_with_role(database.as_str()).await;
    let users = users.map_err(ApiError::from_accounts)?;
    let table = TableName {
        database,
        schema,
        table,
    };
    if call.head.method == Verb::PATCH {
        return change(call, &owner, table, &users).await;
    }
    show(call.app, table, &users, &options(call.app)).await
}

async fn change<B: IncomingBody>(
    call: Call<'_, B>,
    owner: &User,
    table: TableName<'_>,
    users: &[Record],
) -> Result<Response<Body>, ApiError> {
    let address = call.client_address();
    let body = rest::objects(call.app, call.head, call.body, call.subject).await?;
    let listed = body.listed;
    let place = |failure, index| rest::at_index(failure, listed, index);
    let mut wanted = Vec::with_capacity(body.objects.len());
    for (index, object) in body.objects.into_iter().enumerate() {
        wanted.push(read(object, users).map_err(|failure| place(failure, index))?);
    }
    let logins = users.iter().filter_map(|user| login(table.database, user));
    let logins: Vec<_> = logins.collect();
    let (executor, options) = (&**call.app.executor(), options(call.app));
    let accounts = call.app.accounts();
    let directory = accounts.map(|all| {
        all.directory()
            .acting_as(owner.claims.acting(), Some(address))
    });
    let name = format!("{}.{}", table.schema, table.table);
    for (index, RequestedAccess { user, access }) in wanted.iter().enumerate() {
        let asked = (user.role.as_deref().unwrap_or_default(), *access);
        let set = tidegate_catalog::set_table_access(executor, table, asked, &logins, &options);
        set.await
            .map_err(|error| place(ApiError::from_catalog(error, false), index))?;
        if let Some(directory) = &directory {
            let noted = directory.audit_privilege(&user.key, access.name(), &name);
            noted.await;
        }
    }
    // The link contains the path exactly as the client sent it, so that the names need not be
    // encoded again.
    let path = call.head.uri.path().trim_end_matches('/');
    let (base, name) = path.rsplit_once('/').unwrap_or((path, ""));
    rest::linked(StatusCode::SEE_OTHER, base, &[name])
}

async fn show(
    app: &App,
    table: TableName<'_>,
    users: &[Record],
    options: &QueryOptions,
) -> Result<Response<Body>, ApiError> {
    let sub_users: Vec<_> = users.iter().filter(|user| !user.key.is_owner()).collect();
    let roles = sub_users.iter().filter_map(|user| user.role.as_deref());
    let roles: Vec<_> = roles.collect();
    let found = tidegate_catalog::table_access(&**app.executor(), table, &roles, options).await;
    let found = found.map_err(|error| ApiError::from_catalog(error, false))?;
    let name = |role: &str| {
        sub_users
            .iter()
            .find(|user| user.role.as_deref() == Some(role))
    };
    let shown: Vec<_> = found
        .iter()
        .filter_map(|role| Some(shown(&name(&role.role)?.key.name, role)))
        .collect();
    rest::shown(&shown)
}

fn shown<'a>(subuser: &'a str, role: &'a RoleAccess) -> PrivilegesView<'a> {
    let mut columns = BTreeMap::<&str, Vec<&str>>::new();
    for on in &role.columns {
        columns.entry(&on.privilege).or_default().push(&on.column);
    }
    PrivilegesView {
        subuser,
        privilege: role.access.map_or("other", Access::name),
        privileges: &role.privileges,
        columns,
        usage: role.usage,
    }
}

fn read(object: Map<String, Value>, users: &[Record]) -> Result<RequestedAccess<'_>, ApiError> {
    let mut members = ObjectMembers::new(object);
    let name = members.required("subuser")?;
    let privilege = members.required("privilege")?;
    members.finish("subuser, privilege")?;
    let access = Access::from_name(&privilege)
        .ok_or_else(|| ApiError::input("`privilege`: expected none, read or write"))?;
    let user = users.iter().find(|user| user.key.name == name);
    match user {
        Some(user) if !user.key.is_owner() => Ok(RequestedAccess { user, access }),
        _ => Err(ApiError::input(
            "`subuser`: there is no such sub-user with a role",
        )),
    }
}

/// The login of a user; `None` for a member, because a member has the privileges of its group.
fn login(database: &DatabaseName, user: &Record) -> Option<Login> {
    Some(Login {
        database: database.clone(),
        role: RoleName::new(user.role.as_ref()?),
        role_use: if user.default_user {
            RoleUse::Anonymous
        } else {
            // No OAuth session has the id 0, so this login shares no session state with the user's
            // requests.
            RoleUse::User(0)
        },
    })
}

fn options(app: &App) -> QueryOptions {
    QueryOptions {
        deadline: Some(Instant::now() + app.limits().statement),
        ..QueryOptions::default()
    }
}
