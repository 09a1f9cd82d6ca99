//! Responses to calls, with their envelopes and error objects (JSON-RPC 2.0, section 5).

use bytes::BytesMut;
use serde::Serialize;
use serde_json::value::RawValue;
use tidegate_methods::StoreError;
use tidegate_sql::{DatabaseError, ErrorMember, ErrorMembers, InputError};
use tidegate_values::ValueError;

use crate::call::Call;
use crate::error::Error;
use crate::id::Id;

/// The whole response to a message if none of its calls ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    bytes: BytesMut,
    code: i32,
}

impl Reply {
    /// The response to a call that failed before it ran; `None` for a notification.
    pub fn failed(call: &Call<'_>, error: &Error) -> Option<Self> {
        let mut bytes = BytesMut::new();
        write_error(call.id?, error, &mut bytes);
        let (code, _) = code(error);
        Some(Self { bytes, code })
    }

    /// The code of the first error in the response.
    pub const fn code(&self) -> i32 {
        self.code
    }

    /// The JSON text of the response.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The JSON text of the response.
    pub fn into_bytes(self) -> BytesMut {
        self.bytes
    }

    /// The response to an invalid request object. The response has the id null, because the id in
    /// such an object is unreliable.
    pub(crate) fn of(error: &Error) -> Self {
        let mut bytes = BytesMut::new();
        write_error(Id::NULL, error, &mut bytes);
        let (code, _) = code(error);
        Self { bytes, code }
    }

    /// The response to a batch with invalid elements.
    pub(crate) fn refused(elements: &[Result<Call<'_>, Error>]) -> Self {
        let rolled_back = Error::RolledBack { cause: None };
        let mut bytes = BytesMut::new();
        let mut list = List::default();
        for element in elements {
            let (id, error) = match element {
                Ok(Call { id: None, .. }) => continue,
                Ok(Call { id: Some(id), .. }) => (*id, &rolled_back),
                Err(error) => (Id::NULL, error),
            };
            list.separate(&mut bytes);
            write_error(id, error, &mut bytes);
        }
        bytes.extend_from_slice(b"]");
        let code = INVALID_REQUEST;
        Self { bytes, code }
    }
}

/// Writes the opening bracket and the commas of an array. Writes nothing if the array remains
/// empty.
#[derive(Debug, Default)]
pub(crate) struct List {
    begun: bool,
}

impl List {
    /// Appends the bracket or comma before the next element.
    pub(crate) fn separate(&mut self, out: &mut BytesMut) {
        out.extend_from_slice(if self.begun { b"," } else { b"[" });
        self.begun = true;
    }

    /// Whether the array has any element.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun
    }
}

/// Appends the start of the response to a call, up to its result. The caller appends the result and
/// a closing brace.
pub(crate) fn begin_result(id: Id<'_>, out: &mut BytesMut) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.as_json().as_bytes());
    out.extend_from_slice(b",\"result\":");
}

/// Appends the response to a call that failed.
pub(crate) fn write_error(id: Id<'_>, error: &Error, out: &mut BytesMut) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"error\":");
    out.extend_from_slice(error_object(error).as_bytes());
    out.extend_from_slice(b",\"id\":");
    out.extend_from_slice(id.as_json().as_bytes());
    out.extend_from_slice(b"}");
}

/// The error object of a response (JSON-RPC 2.0, section 5.1).
pub(crate) fn error_object(error: &Error) -> String {
    let (code, message) = code(error);
    let object = ErrorObject {
        code,
        message,
        data: Data::of(error),
    };
    serde_json::to_string(&object).expect("strings and numbers can be written")
}

/// The code of an error in a request object (JSON-RPC 2.0, section 5.1).
const INVALID_REQUEST: i32 = -32600;

/// The code of an error, with the message that the specification prescribes.
fn code(error: &Error) -> (i32, &'static str) {
    match error {
        Error::NoJson { .. } => (-32700, "Parse error"),
        Error::InvalidRequest(_) | Error::TooMany { .. } => (INVALID_REQUEST, "Invalid Request"),
        Error::MethodNotFound => (-32601, "Method not found"),
        Error::Params(_) => (-32602, "Invalid params"),
        Error::Statement(tidegate_sql::Error::Rejected(rejection))
            if rejection.place.is_some() && is_value_error(rejection) =>
        {
            (-32602, "Invalid params")
        }
        Error::Statement(_)
        | Error::Definition(_)
        | Error::NotForMembers
        | Error::InDoubt(_)
        | Error::Registry(_)
        | Error::RolledBack { .. } => (-32603, "Internal error"),
    }
}

