//! Converts errors of connections and statements.

use std::time::Duration;

use tidegate_changelog::LogError;
use tidegate_sql::DatabaseError;
use tidegate_wire::{ConnectError, ConnectFault, is_outage};

/// Converts the error of a refused login or of an unreachable server.
pub(crate) fn of_connection(error: ConnectError, role: &str) -> LogError {
    match (&error, error.fault()) {
        (ConnectError::Refused(said) | ConnectError::AccessDenied(said), _)
            if said.sqlstate == "42501" =>
        {
            LogError::NotAllowed {
                reason: said.message.clone(),
                remedy: format!("run ALTER ROLE \"{role}\" REPLICATION as a superuser"),
            }
        }
        (_, ConnectFault::NoDatabase) => LogError::Gone,
        (_, ConnectFault::Unavailable | ConnectFault::Full) => {
            LogError::Unavailable(Box::new(error))
        }
        (_, ConnectFault::Login | ConnectFault::AccessDenied | ConnectFault::Misconfigured) => {
            LogError::Internal(Box::new(error))
        }
    }
}

/// Converts an error that PostgreSQL sent. `limit` is the time limit of the command. The result
/// contains it if the command timed out.
pub(crate) fn of_command(said: DatabaseError, limit: Duration) -> LogError {
    let code = said.sqlstate.as_str();
    match code {
        // The slot or its log no longer exists, or a publication did not exist yet at the slot's
        // position.
        "42704" | "55000" | "58P01" => LogError::Gone,
        "42501" => LogError::NotAllowed {
            reason: said.message,
            remedy: "`tidegate doctor` names the missing right".to_owned(),
        },
        "55P03" | "57014" => LogError::TimedOut {
            what: said.message,
            limit,
        },
        "42P01" => LogError::NoTable,
        // Another node is using the slot, or the server is in recovery.
        "55006" | "25006" => LogError::Unavailable(said.message.into()),
        _ if is_outage(code) => LogError::Unavailable(said.message.into()),
        _ => LogError::Internal(format!("{} ({code})", said.message).into()),
    }
}

/// Converts an error of a statement of the administrator or an owner.
pub(crate) fn of_statement(error: &tokio_postgres::Error, limit: Duration) -> LogError {
    match error.as_db_error() {
        Some(said) => of_command(
            DatabaseError {
                sqlstate: said.code().code().to_owned(),
                message: said.message().to_owned(),
                ..DatabaseError::default()
            },
            limit,
        ),
        None => LogError::Unavailable(error.to_string().into()),
    }
}
