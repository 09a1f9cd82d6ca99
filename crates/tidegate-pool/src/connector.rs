//! The trait by which the pool opens, checks, resets and closes connections.

use std::fmt;
use std::sync::Arc;

use tidegate_sql::{BoxFuture, DatabaseError, DatabaseName, Login, RoleName};
use tidegate_wire::{ConnectError, ConnectFault};

/// Identifies connections that can serve the same requests.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PoolKey {
    /// The database. Each tenant has one.
    pub database: DatabaseName,
    /// The role that logged in.
    pub role: RoleName,
    /// Whether the connection runs only statements that Tidegate or the tenant's owner wrote, and
    /// never statements that callers wrote.
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
    /// The command with which the operator repairs the login of the role.
    pub fn repair_command(&self) -> String {
        let (database, role) = (self.database.as_str(), self.role.as_str());
        let user = role
            .strip_prefix(database)
            .and_then(|rest| rest.strip_prefix('/'));
        match user {
            // The name belongs to an authenticator or a group, not to a user.
            Some(user) if user.starts_with('$') || user.contains('/') => {
                format!("tidegate user repair {database} --all")
            }
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
/// The pool limits the time of `open`, `reset` and `close` by its settings. If the pool drops the
/// future of one of these methods, the connection must be closed.
pub trait Connector: Send + Sync + 'static {
    /// A connection that has logged in.
    type Connection: Send + 'static;

    /// Connects and logs in. If `fixed_settings` is true, anonymous callers or the members of a
    /// group share the role, and settings that the role set for itself must not apply to the
    /// session.
    fn open<'a>(
        &'a self,
        key: &'a PoolKey,
        fixed_settings: bool,
    ) -> BoxFuture<'a, Result<Self::Connection, OpenError>>;

    /// Whether an idle connection is still open. The pool calls this before it checks the
    /// connection out. Must not block.
    fn is_open(&self, connection: &mut Self::Connection) -> bool;

    /// How to recycle a connection that is returned. Must not block.
    fn recycle(&self, connection: &mut Self::Connection) -> Recycle;

    /// Whether the server may still run a statement of an unusable connection. Such a connection
    /// counts towards the limits until [`Connector::close_and_wait`] returns.
    fn may_run(&self, connection: &Self::Connection) -> bool {
        let _ = connection;
        false
    }

    /// Cancels a statement that still runs on the connection, and resets the session. On failure
    /// the pool closes the connection.
    fn reset<'a>(
        &'a self,
        connection: &'a mut Self::Connection,
    ) -> BoxFuture<'a, Result<(), ResetFailed>>;

    /// Closes the connection. May return before the server has closed it.
    fn close(&self, connection: Self::Connection) -> BoxFuture<'static, ()> {
        drop(connection);
        Box::pin(std::future::ready(()))
    }

    /// Closes a connection whose statement may still run on the server. Returns only when the
    /// statement has ended, however long it takes. The default implementation only closes the
    /// connection; override it if [`Connector::may_run`] can return `true`.
    fn close_and_wait(&self, connection: Self::Connection) -> BoxFuture<'static, ()> {
        self.close(connection)
    }
}

/// How to recycle a connection that is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recycle {
    /// Use the connection for the next request of the role.
    Reuse,
    /// Reset the connection in the background before the next request.
    Reset,
    /// Close the connection.
    Discard,
}

/// The error of a failed reset. The connector has logged the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResetFailed;

/// The cause of an error, shared by the errors of several requests.
pub type Cause = Arc<dyn std::error::Error + Send + Sync>;

/// Why a connection could not be opened.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OpenError {
    /// PostgreSQL cannot be reached, or is starting or stopping (class 08, 57P01 to 57P03), or
    /// lacks resources (class 53, except 53300).
    #[error("PostgreSQL cannot be reached")]
    Unreachable(#[source] Cause),
    /// PostgreSQL accepts no more connections (53300, `max_connections`).
    #[error("PostgreSQL has no connection left")]
    Full(#[source] Cause),
    /// The `CONNECTION LIMIT` of the role or of its database is reached (also 53300).
    #[error("the connection limit of the role or its database is reached")]
    Limited(#[source] Cause),
    /// PostgreSQL refuses the password of the role (28P01), or a setting makes every session of the
    /// role fail. An operator has to repair the login.
    #[error("PostgreSQL refuses the login of the role")]
    Login(#[source] Cause),
    /// The role does not exist, or the operator has locked it out by `NOLOGIN`, `VALID UNTIL`,
    /// `REVOKE CONNECT` or `pg_hba.conf`.
    #[error("the role may not log in")]
    AccessDenied {
        /// The error for the role's requests, with the SQLSTATE 28000 or 42501.
        rejection: Box<DatabaseError>,
        /// The cause, for the log.
        #[source]
        cause: Cause,
    },
    /// The database does not exist (3D000), or accepts no connections (55000).
    #[error("the database does not exist")]
    NoDatabase,
    /// Any other failure: a wrong configuration, or a bug of the service.
    #[error("the connection could not be set up")]
    Internal(#[source] Cause),
}

impl OpenError {
    /// The error for a role that may not log in. PostgreSQL's message is left out, because it is
    /// misleading or contains addresses of the cluster.
    pub fn access_denied(cause: Cause) -> Self {
        let rejection = DatabaseError {
            sqlstate: "28000".to_owned(),
            message: "PostgreSQL does not let this user log in".to_owned(),
            ..DatabaseError::default()
        };
        Self::AccessDenied {
            rejection: Box::new(rejection),
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
            ConnectFault::Unavailable => Self::Unreachable(Arc::new(error)),
            ConnectFault::AccessDenied => match &error {
                ConnectError::AccessDenied(rejection) => Self::AccessDenied {
                    rejection: rejection.clone(),
                    cause: Arc::new(error),
                },
                _ => Self::access_denied(Arc::new(error)),
            },
            ConnectFault::Misconfigured => Self::Internal(Arc::new(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use tidegate_sql::DatabaseError;

    use super::*;

    #[test]
    fn a_role_that_pg_hba_conf_refuses_gets_an_error_without_an_address() {
        let rejection = DatabaseError {
            sqlstate: "28000".to_owned(),
            message: "pg_hba.conf rejects connection for host \"10.0.0.7\"".to_owned(),
            ..DatabaseError::default()
        };
        match OpenError::from(ConnectError::Refused(Box::new(rejection))) {
            OpenError::AccessDenied { rejection, .. } => {
                assert_eq!(rejection.sqlstate, "28000");
                assert!(
                    !rejection.message.contains("10.0.0.7"),
                    "{}",
                    rejection.message
                );
            }
            other => panic!("{other:?}"),
        }
    }
}
