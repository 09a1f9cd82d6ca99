//! The ports of the pool: how a connection is opened, judged, reset and closed.

use std::fmt;
use std::sync::Arc;

use tidegate_sql::{BoxFuture, DatabaseError, DatabaseName, Login, RoleName};
use tidegate_wire::{ConnectError, ConnectFault};

/// What a pooled connection is good for: a database, logged in as a role.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The database, which is the tenant.
    pub database: DatabaseName,
    /// The role that logged in.
    pub role: RoleName,
    /// Whether it carries only text of Tidegate's and of the tenant's owner. Such connections and
    /// those that run callers' text are never exchanged for each other.
    pub trusted: bool,
}

impl From<&Login> for Key {
    fn from(login: &Login) -> Self {
        Self {
            database: login.database.clone(),
            role: login.role.clone(),
            trusted: login.role_use.is_trusted(),
        }
    }
}

impl Key {
    /// The command that repairs the login of the role.
    pub fn repair_command(&self) -> String {
        let (database, role) = (self.database.as_str(), self.role.as_str());
        let user = role
            .strip_prefix(database)
            .and_then(|rest| rest.strip_prefix('/'));
        match user {
            // An authenticator, which is no user.
            Some(user) if user.starts_with('$') => format!("tidegate user repair {database} --all"),
            Some(user) => format!("tidegate user repair {database} {user}"),
            None => format!("tidegate user repair {database} {database}"),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.role, self.database)?;
        f.write_str(if self.trusted { " (shared)" } else { "" })
    }
}

/// Opens, judges, resets and closes the connections of a pool.
///
/// The pool bounds the time of `open`, `reset` and `close` by its settings; dropping their futures
/// must therefore leave nothing behind but a closed connection.
pub trait Connector: Send + Sync + 'static {
    /// A connection that has logged in.
    type Connection: Send + 'static;

    /// Connects and logs in. `shared` says that anonymous callers share the role.
    fn open<'a>(
        &'a self,
        key: &'a Key,
        shared: bool,
    ) -> BoxFuture<'a, Result<Self::Connection, OpenError>>;

    /// Whether an idle connection is still open. Asked before it is lent; must not block.
    fn is_open(&self, connection: &mut Self::Connection) -> bool;

    /// What a connection needs before its next use. Must not block.
    fn condition(&self, connection: &mut Self::Connection) -> Condition;

    /// Whether the server may still work for a connection that is good for nothing any more. It
    /// then counts until [`Connector::see_off`] returns.
    fn may_run(&self, connection: &Self::Connection) -> bool {
        let _ = connection;
        false
    }

    /// Ends what the connection still does and clears the session. A failure closes the
    /// connection.
    fn reset<'a>(
        &'a self,
        connection: &'a mut Self::Connection,
    ) -> BoxFuture<'a, Result<(), ResetFailed>>;

    /// Says goodbye to the server. Returns when the server has let the connection go, or at once.
    fn close(&self, connection: Self::Connection) -> BoxFuture<'static, ()> {
        drop(connection);
        Box::pin(std::future::ready(()))
    }

    /// Closes a connection for which the server may still work, and sees to it that it stops.
    /// Returns when it does not any more, however long that takes.
    fn see_off(&self, connection: Self::Connection) -> BoxFuture<'static, ()> {
        self.close(connection)
    }
}

/// The state of a connection that comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Good for the next request of the role.
    Ready,
    /// To be reset before the next request, in the background.
    ResetDue,
    /// Good for nothing any more.
    Uncertain,
}

/// A reset did not succeed; the connector has logged why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResetFailed;

/// A cause that several waiting requests share.
pub type Cause = Arc<dyn std::error::Error + Send + Sync>;

/// Why a connection could not be opened.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OpenError {
    /// PostgreSQL cannot be reached, or is starting or stopping (class 08, 57P01 to 57P03).
    #[error("PostgreSQL cannot be reached")]
    Unreachable(#[source] Cause),
    /// PostgreSQL accepts no more connections (53300, `max_connections`).
    #[error("PostgreSQL has no connection left")]
    Full(#[source] Cause),
    /// The role or its database has used up its own `CONNECTION LIMIT` (53300 too).
    #[error("the connection limit of the role or its database is reached")]
    Limited(#[source] Cause),
    /// The role has another password (28P01), or a setting makes every session fail: an operator has
    /// to repair it.
    #[error("PostgreSQL refuses the login of the role")]
    Login(#[source] Cause),
    /// An operator keeps the role out: `NOLOGIN`, `VALID UNTIL`, `REVOKE CONNECT`, `pg_hba.conf`.
    #[error("the role may not log in")]
    Barred {
        /// What its requests are told, with the SQLSTATE (28000, 42501).
        said: Box<DatabaseError>,
        /// Why, for the log.
        #[source]
        cause: Cause,
    },
    /// The database does not exist (3D000), or accepts no connections (55000).
    #[error("the database is not there")]
    NoDatabase,
    /// Something else, which is our fault.
    #[error("the connection could not be set up")]
    Internal(#[source] Cause),
}

impl OpenError {
    /// The role may not log in, and PostgreSQL's own message is about something else or names
    /// addresses of the cluster.
    pub fn barred(cause: Cause) -> Self {
        let said = DatabaseError {
            sqlstate: "28000".to_owned(),
            message: "PostgreSQL does not let this user log in".to_owned(),
            ..DatabaseError::default()
        };
        Self::Barred {
            said: Box::new(said),
            cause,
        }
    }
}

impl From<ConnectError> for OpenError {
    fn from(error: ConnectError) -> Self {
        match error.fault() {
            ConnectFault::NoDatabase => Self::NoDatabase,
            ConnectFault::Login => Self::Login(Arc::new(error)),
            ConnectFault::Full if matches!(error, ConnectError::Limited(_)) => {
                Self::Limited(Arc::new(error))
            }
            ConnectFault::Full => Self::Full(Arc::new(error)),
            ConnectFault::Away => Self::Unreachable(Arc::new(error)),
            ConnectFault::Barred => match &error {
                ConnectError::Barred(said) => Self::Barred {
                    said: said.clone(),
                    cause: Arc::new(error),
                },
                _ => Self::barred(Arc::new(error)),
            },
            ConnectFault::Setup => Self::Internal(Arc::new(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use tidegate_sql::DatabaseError;

    use super::*;

    #[test]
    fn a_role_that_pg_hba_conf_refuses_gets_an_error_without_an_address() {
        let said = DatabaseError {
            sqlstate: "28000".to_owned(),
            message: "pg_hba.conf rejects connection for host \"10.0.0.7\"".to_owned(),
            ..DatabaseError::default()
        };
        match OpenError::from(ConnectError::Refused(Box::new(said))) {
            OpenError::Barred { said, .. } => {
                assert_eq!(said.sqlstate, "28000");
                assert!(!said.message.contains("10.0.0.7"), "{}", said.message);
            }
            other => panic!("{other:?}"),
        }
    }
}
