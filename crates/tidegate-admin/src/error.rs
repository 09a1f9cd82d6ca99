//! The errors of operations that the administrator runs in PostgreSQL.

use tidegate_pool::Cause;
use tidegate_wire::ConnectError;

/// The result of an administrative operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why an administrative operation failed. Most texts also say what the operator can do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A login to PostgreSQL failed, usually that of the administrator.
    #[error("cannot log in to the database {database} as {role}")]
    Connect {
        /// The name of the database.
        database: String,
        /// The role that could not log in.
        role: String,
        /// Why the connection failed.
        #[source]
        source: Box<ConnectError>,
    },
    /// `admin_url` has no password, and PostgreSQL asks for one.
    #[error(
        "cannot log in to the database {database} as {role}: PostgreSQL asks for a password, and `admin_url` has none; put it into the settings file or the environment (TIDEGATE_ADMIN_URL)"
    )]
    NoPassword {
        /// The name of the database.
        database: String,
        /// The administrator's role.
        role: String,
    },
    /// PostgreSQL refused a statement of a [`Script`](super::Script) or of
    /// [`Admin::run_as`](super::Admin::run_as).
    #[error("PostgreSQL refused `{statement}`")]
    Statement {
        /// The statement, without secrets.
        statement: String,
        /// The error of PostgreSQL.
        #[source]
        source: tokio_postgres::Error,
    },
    /// Any other statement failed. Most of them are queries of the catalog.
    #[error("a catalog query failed")]
    Catalog(#[from] tokio_postgres::Error),
    /// The database exists already.
    #[error("the database {0} exists already; `tidegate tenant adopt {0}` adopts it")]
    DatabaseExists(String),
    /// The database does not exist.
    #[error("there is no database {0}; correct the name, or create it with CREATE DATABASE")]
    NoDatabase(String),
    /// The role exists already, and Tidegate did not create it.
    #[error(
        "the role {0} exists already, and Tidegate did not create it; choose another name, or another role with `tenant adopt --as ROLE`"
    )]
    RoleExists(String),
    /// The role does not exist.
    #[error("there is no role {0}; `tidegate doctor` prints the SQL that creates it")]
    NoRole(String),
    /// Tidegate did not create the role, so it does not repair the role's login.
    #[error(
        "Tidegate did not create the role {0} and does not change it; `tidegate doctor` prints how to give it to a tenant"
    )]
    RoleNotManaged(String),
    /// PostgreSQL refuses the login of a role for a reason that Tidegate cannot repair.
    #[error("PostgreSQL refuses the login of {role}")]
    LoginRefused {
        /// The name of the role.
        role: String,
        /// The error of PostgreSQL.
        #[source]
        reason: Cause,
    },
    /// A database that cannot be a tenant: one of PostgreSQL's own, a template, or the control
    /// database.
    #[error("the database {name} cannot be a tenant: {reason}")]
    Reserved {
        /// The name of the database.
        name: String,
        /// The reason, as a clause about the database.
        reason: &'static str,
    },
    /// A database that cannot be the control database.
    #[error(
        "the database {name} cannot be the control database: {reason}; choose another name for `control_database`"
    )]
    Occupied {
        /// The name of the database.
        name: String,
        /// The reason, as a clause about the database.
        reason: &'static str,
    },
    /// The role of a user owns objects, so it is not dropped.
    #[error(
        "the user's role {role} owns {count} objects of the database, such as {example}; reassign them to the owner (--reassign) or drop them first"
    )]
    OwnsObjects {
        /// The name of the role.
        role: String,
        /// The number of objects that the role owns.
        count: i64,
        /// One of the objects.
        example: String,
    },
    /// Code that is to be reassigned would run with the new owner's privileges.
    #[error(
        "giving these objects to {heir} would let others act with its rights: {}; drop them or change them first (ALTER ROUTINE … SECURITY INVOKER, ALTER VIEW … SET (security_invoker), REVOKE)", .objects.join(", ")
    )]
    CarriesRights {
        /// The role that would get the objects.
        heir: String,
        /// The objects as PostgreSQL describes them, each with the reason why it is refused.
        objects: Vec<String>,
    },
    /// A role has privileges or objects outside of the tenant's database. `DROP OWNED` in that
    /// database would not remove them.
    #[error(
        "the role {role} has rights or objects outside of the tenant's database ({}); remove them there, for example with DROP OWNED BY \"{role}\", and try again", .places.join(", ")
    )]
    UsedElsewhere {
        /// The name of the role.
        role: String,
        /// The other databases, and the shared objects such as `tablespace fast`. The role has
        /// privileges on them, or objects in them.
        places: Vec<String>,
    },
    /// The role has privileges that the administrator cannot revoke.
    #[error("the role {role} cannot be dropped: {reason}")]
    StillUsed {
        /// The name of the role.
        role: String,
        /// The error of PostgreSQL, which names the objects.
        reason: String,
    },
    /// A role stays a member of a group, because the administrator cannot end the membership. Only
    /// the role that granted it, or a superuser, can do so.
    #[error(
        "the role {role} stays in the group {group}, which another role granted; run as a superuser and try again: {}", .sql.join(" ")
    )]
    StaysMember {
        /// The role that stays a member.
        role: String,
        /// The group's role.
        group: String,
        /// The SQL that removes the role from all groups in which it remains.
        sql: Vec<String>,
    },
    /// Another session held the advisory lock of the operation for too long. The text says what
    /// that session is doing.
    #[error("{0}; try again")]
    Busy(&'static str),
    /// The administrator lacks a privilege.
    #[error("the role {role} may not do this; run as a superuser:\n{}", .sql.join("\n"))]
    MissingRight {
        /// The administrator's role.
        role: String,
        /// The SQL that grants the privilege.
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

    /// The message of the innermost cause; for an error of PostgreSQL, with its detail.
    pub fn reason(&self) -> String {
        match self {
            Self::Statement { source, .. } | Self::Catalog(source) => match source.as_db_error() {
                Some(reported) => match reported.detail() {
                    Some(detail) => format!("{}: {detail}", reported.message()),
                    None => reported.message().to_owned(),
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
