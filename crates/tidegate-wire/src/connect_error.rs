//! Errors of connections that could not be opened or failed while in use.

use std::time::Duration;
use std::{fmt, io};

use tidegate_sql::{DatabaseError, Error};

use crate::config::Target;

/// Why a connection could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The server does not listen at the address, or closed the connection.
    #[error("PostgreSQL cannot be reached")]
    Unreachable(#[source] io::Error),
    /// Connecting took longer than the configured time.
    #[error("PostgreSQL did not answer within {0:?}")]
    TimedOut(Duration),
    /// PostgreSQL refused the connection for a reason that no other variant covers.
    #[error("PostgreSQL refused the connection: {} ({})", .0.message, .0.sqlstate)]
    Refused(Box<DatabaseError>),
    /// The `CONNECTION LIMIT` of the role or of its database is reached.
    #[error("PostgreSQL refused the connection: {} ({})", .0.message, .0.sqlstate)]
    Limited(Box<DatabaseError>),
    /// PostgreSQL authenticated the role, but the role may not log in or may not connect to the
    /// database.
    #[error("PostgreSQL refused the role: {} ({})", .0.message, .0.sqlstate)]
    AccessDenied(Box<DatabaseError>),
    /// PostgreSQL authenticated the role, but no session can start with the requested settings or
    /// with settings of the role.
    #[error("PostgreSQL refused the settings of the session: {} ({})", .0.message, .0.sqlstate)]
    InvalidSettings(Box<DatabaseError>),
    /// PostgreSQL requests an MD5 password, because it stores the role's password as an MD5 hash.
    /// Another program must have set this password: Tidegate itself sets passwords with SCRAM.
    #[error("PostgreSQL asks for an MD5 password, which is not supported")]
    Md5,
    /// TLS is required and could not be established, for example because the certificate is not
    /// valid.
    #[error("TLS to PostgreSQL: {0}")]
    Tls(String),
    /// The server requires an authentication method that Tidegate does not support.
    #[error("PostgreSQL asks for {0}, which is not supported")]
    Unsupported(&'static str),
    /// The server is in recovery, for example a standby, and therefore refuses writes.
    #[error("the server is in recovery (a standby), and target_session_attrs asks for a primary")]
    InRecovery,
    /// None of several hosts could be used.
    #[error("no host of the URL can be used: {0}")]
    NoHost(HostErrors),
    /// The server sent an invalid message, or did not prove that it knows the password.
    #[error("PostgreSQL broke the protocol: {0}")]
    Protocol(String),
}

/// Why each of several hosts could not be used, in the order in which they were tried.
#[derive(Debug)]
pub struct HostErrors(pub Vec<(Target, ConnectError)>);

impl HostErrors {
    /// The class of the error for the whole cluster. The cluster is full if its primary is full. A
    /// full server does not report whether it is the primary. So the cluster counts as full if at
    /// least one server is full and all others are standbys or full.
    fn fault(&self) -> ConnectFault {
        let mut is_full = false;
        for (_, error) in &self.0 {
            match error {
                ConnectError::InRecovery => {}
                error if error.fault() == ConnectFault::Full => is_full = true,
                _ => return ConnectFault::Unavailable,
            }
        }
        if is_full {
            ConnectFault::Full
        } else {
            ConnectFault::Unavailable
        }
    }
}

impl fmt::Display for HostErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (target, error)) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{target}: {error}")?;
            if let Some(cause) = std::error::Error::source(error) {
                write!(f, " ({cause})")?;
            }
        }
        Ok(())
    }
}

/// The class of a [`ConnectError`]. Errors of one class are handled in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectFault {
    /// The database does not exist or accepts no connections, or the administrator may not connect
    /// to it.
    NoDatabase,
    /// The role does not exist, its password is wrong or has expired (28P01), or no session can
    /// start with the role's settings.
    Login,
    /// PostgreSQL refuses the role: it has `NOLOGIN`, it lacks CONNECT on the database, or
    /// `pg_hba.conf` rejects the connection.
    AccessDenied,
    /// The role, the database or the cluster has no free connection slot.
    Full,
    /// PostgreSQL is down, starting or stopping. A retry may help.
    Unavailable,
    /// A setting is wrong, or PostgreSQL sent a response that the service does not support. A retry
    /// does not help.
    Misconfigured,
}

impl ConnectError {
    /// The class of the error.
    pub fn fault(&self) -> ConnectFault {
        match self {
            Self::Unreachable(_) | Self::TimedOut(_) | Self::InRecovery => {
                ConnectFault::Unavailable
            }
            Self::NoHost(errors) => errors.fault(),
            Self::Tls(_) | Self::Unsupported(_) | Self::Protocol(_) => ConnectFault::Misconfigured,
            Self::Limited(_) => ConnectFault::Full,
            Self::AccessDenied(_) => ConnectFault::AccessDenied,
            Self::InvalidSettings(_) | Self::Md5 => ConnectFault::Login,
            Self::Refused(rejection) => match rejection.sqlstate.as_str() {
                "3D000" | "42501" | "55000" => ConnectFault::NoDatabase,
                "53300" => ConnectFault::Full,
                "28P01" => ConnectFault::Login,
                state if state.starts_with("28") => ConnectFault::AccessDenied,
                state if is_outage(state) => ConnectFault::Unavailable,
                _ => ConnectFault::Misconfigured,
            },
        }
    }

