//! Errors of statements, request bodies and the catalog.

use http::StatusCode;
use tidegate_sql::request::RequestError;
use tidegate_sql::{DatabaseError, Error, InputError, LoginRefused};

use super::{ApiError, Challenge, sqlstate};
use crate::memory::Exhausted;

/// The message for [`LoginRefused`], the error of a role that cannot log in to PostgreSQL.
const LOGIN_REFUSED: &str =
    "PostgreSQL refuses the login of this user's role; the operator finds the repair in the log";

impl ApiError {
    /// The error for a failed statement. If `anonymous` is true, the caller has no token, and a
    /// missing privilege is reported as 401.
    pub fn from_sql(error: Error, anonymous: bool) -> Self {
        match error {
            Error::Input(input) => input.into(),
            Error::Rejected(rejection) => Self::rejected(*rejection, anonymous),
            Error::Deadline => {
                let text = "the statement did not end before its deadline";
                Self::new(StatusCode::GATEWAY_TIMEOUT, "STATEMENT_TIMEOUT", text)
            }
            Error::PoolTimeout { retry_after } => {
                let text = "no connection to the database became free in time";
                Self::unavailable("POOL_TIMEOUT", text, retry_after)
            }
            Error::Unavailable {
                source: Some(source),
                ..
            } if source.is::<Exhausted>() => Self::exhausted(),
            Error::Unavailable {
                retry_after,
                source,
            } => {
                let text = match &source {
                    Some(source) if source.is::<LoginRefused>() => LOGIN_REFUSED,
                    _ => "the database is not available",
                };
                let reported = source
                    .as_deref()
                    .and_then(|reported| reported.downcast_ref());
                // Only the SQLSTATE is sent to the client, because PostgreSQL's message may name
                // files of the server.
                let code = reported.map(|DatabaseError { sqlstate, .. }| DatabaseError {
                    sqlstate: sqlstate.clone(),
                    ..DatabaseError::default()
                });
                let failure = Self::unavailable("DATABASE_UNAVAILABLE", text, retry_after);
                let mut failure = failure.with_cause(source);
                failure.details_mut().rejection = code;
                failure
            }
            Error::NoDatabase => Self::not_found("the database does not exist"),
            Error::ResultTooLarge(limit) => Self::too_large(format!(
                "the result, or where rows are streamed one row of it, is larger than {limit} bytes; ask for smaller values, for fewer rows, or for `output_format` csv or ndjson, which are streamed row by row"
            )),
            Error::Internal(source) => Self::internal(source),
            gone @ Error::SinkClosed => Self::internal(gone),
        }
    }

    fn rejected(rejection: DatabaseError, anonymous: bool) -> Self {
        let status = sqlstate::status(&rejection.sqlstate, anonymous);
        // SQLSTATE 53400 reports a configured limit, such as `temp_file_limit`, and not an outage.
        let limit = rejection.sqlstate == "53400";
        let code = match status {
            StatusCode::SERVICE_UNAVAILABLE if !limit => "DATABASE_UNAVAILABLE",
            StatusCode::GATEWAY_TIMEOUT => "STATEMENT_TIMEOUT",
            _ => "SQL_ERROR",
        };
        let message = match &rejection.place {
            Some(place) => format!("`{place}`: {}", rejection.message),
            None => rejection.message.clone(),
        };
        let mut failure = Self::new(status, code, message);
        let details = failure.details_mut();
        details.rejection = Some(rejection);
        match status {
            StatusCode::SERVICE_UNAVAILABLE if !limit => {
                details.retry_after = Some(std::time::Duration::from_secs(1));
            }
            StatusCode::UNAUTHORIZED => details.challenge = Some(Challenge::Bearer),
            StatusCode::METHOD_NOT_ALLOWED => details.allow = Some("POST, OPTIONS"),
            _ => {}
        }
        failure
    }

    /// The error for a failure to read or change the catalog. If `anonymous` is true, the caller
    /// has no token.
    pub fn from_catalog(error: tidegate_catalog::Error, anonymous: bool) -> Self {
        match error {
            tidegate_catalog::Error::Sql(error) => Self::from_sql(error, anonymous),
            ours @ (tidegate_catalog::Error::UnexpectedResult
            | tidegate_catalog::Error::Malformed(_)) => Self::internal(ours),
            tidegate_catalog::Error::NoTable => Self::not_found("there is no such table"),
            tidegate_catalog::Error::OwnsTable => {
                Self::conflict("the sub-user owns the table, and an owner's rights cannot be taken")
            }
            no_grantor @ tidegate_catalog::Error::NoGrantor { .. } => {
                Self::conflict(no_grantor.to_string())
            }
            not_revocable @ tidegate_catalog::Error::NotRevocable { .. } => Self::conflict(
                format!("{not_revocable}, which this cannot take; revoke that first"),
            ),
        }
    }
}

impl From<InputError> for ApiError {
    fn from(error: InputError) -> Self {
        let message = error.to_string();
        match error {
            InputError::StatementNotAllowed { .. } => {
                Self::new(StatusCode::FORBIDDEN, "STATEMENT_NOT_ALLOWED", message)
            }
            _ => Self::input(message),
        }
    }
}

impl From<RequestError> for ApiError {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::InvalidJson { .. } => Self::invalid_json(error.to_string()),
            RequestError::InvalidBody { .. } => Self::input(error.to_string()),
            RequestError::Input(input) => input.into(),
        }
    }
}
