//! Turns errors that PostgreSQL reports for a caller's statement into errors for the caller.

use tidegate_sql::{BoundStatement, DatabaseError, Error};
use tidegate_wire::server_error::ServerError;
use tidegate_wire::{is_outage_of_statement, outage};

use crate::connection::Connection;

impl Connection {
    /// Turns an error of PostgreSQL into the caller's error. Closes the connection if the error
    /// shows that the session ends or that the server is a standby.
    pub(crate) fn rejected(&mut self, error: ServerError, bound: &BoundStatement) -> Error {
        let mut rejection = error.rejection;
        if rejection.sqlstate.starts_with("57P0") {
            self.mark_closed();
        }
        // The server is a standby, for example the former primary. The statement can succeed on the
        // primary.
        if rejection.sqlstate == "25006" && self.is_in_recovery() {
            self.mark_closed();
            return outage(rejection);
        }
        if is_outage_of_statement(&rejection.sqlstate) {
            return outage(rejection);
        }
        explain(&mut rejection);
        rejection.position = rejection
            .position
            .map(|position| bound.statement.caller_position(position));
        // The messages of these errors have the numbers of parameters, but the caller's text has
        // their names.
        if matches!(&*rejection.sqlstate, "42601" | "42P08" | "42P18") {
            rejection.message = bound.statement.caller_message(&rejection.message);
        }
        Error::Rejected(Box::new(rejection))
    }
}

/// Adds a SQLSTATE or a hint that PostgreSQL leaves out. Some errors can only be recognised by
/// their English message. PostgreSQL never translates `tuple concurrently …`, but it may translate
/// messages about timeouts; a translated message gets no hint.
fn explain(rejection: &mut DatabaseError) {
    match &*rejection.sqlstate {
        // Two statements changed the same row of a system catalog at the same time, such as the row
        // of a role. PostgreSQL has no SQLSTATE for such a conflict.
        "XX000" if rejection.message.starts_with("tuple concurrently ") => {
            "40001".clone_into(&mut rejection.sqlstate);
        }
        // The input functions of PostGIS and hstore report invalid text without a SQLSTATE.
        "XX000" if rejection.place.is_some() => "22P02".clone_into(&mut rejection.sqlstate),
        "57014" if rejection.message.ends_with("statement timeout") => {
            let whose = "the limit is `statement_timeout` of the role, the database or the server";
            rejection.hint.get_or_insert_with(|| whose.to_owned());
        }
        _ => {}
    }
}
