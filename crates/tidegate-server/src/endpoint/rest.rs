//! Conventions of the REST endpoints: access, bodies, and links in responses.

mod members;

use http::header::LOCATION;
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use serde::Serialize;
use serde_json::{Map, Value};
use tidegate_identity::Timestamp;
use tidegate_oauth::{Claims, Scope};

use tidegate_http::app::App;
use tidegate_http::authenticate::{self, User};
use tidegate_http::body::Body;
use tidegate_http::call::{Call, json};
use tidegate_http::error::{ApiError, NO_STORE};
use tidegate_http::forwarded::{self, Peer};
use tidegate_http::negotiate::ContentType;
use tidegate_http::report::Subject;
use tidegate_http::request_body::IncomingBody;
use tidegate_http::{percent, request_body};

pub(crate) use members::{ObjectMembers, each};

/// The links of an object in a response: the object's own URL.
#[derive(Serialize)]
pub(crate) struct Links {
    #[serde(rename = "self")]
    itself: String,
}

impl Links {
    /// The links of the object `name` in the collection at `base`. `name` is written unchanged, so
    /// it must not need percent-encoding.
    pub(crate) fn to(base: &str, name: &str) -> Self {
        Self {
            itself: format!("{base}/{name}"),
        }
    }
}

#[derive(Serialize)]
struct Linked {
    _links: Links,
}

/// The objects in a body, and whether they were in an array.
pub(crate) struct Objects {
    pub(crate) objects: Vec<Map<String, Value>>,
    pub(crate) listed: bool,
}

/// Authenticates the user by its token, which must have the scope `needed`. Records the login for
/// the log.
pub(crate) async fn user<B>(call: &mut Call<'_, B>, needed: Scope) -> Result<User, ApiError> {
    let user = authenticate::user(call.app, &call.head.headers, needed).await?;
    call.subject.login = Some(user.login.clone());
    Ok(user)
}

/// Converts an error about one of several objects. If the object was not found, the text names it:
/// its `kind`, such as client or user, and its `name`.
pub(super) fn naming(error: impl Into<tidegate_oauth::Error>, kind: &str, name: &str) -> ApiError {
    match error.into() {
        tidegate_oauth::Error::Identity(tidegate_identity::Error::NotFound(_)) => {
            ApiError::not_found(format!("there is no {kind} {name}"))
        }
        error => ApiError::from_accounts(error),
    }
}

/// Converts an error about the object `name`, which is one of the `names` in a path. If the path
/// has several names, the text of the error contains `name`.
pub(super) fn naming_one(
    error: impl Into<tidegate_oauth::Error>,
    kind: &str,
    (name, names): (&str, &[&str]),
) -> ApiError {
    let failure = naming(error, kind, name);
    if names.len() < 2 || failure.status == StatusCode::NOT_FOUND {
        return failure;
    }
    let message = format!("{kind} {name}: {}", failure.message).into();
    ApiError { message, ..failure }
}

/// Refuses every caller who is not the tenant's owner.
pub(crate) fn require_owner(claims: &Claims) -> Result<(), ApiError> {
    if claims.owner {
        Ok(())
    } else {
        Err(ApiError::insufficient_privileges(
            "only the owner of the database may do this",
        ))
    }
}

/// Refuses unencrypted requests from other machines, because the request or its response contains
/// passwords or secrets.
pub(crate) fn require_encrypted(app: &App, peer: Peer, head: &Parts) -> Result<(), ApiError> {
    let trusted = app.trusted_proxies();
    if app.insecure_http() || forwarded::is_private(peer, &head.headers, trusted) {
        Ok(())
    } else {
        Err(ApiError::input("credentials are taken over HTTPS only"))
    }
}

/// Reads a body with one object or an array of objects.
///
/// # Errors
///
/// 415 if `Content-Type` is not JSON. 400 if the body is not valid JSON or has another form, or if
/// the array is empty or too long. Also the errors of [`request_body::read`].
pub(crate) async fn objects<B: IncomingBody>(
    app: &App,
    head: &Parts,
    body: B,
    subject: &Subject,
) -> Result<Objects, ApiError> {
    if ContentType::of(&head.headers) != Some(ContentType::Json) {
        return Err(ApiError::unsupported_media_type(
            "the body must be application/json",
        ));
    }
    let reservation = app
        .memory()
        .reservation(authenticate::holder(subject.login.as_ref()));
    let body = request_body::read(body, &head.headers, app.limits(), reservation).await?;
    let value: Value = serde_json::from_slice(&body.bytes)
        .map_err(|error| ApiError::invalid_json(format!("the body is not JSON: {error}")))?;
    let most = app.limits().batch;
    match value {
        Value::Object(object) => Ok(Objects {
            objects: vec![object],
            listed: false,
        }),
        Value::Array(items) if items.is_empty() => {
            Err(ApiError::input("the body is an array without an object"))
        }
        Value::Array(items) if items.len() > most => Err(ApiError::input(format!(
            "the body is an array of more than {most} objects"
        ))),
        Value::Array(items) => Ok(Objects {
            objects: items
                .into_iter()
                .enumerate()
                .map(object)
                .collect::<Result<_, _>>()?,
            listed: true,
        }),
        _ => Err(ApiError::input(
            "the body must be an object or an array of objects",
        )),
    }
}

