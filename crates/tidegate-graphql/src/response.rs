//! Builds the JSON text of responses (GraphQL, section 7).

use bytes::{BufMut, BytesMut};
use serde::Serialize;
use tidegate_plan::PlanOutcome;

use crate::error::{Code, Error, ErrorSummary, FieldErrors, ResponsePath};
use crate::large_text::LargeText;
use crate::response_text::ResponseText;

/// A complete GraphQL response.
#[derive(Clone, Debug)]
pub struct GraphqlResponse {
    /// The JSON text of the response.
    pub body: ResponseText,
    /// Whether the operation was executed. Then the response has the member `data`.
    pub executed: bool,
    /// A summary of the response's errors, for the log and the metrics.
    pub errors: ErrorSummary,
}

impl GraphqlResponse {
    /// The response to a request that was not executed.
    pub fn refused(errors: &[Error]) -> Self {
        Self::without_data(b"{", errors, false)
    }

    /// The response to an operation that failed as a whole. Its `data` is null.
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

    /// Generates the whole text of the response in memory, for transports that cannot send chunks.
    /// If a text that has to be generated has more than `most` bytes, the response is the error
    /// `TOO_COMPLEX` instead.
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

/// Completes a response whose `body` ends with the data. Adds the errors of root fields (`failed`),
/// the field errors, and the paths of truncated lists, and inserts the introspection texts.
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
        let paths: Vec<_> = outcome
            .truncated
            .iter()
            .map(|path| ResponsePath(path))
            .collect();
        body.put_slice(b",\"extensions\":{\"truncated\":");
        put(&paths, &mut body);
        body.put_slice(b"}");
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
    body.put_slice(b"\"errors\":");
    put(&errors, body);
}

/// Appends a value as JSON.
fn put(value: &impl Serialize, body: &mut BytesMut) {
    // Serializing strings and numbers does not fail, nor does writing to memory.
    let _ = serde_json::to_writer(body.writer(), value);
}
