//! Why a connection could not be opened, or failed.

use std::io;
use std::time::Duration;

use tidegate_sql::{DatabaseError, Error};

/// Why a connection could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nothing listens at the address, or the connection was closed.
    #[error("PostgreSQL cannot be reached")]
    Unreachable(#[source] io::Error),
    /// It took longer than the configured time.
    #[error("PostgreSQL did not answer within {0:?}")]
    TimedOut(Duration),
    /// PostgreSQL refused the connection.
    #[error("PostgreSQL refused the connection: {} ({})", .0.message, .0.sqlstate)]
    Refused(Box<DatabaseError>),
    /// The role or its database has used up its own `CONNECTION LIMIT`.
    #[error("PostgreSQL refused the connection: {} ({})", .0.message, .0.sqlstate)]
    Limited(Box<DatabaseError>),
    /// PostgreSQL authenticated the role, but does not admit it.
    #[error("PostgreSQL refused the role: {} ({})", .0.message, .0.sqlstate)]
    Barred(Box<DatabaseError>),
    /// PostgreSQL authenticated the role, but no session can start with the settings that were
    /// requested or that the role made for itself.
    #[error("PostgreSQL refused the settings of the session: {} ({})", .0.message, .0.sqlstate)]
    Spoilt(Box<DatabaseError>),
    /// PostgreSQL stores the role's password as an MD5 hash. Tidegate did not set it, since it uses
    /// SCRAM.
    #[error("PostgreSQL asks for an MD5 password, which is not supported")]
    Md5,
    /// TLS is required and not available.
    #[error("TLS to PostgreSQL: {0}")]
    Tls(String),
    /// The server requires something that is not supported.
    #[error("PostgreSQL asks for {0}, which is not supported")]
    Unsupported(&'static str),
    /// The server's proof or a message is invalid.
    #[error("PostgreSQL broke the protocol: {0}")]
    Protocol(String),
}

/// A connect error by what can be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectFault {
    /// The database does not exist, or the administrator may not connect to it.
    NoDatabase,
    /// The role does not exist, its password differs or has expired (28P01), or no session can
    /// start with its settings.
    Login,
    /// The role may not log in (`NOLOGIN`), not to this database (`REVOKE CONNECT`), or not from
    /// this address (`pg_hba.conf`).
    Barred,
    /// No connection slot is free, for the role, the database or the cluster.
    Full,
    /// PostgreSQL is down, starting or stopping. A retry may help.
    Away,
    /// A setting is wrong. A retry does not help.
    Setup,
}

impl ConnectError {
    /// Classifies the error by what can be done about it.
    pub fn fault(&self) -> ConnectFault {
        match self {
            Self::Unreachable(_) | Self::TimedOut(_) => ConnectFault::Away,
            Self::Tls(_) | Self::Unsupported(_) | Self::Protocol(_) => ConnectFault::Setup,
            Self::Limited(_) => ConnectFault::Full,
            Self::Barred(_) => ConnectFault::Barred,
            Self::Spoilt(_) | Self::Md5 => ConnectFault::Login,
            Self::Refused(rejection) => match rejection.sqlstate.as_str() {
                "3D000" | "42501" | "55000" => ConnectFault::NoDatabase,
                "53300" => ConnectFault::Full,
                "28P01" => ConnectFault::Login,
                state if state.starts_with("28") => ConnectFault::Barred,
                state if is_outage(state) => ConnectFault::Away,
                _ => ConnectFault::Setup,
            },
        }
    }

    /// Wraps an error that PostgreSQL sent. Two limits share SQLSTATE 53300. The name of the C
    /// function that raised the error tells them apart and is not translated
    /// (`InitializeSessionUserId` in miscinit.c, `CheckMyDatabase` in postinit.c).
    pub fn refused(said: DatabaseError, routine: &str) -> Self {
        let own = matches!(routine, "InitializeSessionUserId" | "CheckMyDatabase");
        if said.sqlstate == "53300" && own {
            return Self::Limited(Box::new(said));
        }
        Self::Refused(Box::new(said))
    }

    /// Reinterprets an error that came after authentication. Only then does PostgreSQL check the
    /// attributes of the role, its privilege to connect and the settings of its session.
    pub fn behind_authentication(self) -> Self {
        match self {
            Self::Refused(mut said)
                if said.sqlstate.starts_with("28") || said.sqlstate == "42501" =>
            {
                // The error refuses a login; it does not end a session.
                said.fatal = false;
                Self::Barred(said)
            }
            Self::Refused(said) if is_of_settings(&said.sqlstate) => Self::Spoilt(said),
            other => other,
        }
    }

    /// Converts it to the executor's error, with the delay after which to retry.
    pub fn into_sql(self, retry_after: Duration) -> Error {
        match self.fault() {
            ConnectFault::NoDatabase => Error::NoDatabase,
            ConnectFault::Full | ConnectFault::Away => Error::Unavailable {
                retry_after,
                source: Some(Box::new(self)),
            },
            ConnectFault::Login | ConnectFault::Barred | ConnectFault::Setup => {
                Error::internal(self)
            }
        }
    }
}

/// Whether a SQLSTATE is about a setting: a wrong name or value, or a library that does not exist.
/// Not the rest of class 58, and not F0: the role is not the cause of a failing disk or file of the
/// server.
fn is_of_settings(sqlstate: &str) -> bool {
    sqlstate.starts_with("22") || sqlstate.starts_with("42") || sqlstate == "58P01"
}

/// Whether a SQLSTATE means that PostgreSQL and not the statement is the problem: connection
/// exceptions, insufficient resources, operator intervention other than a cancelled statement.
pub fn is_outage(sqlstate: &str) -> bool {
    sqlstate.starts_with("08") || sqlstate.starts_with("53") || sqlstate.starts_with("57P0")
}

/// As [`is_outage`], for the error of a statement. There `configuration_limit_exceeded` is a limit
/// that was set for the statement, `temp_file_limit`: a retry does not help, and PostgreSQL is not
/// down.
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
    let said = match source.downcast_ref::<ConnectError>() {
        Some(ConnectError::Refused(said)) => Some(&**said),
        _ => source.downcast_ref::<DatabaseError>(),
    };
    said.is_some_and(says_lock_table_full)
}

/// As [`is_lock_table_full`], for an error of PostgreSQL. Only this error's hint contains the name
/// of the setting, in every language.
pub fn says_lock_table_full(said: &DatabaseError) -> bool {
    let hint = said.hint.as_deref().unwrap_or_default();
    said.sqlstate == "53200" && hint.contains("max_locks_per_transaction")
}

/// The delay after which a caller may retry after an outage.
pub const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The error of a connection that failed while in use.
pub fn outage(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Unavailable {
        retry_after: RETRY_AFTER,
        source: Some(source.into()),
    }
}
