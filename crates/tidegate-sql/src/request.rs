//! Parses the body of a request to the SQL endpoint.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::value::RawValue;
use tidegate_values::OutputFormat;
use tidegate_values::json::{self, JsonKind, Members};

use crate::error::InputError;
use crate::statement::Params;

const MEMBERS: &str = "`q`, `params`, `type_hints`, `type_formats`, `output_format`, `id`, \
                       `base64`, `srs`, `geo_format`, `convert_types`, `lifetime` and `format`";

/// The decoder of base64url (RFC 4648, section 5), with or without padding.
const BASE64URL: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The requests of one body.
#[derive(Clone, Debug)]
pub enum Requests<'a> {
    /// The body is an object: one request.
    One(SqlRequest<'a>),
    /// The body is an array of requests, which run in one transaction. The response is an array.
    Many(Vec<SqlRequest<'a>>),
}

/// A request to run one statement, borrowed from the body where possible.
#[derive(Clone, Debug)]
pub struct SqlRequest<'a> {
    /// The statement's text, decoded if the request has it in base64.
    pub q: Cow<'a, str>,
    /// The values of the placeholders.
    pub params: Params<'a>,
    /// The names of types, by placeholder or column.
    pub type_hints: StringMembers<'a>,
    /// Format specifiers by placeholder or column.
    pub type_formats: StringMembers<'a>,
    /// The format of the result, if the request names one.
    pub output_format: Option<OutputFormat>,
    /// A value that is returned in the response unchanged.
    pub id: Option<&'a RawValue>,
}

/// The members of an object whose values are strings. The names are distinct.
pub type StringMembers<'a> = Vec<(Cow<'a, str>, Cow<'a, str>)>;

/// Limits on the size of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum size of a statement's text, in bytes.
    pub statement: usize,
    /// The maximum number of requests in an array.
    pub requests: usize,
    /// The maximum number of parameter sets in all requests of a body together.
    pub parameter_sets: usize,
    /// The maximum depth of nested arrays and objects.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            statement: 1 << 20,
            requests: 1_000,
            parameter_sets: 100_000,
            depth: 128,
        }
    }
}

/// The reason why a body is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The body is not JSON (RFC 8259), or is nested too deeply.
    #[error("the body is not valid JSON: {problem} at line {line}, column {column}")]
    InvalidJson {
        /// The problem: the error of the JSON parser, or nesting that is too deep.
        problem: String,
        /// The line of the error, from 1.
        line: usize,
        /// The column of the error in bytes, from 1.
        column: usize,
    },
    /// The body is JSON of the wrong form: it is neither an object nor an array, or it is an array
    /// that is empty or has too many elements, or it is a single object with U+0000 in the name of
    /// a member.
    #[error("the body is {problem}")]
    InvalidBody {
        /// The problem with the body.
        problem: String,
    },
    /// The body is JSON, but a member is invalid.
    #[error(transparent)]
    Input(#[from] InputError),
}

/// Parses the body of a request.
///
/// # Errors
///
/// [`RequestError::InvalidJson`], [`RequestError::InvalidBody`], or an [`InputError`] that names
/// the member. In an array, the name begins with the index of the request, as in `[1].q`.
pub fn parse(body: &[u8], limits: Limits) -> Result<Requests<'_>, RequestError> {
    let text = checked_text(body, limits.depth)?;
    let mut sets = limits.parameter_sets;
    let mut read = |text, place| {
        let request = read(text, place, limits.statement)?;
        sets = sets.checked_sub(request.params.count()).ok_or_else(|| {
            let most = limits.parameter_sets;
            place.error(
                "params",
                format!("more than {most} parameter sets in one body"),
            )
        })?;
        Ok(request)
    };
    match JsonKind::of(text) {
        JsonKind::Object => read(text, RequestPosition(None)).map(Requests::One),
        JsonKind::Array => {
            let elements = json::elements(text).map_err(|error| invalid_json(&error))?;
            if elements.is_empty() || elements.len() > limits.requests {
                let (found, most) = (elements.len(), limits.requests);
                let problem = format!("an array of {found} requests, expected 1 to {most}");
                return Err(RequestError::InvalidBody { problem });
            }
            let requests = elements.into_iter().enumerate();
            let requests =
                requests.map(|(index, raw)| read(raw.get(), RequestPosition(Some(index))));
            requests.collect::<Result<_, _>>().map(Requests::Many)
        }
        kind => {
            let checked = serde_json::from_str::<&RawValue>(text);
            checked.map_err(|error| invalid_json(&error))?;
            Err(RequestError::InvalidBody {
                problem: format!("{kind}, expected an object or an array of objects"),
            })
        }
    }
}

/// Checks that the body is UTF-8 and is not nested too deeply. The parser checks later whether it
/// is valid JSON.
fn checked_text(body: &[u8], depth: usize) -> Result<&str, RequestError> {
    let at = |offset: usize, problem: String| {
        let before = &body[..offset];
        let line_start = memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1);
        RequestError::InvalidJson {
            problem,
            line: memchr::memchr_iter(b'\n', before).count() + 1,
            column: offset - line_start + 1,
        }
    };
    let text = str::from_utf8(body)
        .map_err(|error| at(error.valid_up_to(), "a byte that is not UTF-8".to_owned()))?;
    if let Some(offset) = json::deeper_than(depth, text) {
        return Err(at(offset, format!("nesting of more than {depth} levels")));
    }
    Ok(text)
}

