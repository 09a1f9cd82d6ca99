//! Converts errors of tokio-postgres.

use std::io;

use tidegate_sql::{BoundStatement, DatabaseError, Error};
use tidegate_wire::{ConnectError, is_outage, outage};
use tokio_postgres::error::{DbError, ErrorPosition, Severity, SqlState};

/// Converts the error of a failed statement. If `bound` is given, the reported position becomes a
/// position in the original text of the statement, which has named placeholders.
pub(super) fn of_statement(error: &tokio_postgres::Error, bound: Option<&BoundStatement>) -> Error {
    let Some(reported) = error.as_db_error() else {
        return if error.is_closed() || is_io(error) {
            outage(describe(error))
        } else {
            Error::internal(describe(error))
        };
    };
    if is_outage(reported.code().code()) {
        return outage(rejection(reported));
    }
    let mut rejection = rejection(reported);
    if let Some(bound) = bound {
        rejection.position = rejection
            .position
            .map(|position| bound.statement.caller_position(position));
    }
    Error::Rejected(Box::new(rejection))
}

/// Converts the error with which a server in recovery refuses a write; `None` for other errors. The
/// result is an outage, because the statement can succeed on the primary.
pub(super) fn of_standby(error: &tokio_postgres::Error) -> Option<Error> {
    let reported = error.as_db_error()?;
    let is_read_only = *reported.code() == SqlState::READ_ONLY_SQL_TRANSACTION;
    is_read_only.then(|| outage(rejection(reported)))
}

/// Converts the error of a connection that could not be opened.
pub(super) fn of_connection(error: &tokio_postgres::Error) -> ConnectError {
    match error.as_db_error() {
        Some(reported) => ConnectError::Refused(Box::new(rejection(reported))),
        None => ConnectError::Unreachable(io::Error::other(describe(error))),
    }
}

/// Whether the statement can succeed if it is prepared again (PostgreSQL, `RevalidateCachedQuery`).
pub(super) fn is_stale(error: &tokio_postgres::Error) -> bool {
    let Some(reported) = error.as_db_error() else {
        return false;
    };
    match reported.code().code() {
        "26000" => true,
        "0A000" => reported.routine() == Some("RevalidateCachedQuery"),
        _ => false,
    }
}

fn rejection(reported: &DbError) -> DatabaseError {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    let position = reported.position().and_then(|position| match position {
        ErrorPosition::Original(position) => Some(*position),
        ErrorPosition::Internal { .. } => None,
    });
    DatabaseError {
        sqlstate: reported.code().code().to_owned(),
        message: reported.message().to_owned(),
        detail: owned(reported.detail()),
        hint: owned(reported.hint()),
        position,
        schema: owned(reported.schema()),
        table: owned(reported.table()),
        column: owned(reported.column()),
        constraint: owned(reported.constraint()),
        place: None,
        fatal: !matches!(reported.parsed_severity(), Some(Severity::Error)),
    }
}

fn is_io(error: &tokio_postgres::Error) -> bool {
    std::error::Error::source(error).is_some_and(<dyn std::error::Error>::is::<io::Error>)
}

/// The error and its causes in one line. The causes are needed, because the text of an error of
/// tokio-postgres names only the kind of the error.
fn describe(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
