//! Errors of administration.

use tidegate_pool::Cause;
use tidegate_wire::ConnectError;

/// The result of an administrative operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an administrative operation failed. The messages say what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// PostgreSQL cannot be reached as the administrator.
    #[error("cannot log in to the database {database} as {role}")]
    Connect {
        /// The database.
        database: String,
        /// The administrator.
        role: String,
        /// Why.
        #[source]
        source: Box<ConnectError>,
    },
    /// `admin_url` has no password, and PostgreSQL asks for one.
    #[error(
        "cannot log in to the database {database} as {role}: PostgreSQL asks for a password, and the address has none; it belongs into the settings file or the environment (TIDEGATE_ADMIN_URL)"
    )]
    NoPassword {
        /// The database.
        database: String,
        /// The administrator.
        role: String,
    },
    /// PostgreSQL refused an internal statement.
    #[error("PostgreSQL refused `{statement}`")]
    Statement {
        /// The statement, without secrets.
        statement: String,
        /// The error of PostgreSQL.
        #[source]
        source: tokio_postgres::Error,
    },
    /// A catalog query failed.
    #[error("PostgreSQL did not answer a question about its catalog")]
    Catalog(#[from] tokio_postgres::Error),
    /// The database exists already.
    #[error(
        "the database {0} is there already; `tidegate tenant adopt {0}` puts the service in front of it"
    )]
    DatabaseExists(String),
    /// The database does not exist.
    #[error("there is no database {0}")]
    NoDatabase(String),
    /// The role exists already.
    #[error(
        "the role {0} is there already, and Tidegate did not make it; choose another name, or another role with `tenant adopt --as ROLE`"
    )]
    ForeignRole(String),
    /// The role does not exist.
    #[error("there is no role {0}; `tidegate doctor` prints what makes it")]
    NoRole(String),
    /// Tidegate did not create the role.
    #[error(
        "Tidegate did not make the role {0}, and leaves it as it is; `tidegate doctor` tells how to give it to a tenant"
    )]
    NotOurs(String),
    /// PostgreSQL refuses a login for a reason that cannot be repaired.
    #[error("PostgreSQL refuses the login of {role}")]
    LoginRefused {
        /// The role.
        role: String,
        /// The error of PostgreSQL.
        #[source]
        reason: Cause,
    },
    /// A database that belongs to the cluster or to the service.
    #[error("the database {name} cannot be a tenant: {reason}")]
    Reserved {
        /// The database.
        name: String,
        /// Why.
        reason: &'static str,
    },
    /// A database that cannot be the service's own.
    #[error(
        "the database {name} cannot be the control database: {reason}; choose another name for `control_database`"
    )]
    Occupied {
        /// The database.
        name: String,
        /// Why.
        reason: &'static str,
    },
    /// The user owns objects.
    #[error(
        "the user's role {role} owns {count} objects of the database, such as {example}; reassign them to the owner (--reassign) or drop them first"
    )]
    OwnsObjects {
        /// The role.
        role: String,
        /// How many.
        count: i64,
        /// One of them.
        example: String,
    },
    /// Code that is to be reassigned would run with the new owner's privileges.
    #[error(
        "giving these objects to {heir} would let others act with its rights: {}; drop them or change them first (ALTER ROUTINE … SECURITY INVOKER, ALTER VIEW … SET (security_invoker), REVOKE)", .objects.join(", ")
    )]
    CarriesRights {
        /// The role that would get the objects.
        heir: String,
        /// The objects as PostgreSQL describes them, and why.
        objects: Vec<String>,
    },
    /// Dropping what a role has in one database does not remove what it has in others.
    #[error(
        "the role {role} has rights or objects outside of the tenant's database ({}); take them away there, such as by DROP OWNED BY \"{role}\", and come again", .places.join(", ")
    )]
    UsedElsewhere {
        /// The role.
        role: String,
        /// The names of databases, or of shared objects (`tablespace fast`).
        places: Vec<String>,
    },
    /// The role has privileges that the administrator cannot revoke.
    #[error("the role {role} cannot be dropped: {reason}")]
    StillUsed {
        /// The role.
        role: String,
        /// The error of PostgreSQL, with the objects.
        reason: String,
    },
    /// A membership can only be ended by the role that granted it, or by a superuser.
    #[error(
        "the role {role} stays in the group {group}, into which somebody else put it; run as a superuser and come again: {}", .sql.join(" ")
    )]
    StaysMember {
        /// The member.
        role: String,
        /// The group's role.
        group: String,
        /// The SQL that removes the role from all groups in which it remains.
        sql: Vec<String>,
    },
    /// Another session is doing what only one may do at a time.
    #[error("{0}; try again")]
    Busy(&'static str),
    /// The administrator lacks a privilege.
    #[error("the role {role} may not do this; run as a superuser:\n{}", .sql.join("\n"))]
    MissingRight {
        /// The administrator.
        role: String,
        /// The SQL that grants it.
        sql: Vec<String>,
    },
}

impl Error {
    pub(super) fn of_statement(source: tokio_postgres::Error, shown: &str) -> Self {
        Self::Statement {
            statement: shown.to_owned(),
            source,
        }
    }

    /// The SQLSTATE of PostgreSQL's error, if there is one.
    pub fn sqlstate(&self) -> Option<&str> {
        match self {
            Self::Statement { source, .. } | Self::Catalog(source) => {
                source.code().map(tokio_postgres::error::SqlState::code)
            }
            Self::Connect { source, .. } => match &**source {
                ConnectError::Refused(rejection) | ConnectError::Limited(rejection) => {
                    Some(&rejection.sqlstate)
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The message of the innermost cause.
    pub fn reason(&self) -> String {
        match self {
            Self::Statement { source, .. } | Self::Catalog(source) => match source.as_db_error() {
                Some(said) => match said.detail() {
                    Some(detail) => format!("{}: {detail}", said.message()),
                    None => said.message().to_owned(),
                },
                None => source.to_string(),
            },
            Self::Connect { source, .. } => match &**source {
                ConnectError::Unreachable(cause) => cause.to_string(),
                ConnectError::Refused(rejection) | ConnectError::Limited(rejection) => {
                    rejection.message.clone()
                }
                other => other.to_string(),
            },
            Self::LoginRefused { reason, .. } => reason.to_string(),
            other => other.to_string(),
        }
    }
}
