//! Parses the JSON of a body into definitions and patches.

use serde_json::value::RawValue;
use tidegate_sql::request::RequestError;
use tidegate_sql::{InputError, Statement};
use tidegate_values::OutputFormat;
use tidegate_values::json::JsonKind;

use super::{Definition, Limits, MemberChange, Patch, StringMap};
use crate::error::{Error, Result};
use crate::json::{self, invalid};
use crate::name::MethodName;

const MEMBERS: &str = "expected `method`, `q`, `type_hints`, `type_formats` and `output_format`";

/// Whether a body defines methods: its object, or the first object of its array, has the member
/// `method`. Any other body is an SQL request.
pub fn is_definition(body: &[u8]) -> bool {
    let Ok(document) = json::document(body) else {
        return false;
    };
    let first = json::elements(document).map_or(Some(document), |all| all.first().copied());
    let members = first.and_then(|raw| json::members(raw, &|name| name.to_owned()).ok());
    members.is_some_and(|members| members.iter().any(|(name, _)| name == "method"))
}

pub(super) fn definitions(body: &[u8], limits: Limits) -> Result<Vec<Definition>> {
    let document = json::document(body)?;
    let Some(elements) = json::elements(document) else {
        only_objects(document, "an object or an array of objects")?;
        return Ok(vec![definition(
            document,
            DefinitionPosition(None),
            limits,
        )?]);
    };
    if elements.is_empty() || elements.len() > limits.definitions {
        let (found, most) = (elements.len(), limits.definitions);
        let problem = format!("an array of {found} definitions, expected 1 to {most}");
        return Err(RequestError::InvalidBody { problem }.into());
    }
    let elements = elements.into_iter().enumerate();
    elements
        .map(|(index, raw)| definition(raw, DefinitionPosition(Some(index)), limits))
        .collect()
}

pub(super) fn patch(body: &[u8], limits: Limits) -> Result<Patch> {
    let document = json::document(body)?;
    only_objects(document, "an object")?;
    let patch = read(document, DefinitionPosition(None), limits)?;
    for (member, raw) in [("method", &patch.null_name), ("q", &patch.null_q)] {
        if *raw {
            return Err(invalid(member.to_owned(), "null, expected a string").into());
        }
    }
    Ok(patch.patch)
}

fn only_objects(document: &RawValue, expected: &str) -> Result<(), RequestError> {
    match json::kind(document) {
        JsonKind::Object => Ok(()),
        found => Err(RequestError::InvalidBody {
            problem: format!("{found}, expected {expected}"),
        }),
    }
}

fn definition(raw: &RawValue, place: DefinitionPosition, limits: Limits) -> Result<Definition> {
    let Patch {
        name,
        q,
        type_hints,
        type_formats,
        output_format,
    } = read(raw, place, limits)?.patch;
    let missing = |member, expected: &str| {
        invalid(
            place.member(member),
            format!("missing, expected {expected}"),
        )
    };
    Ok(Definition {
        name: name.ok_or_else(|| missing("method", "the method's name"))?,
        q: q.ok_or_else(|| missing("q", "an SQL statement"))?,
        type_hints: type_hints.given().unwrap_or_default(),
        type_formats: type_formats.given().unwrap_or_default(),
        output_format: output_format.given(),
    })
}

/// A parsed object, and whether its members `method` and `q` are null. In a patch, null is an error
/// for these members.
#[derive(Default)]
struct Read {
    patch: Patch,
    null_name: bool,
    null_q: bool,
}

fn read(raw: &RawValue, place: DefinitionPosition, limits: Limits) -> Result<Read> {
    let mut read = Read::default();
    for (name, raw) in json::members(raw, &|member| place.member(member))? {
        let null = raw.get() == "null";
        let member = || place.member(&name);
        match &*name {
            "method" if null => read.null_name = true,
            "q" if null => read.null_q = true,
            "method" => {
                let text = json::text(raw, member)?;
                let name = MethodName::parse(&text);
                let name = name.map_err(|problem| invalid(member(), problem.to_string()))?;
                // JSON-RPC reserves names that begin with `rpc.` (JSON-RPC 2.0, section 4).
                if name.as_str().starts_with("rpc.") {
                    let problem = "a name that begins with `rpc.`, which JSON-RPC keeps for itself";
                    return Err(invalid(member(), problem).into());
                }
                read.patch.name = Some(name);
            }
            "q" => read.patch.q = Some(statement(raw, place, limits)?),
            "type_hints" => read.patch.type_hints = change(null, || texts(raw, &member()))?,
            "type_formats" => read.patch.type_formats = change(null, || texts(raw, &member()))?,
            "output_format" => {
                read.patch.output_format = change(null, || output_format(raw, member))?;
            }
            "params" => {
                let problem = "values come with a call; a definition has none";
                return Err(invalid(member(), problem).into());
            }
            _ => return Err(invalid(member(), format!("unknown, {MEMBERS}")).into()),
        }
    }
    Ok(read)
}

impl<T> MemberChange<T> {
    fn given(self) -> Option<T> {
        match self {
            Self::Set(value) => Some(value),
            Self::Keep | Self::Clear => None,
        }
    }
}

fn change<T>(
    null: bool,
    value: impl FnOnce() -> Result<T, InputError>,
) -> Result<MemberChange<T>, InputError> {
    if null {
        return Ok(MemberChange::Clear);
    }
    value().map(MemberChange::Set)
}

fn statement(raw: &RawValue, place: DefinitionPosition, limits: Limits) -> Result<String> {
    let member = || place.member("q");
    let q = json::text(raw, member)?;
    let (length, most) = (q.len(), limits.statement);
    if length > most {
        let problem = format!("{length} bytes of SQL, at most {most} are accepted");
        return Err(invalid(member(), problem).into());
    }
    match Statement::parse(&q) {
        Ok(_) => Ok(q),
        Err(source) => Err(Error::Statement {
            index: place.0,
            source,
        }),
    }
}

fn output_format(raw: &RawValue, member: impl Fn() -> String) -> Result<OutputFormat, InputError> {
    let given = json::text(raw, &member)?;
    match OutputFormat::parse(&given) {
        Some(OutputFormat::GeoJson) | None => {
            let problem = format!("`{given}` is unknown, expected `json`, `csv` or `ndjson`");
            Err(invalid(member(), problem))
        }
        Some(format) => Ok(format),
    }
}

/// Reads the members of an object. All values must be strings.
fn texts(raw: &RawValue, member: &str) -> Result<StringMap, InputError> {
    let place = |name: &str| match name {
        "" => member.to_owned(),
        name => format!("{member}.{name}"),
    };
    let found = json::kind(raw);
    if found != JsonKind::Object {
        let problem = format!("{found}, expected an object of strings");
        return Err(invalid(member.to_owned(), problem));
    }
    let entries = json::members(raw, &place)?.into_iter();
    entries
        .map(|(name, raw)| {
            if name.contains('\0') {
                let problem = "a name with the character U+0000, which PostgreSQL cannot store";
                return Err(invalid(member.to_owned(), problem));
            }
            let text = json::text(raw, || place(&name))?;
            Ok((name.into_owned(), text))
        })
        .collect()
}

/// The position of a definition in the body: the index in the array, or `None` if the body is the
/// definition.
#[derive(Clone, Copy)]
struct DefinitionPosition(Option<usize>);

impl DefinitionPosition {
    fn member(self, name: &str) -> String {
        match (self.0, name) {
            (None, _) => name.to_owned(),
            (Some(index), "") => format!("[{index}]"),
            (Some(index), _) => format!("[{index}].{name}"),
        }
    }
}
