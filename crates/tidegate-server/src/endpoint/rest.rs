//! The conventions of the REST endpoints: who may call, what a body is, how an answer points to
//! what it is about.

mod members;

use http::header::LOCATION;
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use serde::Serialize;
use serde_json::{Map, Value};
use tidegate_oauth::Claims;

use tidegate_http::app::App;
use tidegate_http::authenticate::{self, User};
use tidegate_http::body::Body;
use tidegate_http::call::{Call, json};
use tidegate_http::error::{Failure, NO_STORE};
use tidegate_http::forwarded::{self, Peer};
use tidegate_http::negotiate::ContentType;
use tidegate_http::report::Subject;
use tidegate_http::request_body::BodyError;
use tidegate_http::{percent, request_body};

pub(crate) use members::Members;

/// Where something is.
#[derive(Serialize)]
pub(crate) struct Links {
    #[serde(rename = "self")]
    itself: String,
}

impl Links {
    /// The member `name` of the collection at `base`. Names need no encoding.
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

/// What a body holds: objects, and whether they came as an array.
pub(crate) struct Objects {
    pub(crate) objects: Vec<Map<String, Value>>,
    pub(crate) listed: bool,
}

/// The user by its token, noted for the log.
pub(crate) fn user<B>(call: &mut Call<'_, B>) -> Result<User, Failure> {
    let user = authenticate::user(call.app, &call.head.headers)?;
    call.subject.login = Some(user.login.clone());
    Ok(user)
}

/// Says which of several is meant: `kind` is a client or a user.
pub(super) fn about(error: impl Into<tidegate_oauth::Error>, kind: &str, name: &str) -> Failure {
    match error.into() {
        tidegate_oauth::Error::Identity(tidegate_identity::Error::NotFound(_)) => {
            Failure::not_found(format!("there is no {kind} {name}"))
        }
        error => Failure::from_accounts(error),
    }
}

/// Refuses everybody but the tenant's owner.
pub(crate) fn require_owner(claims: &Claims) -> Result<(), Failure> {
    if claims.owner {
        Ok(())
    } else {
        Err(Failure::insufficient_privileges(
            "only the owner of the database may do this",
        ))
    }
}

/// Refuses what others on the way could read: passwords and secrets travel here.
pub(crate) fn require_private(app: &App, peer: Peer, head: &Parts) -> Result<(), Failure> {
    let trusted = app.trusted_proxies();
    if app.insecure_http() || forwarded::is_private(peer, &head.headers, trusted) {
        Ok(())
    } else {
        Err(Failure::input("credentials are taken over HTTPS only"))
    }
}

/// Reads a body of one object or an array of objects.
///
/// # Errors
///
/// 415 unless it is JSON, 400 unless it has that form, those of [`request_body::read`].
pub(crate) async fn objects<B>(
    app: &App,
    head: &Parts,
    body: B,
    subject: &Subject,
) -> Result<Objects, Failure>
where
    B: http_body::Body<Data = bytes::Bytes> + Send + Unpin,
    B::Error: Into<BodyError>,
{
    if ContentType::of(&head.headers) != Some(ContentType::Json) {
        return Err(Failure::unsupported_media_type(
            "the body must be application/json",
        ));
    }
    let share = app
        .memory()
        .share(authenticate::holder(subject.login.as_ref()));
    let body = request_body::read(body, &head.headers, app.limits(), share).await?;
    let value: Value = serde_json::from_slice(&body.bytes)
        .map_err(|error| Failure::invalid_json(format!("the body is not JSON: {error}")))?;
    let most = app.limits().batch;
    match value {
        Value::Object(object) => Ok(Objects {
            objects: vec![object],
            listed: false,
        }),
        Value::Array(items) if items.is_empty() => {
            Err(Failure::input("the body is an array without an object"))
        }
        Value::Array(items) if items.len() > most => Err(Failure::input(format!(
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
        _ => Err(Failure::input(
            "the body must be an object or an array of objects",
        )),
    }
}

fn object((index, item): (usize, Value)) -> Result<Map<String, Value>, Failure> {
    match item {
        Value::Object(object) => Ok(object),
        _ => Err(Failure::input("must be an object").of_request(index)),
    }
}

/// Says which object of an array is meant.
pub(crate) fn placed(failure: Failure, listed: bool, index: usize) -> Failure {
    if listed {
        failure.of_request(index)
    } else {
        failure
    }
}

/// Reads a body of one object.
pub(crate) async fn object_of<B>(
    app: &App,
    head: &Parts,
    body: B,
    subject: &Subject,
) -> Result<Members, Failure>
where
    B: http_body::Body<Data = bytes::Bytes> + Send + Unpin,
    B::Error: Into<BodyError>,
{
    let mut read = objects(app, head, body, subject).await?;
    match read.objects.pop() {
        Some(object) if !read.listed => Ok(Members::new(object)),
        _ => Err(Failure::input("the body must be an object")),
    }
}

/// The names of a path, each once.
///
/// # Errors
///
/// 400 for an empty name, and for more than a body may hold objects.
pub(crate) fn names<'p>(app: &App, path: &'p str) -> Result<Vec<&'p str>, Failure> {
    let mut names: Vec<&str> = Vec::new();
    for name in path.split(',') {
        if name.is_empty() {
            return Err(Failure::input(
                "the path has an empty name between its commas",
            ));
        }
        if !names.contains(&name) {
            names.push(name);
        }
        if names.len() > app.limits().batch {
            return Err(Failure::input("the path has too many names"));
        }
    }
    Ok(names)
}

/// The value of a member of the address' query.
///
/// # Errors
///
/// 400 for a query that cannot be decoded, and for a member that is none of `known`.
pub(crate) fn query(head: &Parts, known: &[&str]) -> Result<Vec<(String, String)>, Failure> {
    let pairs = percent::form(head.uri.query().unwrap_or_default())
        .ok_or_else(|| Failure::input("the query of the address cannot be decoded"))?;
    let unknown = |(name, _): &&(String, String)| !known.contains(&name.as_str());
    match pairs.iter().find(unknown) {
        Some((name, _)) => Err(Failure::input(format!(
            "`{name}`: unknown parameter; known are {}",
            known.join(", ")
        ))),
        None => Ok(pairs),
    }
}

/// An answer that says where things are: in the header, and one by one in the body.
pub(crate) fn linked(
    status: StatusCode,
    base: &str,
    names: &[&str],
) -> Result<Response<Body>, Failure> {
    let links: Vec<_> = names
        .iter()
        .map(|name| Linked {
            _links: Links::to(base, name),
        })
        .collect();
    located(status, &format!("{base}/{}", names.join(",")), &links)
}

/// An answer with a body about what is at `location`.
pub(crate) fn located(
    status: StatusCode,
    location: &str,
    body: &impl Serialize,
) -> Result<Response<Body>, Failure> {
    let mut response = shown(body)?;
    *response.status_mut() = status;
    if let Ok(location) = HeaderValue::try_from(location) {
        response.headers_mut().insert(LOCATION, location);
    }
    Ok(response)
}

/// 200 with what was asked for.
pub(crate) fn shown(body: &impl Serialize) -> Result<Response<Body>, Failure> {
    let body = serde_json::to_vec(body).map_err(Failure::internal)?;
    Ok(json(body, NO_STORE))
}
