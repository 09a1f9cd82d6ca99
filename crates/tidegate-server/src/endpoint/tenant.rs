//! The endpoint `/api/v4/tenant`: the settings of the owner's tenant.

use http::{Method as Verb, Response, StatusCode};
use serde::Serialize;
use tidegate_identity::AnonymousSql;

use super::rest;
use tidegate_http::authenticate::Scope;
use tidegate_http::body::Body;
use tidegate_http::call::Call;
use tidegate_http::error::ApiError;
use tidegate_http::request_body::IncomingBody;

#[derive(Serialize)]
struct TenantView<'a> {
    name: &'a str,
    anonymous_sql: &'static str,
    impersonation: bool,
}

/// Handles `GET`, which shows the settings, and `PATCH`, which changes the settings in the body.
pub(crate) async fn settings<B: IncomingBody>(
    mut call: Call<'_, B>,
) -> Result<Response<Body>, ApiError> {
    let owner = rest::user(&mut call, Scope::Admin).await?;
    rest::require_owner(&owner.claims)?;
    let (app, database) = (call.app, &*owner.claims.database);
    let accounts = app.accounts();
    let accounts = accounts.ok_or_else(|| ApiError::not_found("there is no such path"))?;
    if call.head.method != Verb::PATCH {
        let directory = accounts.directory();
        let setting = directory.anonymous_sql(database).await;
        let impersonation = directory.impersonation(database).await;
        return rest::shown(&TenantView {
            name: database,
            anonymous_sql: setting.map_err(ApiError::from_accounts)?.name(),
            impersonation: impersonation.map_err(ApiError::from_accounts)?,
        });
    }
    let address = call.client_address();
    let mut members = rest::object_of(app, call.head, call.body, call.subject).await?;
    let wanted = members.text("anonymous_sql")?;
    let impersonation = members.flag("impersonation")?;
    members.finish("anonymous_sql, impersonation")?;
    let directory = accounts.directory();
    let directory = directory.acting_as(owner.claims.acting(), Some(address));
    let anonymous = |name: String| {
        let expected = AnonymousSql::NAMES;
        let invalid = || ApiError::input(format!("`anonymous_sql`: expected {expected}"));
        AnonymousSql::parse(&name).ok_or_else(invalid)
    };
    let wanted = wanted.map(anonymous).transpose()?;
    if let Some(allowed) = impersonation {
        let set = directory.set_impersonation(database, allowed).await;
        set.map_err(ApiError::from_accounts)?;
    }
    if let Some(setting) = wanted {
        let set = directory.set_anonymous_sql(database, setting).await;
        set.map_err(ApiError::from_accounts)?;
        app.forget_users(database);
    }
    rest::linked(StatusCode::SEE_OTHER, "/api/v4", &["tenant"])
}