    /// Whether the error is a reason to try another server of the cluster: this server is not
    /// reachable, not ready, full, or not the primary. After a refused login no other server is
    /// tried, as in libpq.
    pub(crate) fn is_of_host(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::TimedOut(_) | Self::InRecovery => true,
            Self::Refused(rejection) => {
                let state = rejection.sqlstate.as_str();
                state.starts_with("08") || state.starts_with("57P0") || state == "53300"
            }
            _ => false,
        }
    }

    /// Converts an error that PostgreSQL sent. PostgreSQL uses SQLSTATE 53300 if the cluster has
    /// too many connections, and also if a role or database has too many. The two cases are
    /// distinguished by `routine`, the name of the C function that raised the error. This name is
    /// never translated (`InitializeSessionUserId` in miscinit.c, `CheckMyDatabase` in postinit.c).
    pub fn refused(rejection: DatabaseError, routine: &str) -> Self {
        let own = matches!(routine, "InitializeSessionUserId" | "CheckMyDatabase");
        if rejection.sqlstate == "53300" && own {
            return Self::Limited(Box::new(rejection));
        }
        Self::Refused(Box::new(rejection))
    }

    /// Turns an error that PostgreSQL sent after authentication into a more specific one:
    /// [`Self::AccessDenied`] or [`Self::InvalidSettings`]. Only after authentication does
    /// PostgreSQL check the attributes of the role, its privilege to connect and the settings of
    /// its session.
    pub fn after_authentication(self) -> Self {
        match self {
            Self::Refused(mut rejection)
                if rejection.sqlstate.starts_with("28") || rejection.sqlstate == "42501" =>
            {
                // The error refused a login. It is not marked as fatal, because there is no session
                // that it could end.
                rejection.fatal = false;
                Self::AccessDenied(rejection)
            }
            Self::Refused(rejection) if is_of_settings(&rejection.sqlstate) => {
                Self::InvalidSettings(rejection)
            }
            other => other,
        }
    }

    /// Converts the error to an error of the executor. `retry_after` is the delay after which a
    /// caller may retry.
    pub fn into_sql(self, retry_after: Duration) -> Error {
        match self.fault() {
            ConnectFault::NoDatabase => Error::NoDatabase,
            ConnectFault::Full | ConnectFault::Unavailable => Error::Unavailable {
                retry_after,
                source: Some(Box::new(self)),
            },
            ConnectFault::Login | ConnectFault::AccessDenied | ConnectFault::Misconfigured => {
                Error::internal(self)
            }
        }
    }
}

/// Whether a SQLSTATE is about a setting: an invalid name or value, or a library that does not
/// exist. The other codes of class 58, and class F0, are not included: they report failures of the
/// server's disks or files, which settings of a role do not cause.
fn is_of_settings(sqlstate: &str) -> bool {
    sqlstate.starts_with("22") || sqlstate.starts_with("42") || sqlstate == "58P01"
}

/// Whether a SQLSTATE reports a problem of PostgreSQL and not of the statement: connection
/// exceptions, insufficient resources, and operator intervention except cancelled statements.
pub fn is_outage(sqlstate: &str) -> bool {
    sqlstate.starts_with("08") || sqlstate.starts_with("53") || sqlstate.starts_with("57P0")
}

/// Does the same as [`is_outage`] for the error of a statement, with one exception:
/// `configuration_limit_exceeded` (53400) is not an outage. It means that the statement has reached
/// `temp_file_limit`, so a retry does not help.
pub fn is_outage_of_statement(sqlstate: &str) -> bool {
    is_outage(sqlstate) && sqlstate != "53400"
}

/// Whether an error means that PostgreSQL's lock table is full.
pub fn is_lock_table_full(error: &Error) -> bool {
    let Error::Unavailable {
        source: Some(source),
        ..
    } = error
    else {
        return false;
    };
    let rejection = match source.downcast_ref::<ConnectError>() {
        Some(ConnectError::Refused(rejection)) => Some(&**rejection),
        _ => source.downcast_ref::<DatabaseError>(),
    };
    rejection.is_some_and(is_lock_table_error)
}

/// Does the same as [`is_lock_table_full`] for an error of PostgreSQL. The error is recognised by
/// its hint, which contains the name of the setting in every language.
pub fn is_lock_table_error(rejection: &DatabaseError) -> bool {
    let hint = rejection.hint.as_deref().unwrap_or_default();
    rejection.sqlstate == "53200" && hint.contains("max_locks_per_transaction")
}

/// The delay after which a client may retry after an outage.
pub const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The error for a connection that failed while in use, or for a service that is not available for
/// another reason.
pub fn outage(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Unavailable {
        retry_after: RETRY_AFTER,
        source: Some(source.into()),
    }
}