fn invalid_json(error: &serde_json::Error) -> RequestError {
    RequestError::InvalidJson {
        problem: json::problem(error),
        line: error.line(),
        column: error.column().max(1),
    }
}

/// The position of a request in the body: the index in the array, or `None` if the body is the
/// request.
#[derive(Clone, Copy)]
struct RequestPosition(Option<usize>);

impl RequestPosition {
    fn member(self, name: &str) -> String {
        match self.0 {
            Some(_) => format!("{self}.{name}"),
            None => name.to_owned(),
        }
    }

    fn error(self, member: &str, problem: impl Into<String>) -> InputError {
        InputError::InvalidField {
            field: self.member(member),
            problem: problem.into(),
        }
    }
}

impl fmt::Display for RequestPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(index) => write!(f, "[{index}]"),
            None => Ok(()),
        }
    }
}

fn read(
    text: &str,
    place: RequestPosition,
    longest: usize,
) -> Result<SqlRequest<'_>, RequestError> {
    let invalid = |problem| InputError::InvalidField {
        field: place.to_string(),
        problem,
    };
    let kind = JsonKind::of(text);
    if kind != JsonKind::Object {
        return Err(invalid(format!("{kind}, expected an object")).into());
    }
    let members = json::members(text).map_err(|error| {
        let problem = json::problem(&error);
        match place.0 {
            Some(_) => invalid(problem).into(),
            // The text is valid JSON, but the name of a member contains U+0000.
            None if error.is_data() => RequestError::InvalidBody { problem },
            None => invalid_json(&error),
        }
    })?;
    if let Some(name) = json::repeated(&members) {
        return Err(place.error(name, "given twice").into());
    }
    Ok(request(&members, place, longest)?)
}

fn request<'a>(
    members: &Members<'a>,
    place: RequestPosition,
    longest: usize,
) -> Result<SqlRequest<'a>, InputError> {
    let mut request = SqlRequest {
        q: Cow::Borrowed(""),
        params: Params::default(),
        type_hints: Vec::new(),
        type_formats: Vec::new(),
        output_format: None,
        id: None,
    };
    let (mut q, mut encoded) = (None, false);
    for (name, raw) in members {
        let name = &**name;
        match name {
            "q" => q = Some(text(raw, || place.member(name))?),
            "id" => request.id = Some(raw),
            // Clients of similar services send these members, so they are ignored and not refused.
            "srs" | "geo_format" | "convert_types" | "lifetime" | "format" => {}
            _ if raw.get() == "null" && MEMBERS.contains(&format!("`{name}`")) => {}
            "params" => request.params = Params::read(raw, &place.member(name))?,
            "type_hints" => request.type_hints = texts(raw, &place.member(name))?,
            "type_formats" => request.type_formats = texts(raw, &place.member(name))?,
            "output_format" => {
                let given = text(raw, || place.member(name))?;
                let expected = "expected `json`, `csv`, `ndjson` or `geojson`";
                let format = OutputFormat::parse(&given);
                let unknown = || place.error(name, format!("`{given}` is unknown, {expected}"));
                request.output_format = Some(format.ok_or_else(unknown)?);
            }
            "base64" => {
                encoded = serde_json::from_str(raw.get()).map_err(|_| {
                    let kind = JsonKind::of(raw.get());
                    place.error(name, format!("{kind}, expected a boolean"))
                })?;
            }
            _ => return Err(place.error(name, format!("unknown, expected {MEMBERS}"))),
        }
    }
    let q = q.ok_or_else(|| place.error("q", "missing, expected an SQL statement"))?;
    request.q = if encoded {
        decode(&q).map_err(|problem| place.error("q", problem))?
    } else {
        q
    };
    if request.q.len() > longest {
        let problem = format!(
            "{} bytes of SQL, at most {longest} are accepted",
            request.q.len()
        );
        return Err(place.error("q", problem));
    }
    Ok(request)
}

fn decode(q: &str) -> Result<Cow<'static, str>, &'static str> {
    let bytes = BASE64URL
        .decode(q)
        .map_err(|_| "not base64url, as `base64` says that it is")?;
    String::from_utf8(bytes)
        .map(Cow::Owned)
        .map_err(|_| "not UTF-8 behind its base64url")
}

/// The text of a member that must be a string.
fn text(raw: &RawValue, member: impl Fn() -> String) -> Result<Cow<'_, str>, InputError> {
    let invalid = |problem| InputError::InvalidField {
        field: member(),
        problem,
    };
    match JsonKind::of(raw.get()) {
        JsonKind::String => json::string(raw.get()).map_err(|problem| invalid(problem.to_owned())),
        kind => Err(invalid(format!("{kind}, expected a string"))),
    }
}

/// The members of an object whose values must be strings.
fn texts<'a>(raw: &'a RawValue, member: &str) -> Result<StringMembers<'a>, InputError> {
    let invalid = |member: &str, problem: String| InputError::InvalidField {
        field: member.to_owned(),
        problem,
    };
    let kind = JsonKind::of(raw.get());
    if kind != JsonKind::Object {
        return Err(invalid(
            member,
            format!("{kind}, expected an object of strings"),
        ));
    }
    let members =
        json::members(raw.get()).map_err(|error| invalid(member, json::problem(&error)))?;
    if let Some(name) = json::repeated(&members) {
        return Err(invalid(
            &format!("{member}.{name}"),
            "given twice".to_owned(),
        ));
    }
    let entries = members.into_iter();
    entries
        .map(|(name, raw)| {
            let value = text(raw, || format!("{member}.{name}"))?;
            Ok((name, value))
        })
        .collect()
}
