//! Why a connection could not be opened, or failed.

use std::io;
use std::time::Duration;

use tidegate_sql::{DatabaseError, Error};

/// Why a connection could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nothing answers at the address, or it closed the connection.
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
    /// The role proved who it is, and PostgreSQL turned it away all the same.
    #[error("PostgreSQL turned the role away: {} ({})", .0.message, .0.sqlstate)]
    Barred(Box<DatabaseError>),
    /// The role proved who it is, and no session can begin with the settings that it asks for or
    /// has made for itself.
    #[error("PostgreSQL refused the settings of the session: {} ({})", .0.message, .0.sqlstate)]
    Spoilt(Box<DatabaseError>),
    /// PostgreSQL stores the role's password as an MD5 hash: it was not set by Tidegate, which uses
    /// SCRAM.
    #[error("PostgreSQL asks for an MD5 password, which is not supported")]
    Md5,
    /// TLS was asked for and could not be had.
    #[error("TLS to PostgreSQL: {0}")]
    Tls(String),
    /// The server asks for something that we do not do.
    #[error("PostgreSQL asks for {0}, which is not supported")]
    Unsupported(&'static str),
    /// The server's proof or a message is wrong.
    #[error("PostgreSQL broke the protocol: {0}")]
    Protocol(String),
}

/// What a refused connection means for the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectFault {
    /// The database is not there, or this administrator may not connect to it.
    NoDatabase,
    /// The role is not there, its password is another one or has expired (28P01), or its settings
    /// let no session begin.
    Login,
    /// The role may not log in (`NOLOGIN`), not to this database (`REVOKE CONNECT`), or not from
    /// here (`pg_hba.conf`).
    Barred,
    /// No connection slot is free, for the role, the database or the cluster.
    Full,
    /// PostgreSQL is away, starting or stopping; trying later may help.
    Away,
    /// Trying again does not help: a setting is wrong.
    Setup,
}

impl ConnectError {
    /// Sorts the error by what can be done about it.
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

    /// The error that PostgreSQL sent. Both kinds of 53300 have the same code; which limit was
    /// reached is told by the function that checks it (`InitializeSessionUserId` in miscinit.c,
    /// `CheckMyDatabase` in postinit.c), whose name is not translated.
    pub fn refused(said: DatabaseError, routine: &str) -> Self {
        let own = matches!(routine, "InitializeSessionUserId" | "CheckMyDatabase");
        if said.sqlstate == "53300" && own {
            return Self::Limited(Box::new(said));
        }
        Self::Refused(Box::new(said))
    }

    /// The error as it is to be understood once the role has proved who it is: PostgreSQL looks at
    /// the attributes of a role, its right to connect and the settings of its session only then.
    pub fn behind_authentication(self) -> Self {
        match self {
            Self::Refused(mut said)
                if said.sqlstate.starts_with("28") || said.sqlstate == "42501" =>
            {
                // It answers an attempt to log in; no session is lost.
                said.fatal = false;
                Self::Barred(said)
            }
            Self::Refused(said) if is_of_settings(&said.sqlstate) => Self::Spoilt(said),
            other => other,
        }
    }

    /// The error as the executor's caller gets it, with the time after which to try again.
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

/// Whether a SQLSTATE tells of a setting: a value or a name that is wrong, or a library to load that
/// is not there. Not the rest of class 58, and not F0: a disk or a file of the server's that fails
/// is none of the role's doing.
fn is_of_settings(sqlstate: &str) -> bool {
    sqlstate.starts_with("22") || sqlstate.starts_with("42") || sqlstate == "58P01"
}

/// Whether a SQLSTATE says that PostgreSQL, not the statement, is the trouble: connection
/// exceptions, insufficient resources, operator intervention except a cancelled statement.
pub fn is_outage(sqlstate: &str) -> bool {
    sqlstate.starts_with("08") || sqlstate.starts_with("53") || sqlstate.starts_with("57P0")
}

/// The same for the error of a statement. `configuration_limit_exceeded` is then a limit that was set
/// for it, `temp_file_limit`: a retry does not help, and PostgreSQL is not down.
pub fn is_outage_of_statement(sqlstate: &str) -> bool {
    is_outage(sqlstate) && sqlstate != "53400"
}

/// Whether an error says that PostgreSQL's lock table is full.
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

/// The same for what PostgreSQL said: the setting's name is in no other advice, and in every
/// language.
pub fn says_lock_table_full(said: &DatabaseError) -> bool {
    let hint = said.hint.as_deref().unwrap_or_default();
    said.sqlstate == "53200" && hint.contains("max_locks_per_transaction")
}

/// How soon a caller may try again after an outage.
pub const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The error of a connection that failed while it was in use.
pub fn outage(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Unavailable {
        retry_after: RETRY_AFTER,
        source: Some(source.into()),
    }
}
