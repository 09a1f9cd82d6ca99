//! Builds the JSON text of responses (GraphQL, section 7).

use std::fmt::Write as _;

use bytes::{BufMut, BytesMut};
use tidegate_plan::{PathSegment, PlanOutcome};

use crate::error::{Code, Error, ErrorSummary, FieldErrors};
use crate::large_text::LargeText;
use crate::response_text::ResponseText;

/// A complete GraphQL response.
#[derive(Clone, Debug)]
pub struct GraphqlResponse {
    /// The JSON text of the response.
    pub body: ResponseText,
    /// Whether the response has the member `data`. If so, the operation was executed.
    pub executed: bool,
    /// A summary of the response's errors, for the log and the metrics.
    pub errors: ErrorSummary,
}

impl GraphqlResponse {
    /// The response to a request that was not executed.
    pub fn refused(errors: &[Error]) -> Self {
        Self::without_data(b"{", errors, false)
    }

    /// The response to an operation that failed as a whole.
    pub(crate) fn failed(errors: &[Error]) -> Self {
        Self::without_data(b"{\"data\":null,", errors, true)
    }

    fn without_data(begin: &[u8], errors: &[Error], executed: bool) -> Self {
        let mut body = BytesMut::with_capacity(256);
        body.put_slice(begin);
        write_errors(errors, &mut body);
        body.put_slice(b"}");
        Self {
            body: body.into(),
            executed,
            errors: ErrorSummary::of(errors),
        }
    }

    /// The response with its whole text in memory, for transports that cannot send chunks. If the
    /// text has more than `most` bytes, the response is the error `TOO_COMPLEX`.
    pub async fn collect(self, most: u64) -> Self {
        let body = match self.body.into_bytes() {
            Ok(bytes) => Ok(Ok(bytes)),
            Err(text) => text.read().collect(most).await,
        };
        match body {
            Ok(Ok(bytes)) => Self {
                body: bytes.into(),
                ..self
            },
            Ok(Err(_)) => Self::failed(&[Error::new(Code::Internal, "internal error")]),
            Err(error) => Self::failed(&[Error::new(Code::TooComplex, error.to_string())]),
        }
    }
}

/// The start of a response that has data.
pub(crate) const BEGIN: &[u8] = b"{\"data\":";

/// Completes a response after its data: adds the errors of the root fields that are null, and
/// inserts the introspection texts.
pub(crate) fn end(
    mut body: BytesMut,
    outcome: &PlanOutcome,
    failed: &FieldErrors,
    introspections: Vec<LargeText>,
) -> GraphqlResponse {
    let mut errors: Vec<_> = failed.values().cloned().collect();
    errors.extend(outcome.field_errors.iter().map(|field_error| Error {
        path: field_error.path.clone(),
        ..Error::new(Code::BadUserInput, field_error.problem)
    }));
    if !errors.is_empty() {
        body.put_slice(b",");
        write_errors(&errors, &mut body);
    }
    if !outcome.truncated.is_empty() {
        body.put_slice(b",\"extensions\":{\"truncated\":[");
        for (at, path) in outcome.truncated.iter().enumerate() {
            if at > 0 {
                body.put_slice(b",");
            }
            write_path(path, &mut body);
        }
        body.put_slice(b"]}");
    }
    body.put_slice(b"}");
    let gaps = outcome.gaps.iter().copied().zip(introspections);
    GraphqlResponse {
        body: ResponseText::with(body.freeze(), gaps),
        executed: true,
        errors: ErrorSummary::of(&errors),
    }
}

fn write_errors(errors: &[Error], body: &mut BytesMut) {
    body.put_slice(b"\"errors\":[");
    for (at, error) in errors.iter().enumerate() {
        if at > 0 {
            body.put_slice(b",");
        }
        error.write(body);
    }
    body.put_slice(b"]");
}

fn write_path(path: &[PathSegment], body: &mut BytesMut) {
    body.put_slice(b"[");
    for (at, step) in path.iter().enumerate() {
        if at > 0 {
            body.put_slice(b",");
        }
        match step {
            PathSegment::Key(key) => string(key, body),
            PathSegment::Index(index) => number(*index, body),
        }
    }
    body.put_slice(b"]");
}

fn number(number: impl std::fmt::Display, body: &mut BytesMut) {
    // Writing to memory does not fail.
    let _ = write!(body, "{number}");
}

fn string(text: &str, body: &mut BytesMut) {
    let text = serde_json::to_vec(text).unwrap_or_default();
    body.put_slice(&text);
}

impl Error {
    /// Appends the error as JSON.
    pub fn write(&self, body: &mut BytesMut) {
        body.put_slice(b"{\"message\":");
        string(&self.message, body);
        if !self.locations.is_empty() {
            body.put_slice(b",\"locations\":[");
            for (at, location) in self.locations.iter().enumerate() {
                body.put_slice(if at > 0 {
                    b",{\"line\":"
                } else {
                    b"{\"line\":"
                });
                number(location.line, body);
                body.put_slice(b",\"column\":");
                number(location.column, body);
                body.put_slice(b"}");
            }
            body.put_slice(b"]");
        }
        if !self.path.is_empty() {
            body.put_slice(b",\"path\":");
            write_path(&self.path, body);
        }
        body.put_slice(b",\"extensions\":{\"code\":\"");
        body.put_slice(self.code.as_str().as_bytes());
        body.put_slice(b"\"");
        if let Some(rejection) = self.rejection.as_deref() {
            let members = [
                ("sqlstate", Some(&rejection.sqlstate)),
                ("table", rejection.table.as_ref()),
                ("column", rejection.column.as_ref()),
                ("constraint", rejection.constraint.as_ref()),
                ("detail", rejection.detail.as_ref()),
                ("hint", rejection.hint.as_ref()),
            ];
            for (name, value) in members {
                let Some(value) = value else { continue };
                body.put_slice(b",\"");
                body.put_slice(name.as_bytes());
                body.put_slice(b"\":");
                string(value, body);
            }
        }
        body.put_slice(b"}}");
    }
}
