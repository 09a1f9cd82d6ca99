//! The port of the pool: opens, checks, resets and closes connections.

use std::fmt;
use std::sync::Arc;

use tidegate_sql::{BoxFuture, DatabaseError, DatabaseName, Login, RoleName};
use tidegate_wire::{ConnectError, ConnectFault};

/// Identifies connections that can replace each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PoolKey {
    /// The database, one for each tenant.
    pub database: DatabaseName,
    /// The role that logged in.
    pub role: RoleName,
    /// Whether it runs only text of Tidegate and of the tenant's owner. Such connections never
    /// replace those that run callers' text.
    pub trusted: bool,
}

impl From<&Login> for PoolKey {
    fn from(login: &Login) -> Self {
        Self {
            database: login.database.clone(),
            role: login.role.clone(),
            trusted: login.role_use.is_trusted(),
        }
    }
}

impl PoolKey {
    /// The command that repairs the login of the role.
    pub fn repair_command(&self) -> String {
        let (database, role) = (self.database.as_str(), self.role.as_str());
        let user = role
            .strip_prefix(database)
            .and_then(|rest| rest.strip_prefix('/'));
        match user {
            // An authenticator, which is not a user.
            Some(user) if user.starts_with('$') => format!("tidegate user repair {database} --all"),
            Some(user) => format!("tidegate user repair {database} {user}"),
            None => format!("tidegate user repair {database} {database}"),
        }
    }
}

impl fmt::Display for PoolKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.role, self.database)?;
        f.write_str(if self.trusted { " (shared)" } else { "" })
    }
}

/// Opens, checks, resets and closes the connections of a pool.
///
/// The pool limits the time of `open`, `reset` and `close` by its settings. If it drops one of
/// their futures, the connection must be closed.
pub trait Connector: Send + Sync + 'static {
    /// A connection that has logged in.
    type Connection: Send + 'static;

    /// Connects and logs in. `shared` means that anonymous callers share the role.
    fn open<'a>(
        &'a self,
        key: &'a PoolKey,
        shared: bool,
    ) -> BoxFuture<'a, Result<Self::Connection, OpenError>>;

    /// Whether an idle connection is still open. Called before it is checked out; must not block.
    fn is_open(&self, connection: &mut Self::Connection) -> bool;

    /// What to do with a connection that is returned. Must not block.
    fn recycle(&self, connection: &mut Self::Connection) -> Recycle;

    /// Whether the server may still run something for an unusable connection. It then counts until
    /// [`Connector::close_and_wait`] returns.
    fn may_run(&self, connection: &Self::Connection) -> bool {
        let _ = connection;
        false
    }

    /// Cancels what the connection still runs, and resets the session. A failure closes the
    /// connection.
    fn reset<'a>(
        &'a self,
        connection: &'a mut Self::Connection,
    ) -> BoxFuture<'a, Result<(), ResetFailed>>;

    /// Closes the connection. Returns when the server has closed it, or at once.
    fn close(&self, connection: Self::Connection) -> BoxFuture<'static, ()> {
        drop(connection);
        Box::pin(std::future::ready(()))
    }

    /// Closes a connection for which the server may still run something. Returns when it no longer
    /// does, however long that takes.
    fn close_and_wait(&self, connection: Self::Connection) -> BoxFuture<'static, ()> {
        self.close(connection)
    }
}

/// What to do with a connection that is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recycle {
    /// Use it for the next request of the role.
    Reuse,
    /// Reset it in the background before the next request.
    Reset,
    /// Close it.
    Discard,
}

/// A reset failed; the connector has logged why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResetFailed;

/// A cause that several requests share.
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
    /// The operator does not let the role log in: `NOLOGIN`, `VALID UNTIL`, `REVOKE CONNECT`,
    /// `pg_hba.conf`.
    #[error("the role may not log in")]
    Barred {
        /// The error for its requests, with the SQLSTATE (28000, 42501).
        said: Box<DatabaseError>,
        /// The cause, for the log.
        #[source]
        cause: Cause,
    },
    /// The database does not exist (3D000), or accepts no connections (55000).
    #[error("the database does not exist")]
    NoDatabase,
    /// Any other failure; a fault of the service.
    #[error("the connection could not be set up")]
    Internal(#[source] Cause),
}

impl OpenError {
    /// The error of a role that may not log in, where PostgreSQL's own message is misleading or
    /// contains addresses of the cluster.
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