/// Whether a rejection is about the content of a value. The result is `false` if the SQLSTATE
/// reports a lost connection, a conflict, a lack of resources, an intervention of the operator, a
/// system error or an internal error.
fn is_value_error(rejection: &DatabaseError) -> bool {
    let class = rejection.sqlstate.get(..2).unwrap_or_default();
    !matches!(class, "08" | "40" | "53" | "57" | "58" | "XX")
}

#[derive(Serialize)]
struct ErrorObject<'a> {
    code: i32,
    message: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Data<'a>>,
}

/// The members of a PostgreSQL error that are included in `data`.
const MEMBERS: [ErrorMember; 7] = [
    ErrorMember::Sqlstate,
    ErrorMember::Message,
    ErrorMember::Detail,
    ErrorMember::Hint,
    ErrorMember::Constraint,
    ErrorMember::Column,
    ErrorMember::Table,
];

/// The member `data` of an error object. Its members are in the order in which they are sent.
#[derive(Default, Serialize)]
struct Data<'a> {
    #[serde(rename = "rolledBack", skip_serializing_if = "is_false")]
    rolled_back: bool,
    /// PostgreSQL's error, with its message.
    #[serde(flatten)]
    database: Option<ErrorMembers<'a>>,
    /// The message of any other error.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// The name of the parameter that is missing, unknown or invalid.
    #[serde(skip_serializing_if = "Option::is_none")]
    parameter: Option<&'a str>,
    /// The path of the parameter's value, such as `params[2].tags[1]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u64>,
    #[serde(skip_serializing_if = "is_false")]
    retryable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'a RawValue>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference to what it asks"
)]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl<'a> Data<'a> {
    fn of(error: &'a Error) -> Option<Self> {
        match error {
            Error::NoJson { .. } | Error::InvalidRequest(_) | Error::InDoubt(_) => {
                Some(Self::with_message(error))
            }
            Error::TooMany { limit, .. } => Some(Self {
                limit: u64::try_from(*limit).ok(),
                ..Self::with_message(error)
            }),
            Error::MethodNotFound | Error::Registry(StoreError::Failed(_)) => None,
            Error::Params(input) => Some(Self::of_parameter(input)),
            Error::Definition(_) | Error::NotForMembers => Some(Self::with_message(error)),
            Error::Statement(error) => Self::of_statement(error),
            Error::Registry(StoreError::Unavailable(_)) => Some(Self {
                retryable: true,
                ..Self::with_message(error)
            }),
            Error::RolledBack { cause } => Some(Self {
                rolled_back: true,
                cause: cause
                    .as_deref()
                    .and_then(|cause| serde_json::from_str(cause).ok()),
                ..Self::default()
            }),
        }
    }

    fn with_message(error: &impl ToString) -> Self {
        Self {
            message: Some(error.to_string()),
            ..Self::default()
        }
    }

    fn of_parameter(input: &'a InputError) -> Self {
        let (parameter, place) = match input {
            InputError::MissingParameter { place, name }
            | InputError::ExtraParameter { place, name } => {
                (Some(name.as_str()), Some(format!("{place}.{name}")))
            }
            InputError::Value(ValueError::InvalidValue { place, .. }) => {
                (parameter(place), Some(place.clone()))
            }
            InputError::InvalidField { field, .. } => (parameter(field), Some(field.clone())),
            _ => (None, None),
        };
        Self {
            parameter,
            place,
            ..Self::with_message(input)
        }
    }

    fn of_statement(error: &'a tidegate_sql::Error) -> Option<Self> {
        use tidegate_sql::Error as Sql;
        Some(match error {
            Sql::Rejected(rejection) => Self::of_rejection(rejection),
            Sql::Deadline | Sql::PoolTimeout { .. } | Sql::Unavailable { .. } => Self {
                retryable: true,
                ..Self::with_message(error)
            },
            Sql::NoDatabase | Sql::ResultTooLarge(_) | Sql::Input(_) => Self::with_message(error),
            Sql::SinkClosed | Sql::Internal(_) => return None,
        })
    }

    fn of_rejection(rejection: &'a DatabaseError) -> Self {
        let sqlstate = &*rejection.sqlstate;
        Self {
            database: Some(ErrorMembers::new(rejection, &MEMBERS)),
            parameter: rejection.place.as_deref().and_then(parameter),
            place: rejection.place.clone(),
            // SQLSTATE 53400 reports a limit that the operator has set, such as `temp_file_limit`,
            // and a retry would exceed it too.
            retryable: matches!(sqlstate, "40001" | "40P01")
                || matches!(sqlstate.get(..2), Some("08" | "53")) && sqlstate != "53400"
                || sqlstate.starts_with("57P0"),
            ..Self::default()
        }
    }
}

/// The name of the parameter in a path, such as `tags` in `params[2].tags[1]`; `None` if the path
/// has no parameter.
fn parameter(place: &str) -> Option<&str> {
    let (_, path) = place.split_once('.')?;
    path.split(['.', '[']).next()
}