fn object((index, item): (usize, Value)) -> Result<Map<String, Value>, ApiError> {
    match item {
        Value::Object(object) => Ok(object),
        _ => Err(ApiError::input("must be an object").of_request(index)),
    }
}

/// Adds the index of the object to an error, if the objects were in an array.
pub(crate) fn at_index(failure: ApiError, listed: bool, index: usize) -> ApiError {
    if listed {
        failure.of_request(index)
    } else {
        failure
    }
}

/// Reads a body that must be one object.
pub(crate) async fn object_of<B: IncomingBody>(
    app: &App,
    head: &Parts,
    body: B,
    subject: &Subject,
) -> Result<ObjectMembers, ApiError> {
    let mut read = objects(app, head, body, subject).await?;
    match read.objects.pop() {
        Some(object) if !read.listed => Ok(ObjectMembers::new(object)),
        _ => Err(ApiError::input("the body must be an object")),
    }
}

/// The names in a path, separated by commas, without duplicates.
///
/// # Errors
///
/// 400 for an empty name, and for more names than a body may have objects.
pub(crate) fn names<'p>(app: &App, path: &'p str) -> Result<Vec<&'p str>, ApiError> {
    let mut names: Vec<&str> = Vec::new();
    for name in path.split(',') {
        if name.is_empty() {
            return Err(ApiError::input(
                "the path has an empty name between its commas",
            ));
        }
        if !names.contains(&name) {
            names.push(name);
        }
        if names.len() > app.limits().batch {
            return Err(ApiError::input("the path has too many names"));
        }
    }
    Ok(names)
}

/// The parameters in the query of the URL.
///
/// # Errors
///
/// 400 for a query that cannot be decoded, and for a parameter that is not in `known`.
pub(crate) fn query(head: &Parts, known: &[&str]) -> Result<Vec<(String, String)>, ApiError> {
    let pairs = percent::form(head.uri.query().unwrap_or_default())
        .ok_or_else(|| ApiError::input("the query of the address cannot be decoded"))?;
    let unknown = |(name, _): &&(String, String)| !known.contains(&name.as_str());
    match pairs.iter().find(unknown) {
        Some((name, _)) => Err(ApiError::input(format!(
            "`{name}`: unknown parameter; known are {}",
            known.join(", ")
        ))),
        None => Ok(pairs),
    }
}

/// The maximum length in bytes of a `Location` that names objects. There is a maximum, because
/// proxies and clients limit headers. If the list of names is too long, `Location` is the URL of
/// the collection.
const LONGEST_LOCATION: usize = 4 * 1024;

/// A response with the URLs of objects, in the header `Location` and in the body.
pub(crate) fn linked(
    status: StatusCode,
    base: &str,
    names: &[&str],
) -> Result<Response<Body>, ApiError> {
    let links: Vec<_> = names
        .iter()
        .map(|name| Linked {
            _links: Links::to(base, name),
        })
        .collect();
    let location = format!("{base}/{}", names.join(","));
    if location.len() > LONGEST_LOCATION {
        return located(status, base, &links);
    }
    located(status, &location, &links)
}

/// A response with a body and the header `Location`.
pub(crate) fn located(
    status: StatusCode,
    location: &str,
    body: &impl Serialize,
) -> Result<Response<Body>, ApiError> {
    let mut response = shown(body)?;
    *response.status_mut() = status;
    if let Ok(location) = HeaderValue::try_from(location) {
        response.headers_mut().insert(LOCATION, location);
    }
    Ok(response)
}

/// A time as ISO 8601 text in UTC.
pub(crate) fn time(at: Timestamp) -> String {
    let at = jiff::Timestamp::from_millisecond(at.millis());
    at.unwrap_or(jiff::Timestamp::MAX).to_string()
}

/// A response with status 200 and a JSON body.
pub(crate) fn shown(body: &impl Serialize) -> Result<Response<Body>, ApiError> {
    let body = serde_json::to_vec(body).map_err(ApiError::internal)?;
    Ok(json(body, NO_STORE))
}
