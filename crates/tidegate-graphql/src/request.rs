//! A GraphQL request (GraphQL over HTTP, section 4, "Request").

use std::borrow::Cow;

use serde_json::value::RawValue;
use tidegate_values::json::{self, JsonKind};

use crate::error::Error;

/// A GraphQL request: a document, the name of an operation, and the values of variables.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The text of the document.
    pub query: Cow<'a, str>,
    /// The name of the operation. It is required if the document has several operations.
    pub operation_name: Option<Cow<'a, str>>,
    /// The values of the variables, as a JSON object; `None` if they are absent or null.
    pub variables: Option<&'a RawValue>,
}

/// The requests of a body.
#[derive(Debug)]
pub enum Requests<'a> {
    /// The body is a single request.
    One(Request<'a>),
    /// The body is an array of requests. An element that is not a valid request is an error.
    Many(Vec<Result<Request<'a>, Error>>),
}

/// Parses a JSON body. An array may have at most `most` requests.
///
/// # Errors
///
/// `BAD_USER_INPUT` if the body is not JSON, if it is neither an array nor a valid request, or if
/// it is an array that is empty or too long. An invalid request in an array is not an error of the
/// body.
pub fn parse(body: &[u8], most: usize) -> Result<Requests<'_>, Error> {
    let unreadable = |error: serde_json::Error| {
        Error::input(format!(
            "the body cannot be read as JSON: {}",
            json::problem(&error)
        ))
    };
    let text = std::str::from_utf8(body)
        .map_err(|_| Error::input("the body cannot be read as JSON: it is not UTF-8"))?;
    if JsonKind::of(text) == JsonKind::Object {
        // Parsing the members validates the whole JSON text.
        let members = json::members(text).map_err(unreadable)?;
        return Request::of(members).map(Requests::One);
    }
    let document: &RawValue = serde_json::from_str(text).map_err(unreadable)?;
    let text = document.get();
    if JsonKind::of(text) != JsonKind::Array {
        return Request::parse(text).map(Requests::One);
    }
    let elements = json::elements(text).map_err(unreadable)?;
    if elements.is_empty() || elements.len() > most {
        let found = elements.len();
        return Err(Error::input(format!(
            "an array holds 1 to {most} requests, not {found}"
        )));
    }
    let requests = elements
        .into_iter()
        .map(|element| Request::parse(element.get()));
    Ok(Requests::Many(requests.collect()))
}

impl<'a> Request<'a> {
    /// Parses one request. Unknown members are ignored.
    ///
    /// # Errors
    ///
    /// `BAD_USER_INPUT` if the text is not an object, or if a member is missing or invalid. The
    /// error names the member.
    pub fn parse(text: &'a str) -> Result<Self, Error> {
        if JsonKind::of(text) != JsonKind::Object {
            let kind = JsonKind::of(text);
            return Err(Error::input(format!("a request is an object, not {kind}")));
        }
        let members = json::members(text).map_err(|error| Error::input(json::problem(&error)))?;
        Self::of(members)
    }

    fn of(members: json::Members<'a>) -> Result<Self, Error> {
        let (mut query, mut operation_name, mut variables) = (None, None, None);
        for (name, value) in members {
            let kind = JsonKind::of(value.get());
            match (&*name, kind) {
                ("query" | "operationName" | "variables" | "extensions", JsonKind::Null)
                | ("extensions", JsonKind::Object) => {}
                ("query", JsonKind::String) => query = Some(document(value)?),
                ("operationName", JsonKind::String) => {
                    operation_name = Some(string("operationName", value)?);
                }
                ("variables", JsonKind::Object) => variables = Some(value),
                ("query" | "operationName", _) => return Err(wrong(&name, kind, "a string")),
                ("variables" | "extensions", _) => return Err(wrong(&name, kind, "an object")),
                _ => {}
            }
        }
        Ok(Self {
            query: query.ok_or_else(|| Error::input("`query` is missing"))?,
            operation_name,
            variables,
        })
    }
}

/// The text of the document. Characters that PostgreSQL cannot store are accepted here, because the
/// GraphQL parser reports them with their location.
fn document(value: &RawValue) -> Result<Cow<'_, str>, Error> {
    string("query", value).or_else(|error| {
        let text = serde_json::from_str(value.get());
        text.map(Cow::Owned).map_err(|_| error)
    })
}

fn string<'a>(name: &str, value: &'a RawValue) -> Result<Cow<'a, str>, Error> {
    json::string(value.get()).map_err(|problem| Error::input(format!("`{name}` is {problem}")))
}

fn wrong(name: &str, found: JsonKind, expected: &str) -> Error {
    Error::input(format!("`{name}` is {found}, expected {expected}"))
}
