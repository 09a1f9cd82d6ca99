//! The SQL endpoints: `/api/v4/sql` and its paths with a database or schema.

use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response};
use tidegate_methods::definition::is_definition;
use tidegate_oauth::Scope;
use tidegate_sql::request::{self, Requests};
use tidegate_values::OutputFormat;

use super::methods;
use tidegate_http::body::{Body, Content};
use tidegate_http::call::{Call, json};
use tidegate_http::error::{ApiError, NO_STORE};
use tidegate_http::negotiate::{self, ContentType, Preferences};
use tidegate_http::operation::sql::{many, one, statement_limits};
use tidegate_http::operation::{Access, BoundRequest, stream};
use tidegate_http::report::Context;
use tidegate_http::request_body::IncomingBody;
use tidegate_http::{authenticate, percent, request_body};

const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// Handles `POST /api/v4/sql`. With a database in the path, the statement runs as the default user
/// of that database. Without a database in the path, the body may also define methods.
pub(crate) async fn post<B: IncomingBody>(
    call: Call<'_, B>,
    database: Option<&str>,
) -> Result<Response<Body>, ApiError> {
    let Call {
        app,
        head,
        body,
        subject,
        ..
    } = call;
    let caller = match database {
        Some(database) => authenticate::default_user(app, database).await?,
        None => authenticate::caller(app, &head.headers, &[Scope::Sql, Scope::Admin]).await?,
    };
    subject.login = caller.login().cloned();
    let access = Access::of(app, &caller).await?;
    if ContentType::of(&head.headers) != Some(ContentType::Json) {
        return Err(ApiError::unsupported_media_type(
            "the body must be application/json",
        ));
    }
    let preferences = Preferences::of(&head.headers)?.within(app.limits().statement);
    let reservation = app.memory().reservation(caller.holder());
    let body = request_body::read(body, &head.headers, app.limits(), reservation).await?;
    subject.keep_body(&body.bytes);
    let requests = match request::parse(&body.bytes, statement_limits(app)) {
        Ok(requests) => requests,
        Err(_) if database.is_none() && is_definition(&body.bytes) => {
            let user = authenticate::user(app, &head.headers, Scope::Admin).await?;
            return methods::create(app, &user, &body.bytes).await;
        }
        Err(error) => return Err(error.into()),
    };
    caller.require(&[Scope::Sql])?;
    let options = preferences.options(app.limits());
    let content = match requests {
        Requests::One(request) => {
            let format = negotiate::output_format(request.output_format, &head.headers)?;
            let bound = BoundRequest::new(app, &request, format, &preferences)?;
            let log = || stream::OwnedContext::new(&Context::new(head, subject));
            let permit = access
                .permit(app, &caller, &bound.statement, options)
                .await?;
            let (format, content) = one(app, &caller, bound, permit, log).await?;
            let mut response = response(format, content, &preferences);
            if request.output_format == Some(format) {
                set_file_name(&mut response, format);
            }
            return Ok(response);
        }
        Requests::Many(requests) => {
            access.admit_array()?;
            many(app, &caller, &requests, &preferences, options).await?
        }
    };
    Ok(response(OutputFormat::Json, content, &preferences))
}

/// Adds a file name to a response, unless its format is JSON (RFC 6266).
fn set_file_name(response: &mut Response<Body>, format: OutputFormat) {
    if format == OutputFormat::Json {
        return;
    }
    let value = format!("attachment; filename=\"data.{}\"", format.extension());
    if let Ok(value) = HeaderValue::try_from(value) {
        response.headers_mut().insert(CONTENT_DISPOSITION, value);
    }
}

/// Handles `GET /api/v4/sql/schema[?schema=name]` and `GET /api/v4/sql/schema/{schema}`.
pub(crate) async fn schemas<B>(
    call: Call<'_, B>,
    schema: Option<&str>,
) -> Result<Response<Body>, ApiError> {
    let Call {
        app, head, subject, ..
    } = call;
    let needed = [Scope::Read, Scope::Sql];
    let caller = authenticate::caller(app, &head.headers, &needed).await?;
    subject.login = caller.login().cloned();
    let preferences = Preferences::of(&head.headers)?;
    let options = preferences.options(app.limits());
    let failed = |error| ApiError::from_catalog(error, caller.anonymous);
    let login = caller
        .login()
        .ok_or_else(|| ApiError::internal("only users request schemas"))?;
    let named = match schema {
        Some(schema) => Some(schema.to_owned()),
        None => query_member(head.uri.query().unwrap_or_default(), "schema")?,
    };
    let catalogs = app.catalogs();
    let document = if let Some(name) = named {
        let found = catalogs.schema(login, &name, &options).await;
        let missing = || ApiError::not_found("there is no such schema, or no right to use it");
        let schema = found.map_err(failed)?.ok_or_else(missing)?;
        tidegate_catalog::describe(&schema)
    } else {
        let schemas = catalogs.schemas(login, &options).await.map_err(failed)?;
        tidegate_catalog::describe_all(&schemas)
    };
    Ok(json(document, NO_STORE))
}

fn query_member(query: &str, name: &str) -> Result<Option<String>, ApiError> {
    let pairs = percent::form(query)
        .ok_or_else(|| ApiError::input("the query of the address cannot be decoded"))?;
    Ok(pairs
        .into_iter()
        .find(|(known, value)| known == name && !value.is_empty())
        .map(|(_, v)| v))
}

/// A response with status 200 and the media type of a format.
pub(super) fn response(
    format: OutputFormat,
    content: Content,
    preferences: &Preferences,
) -> Response<Body> {
    let mut response = Response::new(Body::from(content));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(format.media_type()));
    if let Some(applied) = preferences.applied() {
        // The conversion does not fail, because only values that are valid in a header are accepted
        // as preferences.
        if let Ok(applied) = HeaderValue::try_from(applied) {
            headers.insert(PREFERENCE_APPLIED, applied);
        }
    }
    response
}
