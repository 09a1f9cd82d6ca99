//! The endpoints of methods: they define, list, change and drop methods, and describe them to
//! client programs.

use std::fmt::Write as _;
use std::sync::Arc;

use http::header::{CONTENT_TYPE, LOCATION};
use http::request::Parts;
use http::{HeaderValue, Method as Verb, Response, StatusCode};
use tidegate_methods::method::to_json_array;
use tidegate_methods::{
    Caller, Definition, Limits, Method, MethodName, Patch, openrpc, typescript,
};
use tidegate_oauth::Scope;
use tidegate_sql::DatabaseName;

use tidegate_http::app::App;
use tidegate_http::authenticate::{self, User};
use tidegate_http::body::Body;
use tidegate_http::call::{Call, json, no_content};
use tidegate_http::error::{ApiError, NO_STORE};
use tidegate_http::negotiate::ContentType;
use tidegate_http::report::Subject;
use tidegate_http::request_body::{self, IncomingBody, RequestBody};

/// Handles `GET /api/v4/methods`, which lists the methods by name, and `POST`, which defines new
/// methods.
pub(crate) async fn collection<B: IncomingBody>(
    call: Call<'_, B>,
) -> Result<Response<Body>, ApiError> {
    let needed = needed_scope(&call.head.method);
    let user = user(call.app, call.head, call.subject, needed).await?;
    if call.head.method == Verb::POST {
        let body = read(call.app, call.head, call.body, &user).await?;
        return create(call.app, &user, &body.bytes).await;
    }
    let methods = call.app.methods().list(&user.login.database).await?;
    Ok(json(to_json_array(&methods), NO_STORE))
}

/// Handles `/api/v4/methods/a,b`, which shows, changes or drops the methods in the path.
pub(crate) async fn members<B: IncomingBody>(
    call: Call<'_, B>,
    names: &str,
) -> Result<Response<Body>, ApiError> {
    let Call {
        app, head, body, ..
    } = call;
    let user = user(app, head, call.subject, needed_scope(&head.method)).await?;
    let names: Vec<&str> = names.split(',').collect();
    let (methods, tenant) = (app.methods(), &user.login.database);
    match head.method {
        Verb::PATCH => {
            let actor = writer(&user)?;
            let body = read(app, head, body, &user).await?;
            let patch = Patch::parse(&body.bytes, limits(app))?;
            let names = methods.patch(tenant, actor, &names, &patch).await?;
            Ok(links(StatusCode::SEE_OTHER, &names))
        }
        Verb::DELETE => {
            methods.remove(tenant, writer(&user)?, &names).await?;
            Ok(no_content())
        }
        _ => Ok(json(show(&methods.find(tenant, &names).await?), NO_STORE)),
    }
}

/// Defines the methods in a body, for the endpoints `/methods` and `/sql`.
///
/// # Errors
///
/// 403 if the user may not define methods. 400 or 403 for an invalid definition, 409 for a name in
/// use.
pub(crate) async fn create(
    app: &App,
    user: &User,
    body: &[u8],
) -> Result<Response<Body>, ApiError> {
    let creator = writer(user)?;
    let definitions = Definition::parse(body, limits(app))?;
    let created = app
        .methods()
        .create(&user.login.database, creator, definitions);
    Ok(links(StatusCode::CREATED, &created.await?))
}

/// Handles `GET /api/v4/interfaces`: the methods as a TypeScript interface.
pub(crate) async fn interfaces<B>(call: Call<'_, B>) -> Result<Response<Body>, ApiError> {
    let tenant = tenant(call.app, call.head, call.subject).await?;
    let methods = call.app.methods().list(&tenant).await?;
    let mut response = json(typescript::interfaces(&methods), NO_STORE);
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, text);
    Ok(response)
}

/// Handles `GET /api/v4/openrpc.json`: the methods as an `OpenRPC` document.
pub(crate) async fn openrpc<B>(call: Call<'_, B>) -> Result<Response<Body>, ApiError> {
    let tenant = tenant(call.app, call.head, call.subject).await?;
    let methods = call.app.methods().list(&tenant).await?;
    let info = openrpc::Info {
        title: tenant.as_str(),
        version: "4",
        url: Some("/api/v4/call"),
    };
    Ok(json(openrpc::document(&info, &methods), NO_STORE))
}

/// The scope that a request needs. To read methods, a caller needs `methods`. To change them, it
/// needs `admin`, because a caller who can define methods can run any SQL.
fn needed_scope(verb: &Verb) -> Scope {
    if verb == Verb::GET || verb == Verb::HEAD {
        Scope::Methods
    } else {
        Scope::Admin
    }
}

async fn user(
    app: &App,
    head: &Parts,
    subject: &mut Subject,
    needed: Scope,
) -> Result<User, ApiError> {
    let user = authenticate::user(app, &head.headers, needed).await?;
    subject.login = Some(user.login.clone());
    Ok(user)
}

async fn tenant(app: &App, head: &Parts, subject: &mut Subject) -> Result<DatabaseName, ApiError> {
    let user = user(app, head, subject, Scope::Methods).await?;
    Ok(user.login.database)
}

/// The caller, if it may define methods.
///
/// # Errors
///
/// 403 for the default user, which anonymous callers share, and for members of groups.
fn writer(user: &User) -> Result<Caller<'_>, ApiError> {
    user.require_own_role()?;
    if user.claims.shared {
        return Err(ApiError::insufficient_privileges(
            "the default user, which anonymous callers share, cannot define or change methods",
        ));
    }
    Ok(Caller {
        user: &user.claims.user,
        owner: user.claims.owner,
    })
}

fn limits(app: &App) -> Limits {
    Limits {
        statement: app.limits().sql_text,
        definitions: app.limits().batch,
    }
}

async fn read<B: IncomingBody>(
    app: &App,
    head: &Parts,
    body: B,
    user: &User,
) -> Result<RequestBody, ApiError> {
    if ContentType::of(&head.headers) != Some(ContentType::Json) {
        return Err(ApiError::unsupported_media_type(
            "the body must be application/json",
        ));
    }
    let holder = authenticate::holder(Some(&user.login));
    let reservation = app.memory().reservation(holder);
    request_body::read(body, &head.headers, app.limits(), reservation).await
}

/// The JSON of methods: an object for one method, an array for several methods.
fn show(methods: &[Arc<Method>]) -> String {
    match methods {
        [method] => method.to_json(),
        several => to_json_array(several),
    }
}

/// A response with the URLs of methods, in the header `Location` and in the body. The names of
/// methods need no percent-encoding.
fn links(status: StatusCode, names: &[MethodName]) -> Response<Body> {
    let (mut location, mut body) = (String::from("/api/v4/methods/"), String::from("["));
    for (index, name) in names.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        // Writing to a string cannot fail.
        let _ = write!(location, "{comma}{name}");
        let _ = write!(
            body,
            r#"{comma}{{"_links":{{"self":"/api/v4/methods/{name}"}}}}"#
        );
    }
    body.push(']');
    let mut response = json(body, NO_STORE);
    *response.status_mut() = status;
    if let Ok(location) = HeaderValue::try_from(location) {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}
