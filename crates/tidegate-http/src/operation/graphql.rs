//! Loads schemas and their GraphQL APIs, and runs GraphQL operations.

use std::sync::Arc;

use serde_json::value::RawValue;
use tidegate_catalog::Schema;
use tidegate_graphql::{Api, Context, GraphqlResponse, PreparedOperation};
use tidegate_oauth::Scope;
use tidegate_sql::QueryOptions;

use crate::app::App;
use crate::authenticate::Caller;
use crate::error::ApiError;

/// Only responses of at least this size in bytes count in the memory budget.
pub const LARGE: u64 = 256 * 1024;

/// The GraphQL API of a schema as the caller sees it.
pub async fn api(
    app: &App,
    caller: &Caller,
    schema: &str,
    options: &QueryOptions,
) -> Result<Arc<Api>, ApiError> {
    let schema = self::schema(app, caller, schema, options).await?;
    let role = caller.login().map_or("", |login| login.role.as_str());
    let api = app.apis().of(&schema, role).await;
    api.map_err(ApiError::internal)
}

/// A schema as the caller sees it.
pub async fn schema(
    app: &App,
    caller: &Caller,
    schema: &str,
    options: &QueryOptions,
) -> Result<Arc<Schema>, ApiError> {
    let missing = || ApiError::not_found("there is no such schema, or no right to use it");
    let login = caller.login().ok_or_else(missing)?;
    let found = app.catalogs().schema(login, schema, options).await;
    let found = found.map_err(|error| ApiError::from_catalog(error, caller.anonymous))?;
    found.ok_or_else(missing)
}

/// Runs a query, which needs the scope `read`, or a mutation, which needs the scope `write`. The
/// size of the response's data in bytes is limited by `response_budget` and by the limit of the
/// API.
pub async fn execute(
    (app, api): (&App, &Api),
    caller: &Caller,
    (options, response_budget): (QueryOptions, u64),
    prepared: &PreparedOperation,
    variables: Option<&RawValue>,
) -> Result<GraphqlResponse, ApiError> {
    let needed = if prepared.is_mutation() {
        Scope::Write
    } else {
        Scope::Read
    };
    caller.require(&[needed])?;
    let context = Context {
        executor: &**app.executor(),
        principal: &caller.principal,
        anonymous: caller.anonymous,
        options,
        response_budget,
    };
    let executed = api.execute(prepared, variables, context).await;
    executed.map_err(|error| ApiError::from_sql(error, caller.anonymous))
}
