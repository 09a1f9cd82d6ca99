//! The errors of commands. Their texts say what to do.

use std::error::Error as StdError;
use std::path::PathBuf;
use std::process::ExitCode;

use tidegate_admin::Error as AdminError;
use tidegate_wire::ConnectFault;

use crate::settings;

pub(crate) type Result<T = ()> = std::result::Result<T, CliError>;

/// The reason why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    #[error(transparent)]
    Setting(#[from] settings::Error),
    /// Something in the command line, the settings or the environment is missing, invalid or
    /// contradictory, and [`Self::Setting`] does not cover it.
    #[error("{0}")]
    Usage(String),
    /// The command is valid, but cannot be executed in the current state.
    #[error("{0}")]
    Refused(String),
    /// A URL of PostgreSQL in the settings is invalid.
    #[error("the setting admin_url, replication_url or replica_urls cannot be used: {0}")]
    Url(#[from] tidegate_wire::ConfigError),
    /// A connection of the service itself to PostgreSQL cannot be set up.
    #[error("cannot connect to PostgreSQL: {0}")]
    Connect(#[from] tidegate_wire::ConnectError),
    /// An operation of the administrator in PostgreSQL failed.
    #[error("{error}{}", reason(.error))]
    Admin { error: tidegate_admin::Error },
    /// An operation on a user or on a record of a user was refused.
    #[error(transparent)]
    Identity(tidegate_identity::Error),
    /// An operation on a client's record or on a key was refused.
    #[error(transparent)]
    Issuer(tidegate_oauth::Error),
    /// The schema of the control database cannot be created or migrated.
    #[error("{0}")]
    Store(#[from] tidegate_store::Error),
    /// Users, clients or keys cannot be read or written.
    #[error("the control database failed: {0}")]
    Records(#[from] tidegate_identity::StoreError),
    /// An operation on an external issuer was refused.
    #[error(transparent)]
    ExternalIssuer(#[from] tidegate_issuers::DirectoryError),
    /// The records of methods cannot be read or written.
    #[error("the control database failed: {0}")]
    Methods(#[from] tidegate_methods::StoreError),
    #[error("a statement of the service failed: {0}")]
    Statement(#[from] tidegate_sql::Error),
    /// The change log, or an object that it needs, cannot be used.
    #[error(transparent)]
    Log(#[from] tidegate_changelog::LogError),
    /// NATS cannot be used.
    #[error(transparent)]
    Bus(tidegate_bus::BusError),
    /// The demo's PostgreSQL failed.
    #[error(transparent)]
    Embedded(#[from] tidegate_embedded::Error),
    /// No suitable PostgreSQL is installed, and downloading it failed.
    #[error("{download}\n{missing}")]
    Download {
        /// The reason why the download failed.
        download: Box<tidegate_download::Error>,
        /// The reason why no installed PostgreSQL was used. The text names the packages to install.
        missing: Box<tidegate_embedded::Error>,
    },
    #[error(transparent)]
    Certificate(#[from] tidegate_server::CertificateError),
    #[error("cannot {action} {path}: {source}", path = .path.display())]
    File {
        /// The operation, in words that fit after "cannot".
        action: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    /// Reading the standard input or writing to the standard output failed.
    #[error("cannot read the standard input or write to the standard output: {0}")]
    Output(#[from] std::io::Error),
}

impl From<tidegate_admin::Error> for CliError {
    fn from(error: tidegate_admin::Error) -> Self {
        Self::Admin { error }
    }
}

impl From<tidegate_oauth::Error> for CliError {
    fn from(error: tidegate_oauth::Error) -> Self {
        match error {
            tidegate_oauth::Error::Identity(error) => error.into(),
            error => Self::Issuer(error),
        }
    }
}

impl From<tidegate_identity::Error> for CliError {
    fn from(error: tidegate_identity::Error) -> Self {
        use tidegate_identity::Error;
        use tidegate_identity::RoleError;
        match error {
            Error::Role(RoleError::Failed(cause) | RoleError::Unavailable(cause)) => {
                match cause.downcast::<AdminError>() {
                    Ok(error) => (*error).into(),
                    Err(cause) => Self::Identity(RoleError::Failed(cause).into()),
                }
            }
            Error::Role(RoleError::OwnsObjects { count, example }) => Self::Refused(format!(
                "the user owns {count} objects of the database, such as {example}; give them to \
                 the owner (--reassign) or drop them first"
            )),
            Error::Role(RoleError::CarriesRights(objects)) => Self::Refused(format!(
                "the user owns what would run with the rights of the tenant's owner:\n  {}\ndrop \
                 that or change it before: ALTER ROUTINE … SECURITY INVOKER, ALTER VIEW … SET \
                 (security_invoker = on), REVOKE",
                objects.join("\n  ")
            )),
            error => Self::Identity(error),
        }
    }
}

/// The cause of an administration error, as text that follows the error's own text. Empty if the
/// error has no separate cause.
fn reason(error: &tidegate_admin::Error) -> String {
    if error.source().is_none() {
        String::new()
    } else {
        format!(": {}", error.reason())
    }
}

impl CliError {
    /// The error for a setting that is given without another setting that it needs.
    pub(crate) fn incomplete(given: &str, missing: &str) -> Self {
        Self::Usage(format!("the setting {given} is given without {missing}"))
    }

    /// The exit code: 2 if the command line or the settings must be changed, otherwise 1.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Setting(_) | Self::Usage(_) => ExitCode::from(2),
            _ => ExitCode::FAILURE,
        }
    }

    /// Whether PostgreSQL is down, has no free connection or is busy, so that a retry may succeed.
    pub(crate) fn is_outage(&self) -> bool {
        match self {
            Self::Admin {
                error: AdminError::Connect { source, .. },
            } => matches!(
                source.fault(),
                ConnectFault::Unavailable | ConnectFault::Full
            ),
            Self::Admin {
                error: AdminError::Busy(_),
            } => true,
            _ => false,
        }
    }

    /// The text of the error, followed by the texts of all its causes.
    pub(crate) fn text(&self) -> String {
        let mut text = self.to_string();
        if matches!(self, Self::Admin { .. }) {
            return text;
        }
        let mut cause = self.source();
        while let Some(error) = cause {
            let message = error.to_string();
            if !text.contains(&message) {
                text.push_str(": ");
                text.push_str(&message);
            }
            if let Some(tidegate_sql::Error::Rejected(rejection)) = error.downcast_ref() {
                text.push_str(": ");
                text.push_str(&rejection.to_string());
            }
            cause = error.source();
        }
        text
    }
}

/// Adds the operation and the file to an I/O error.
pub(crate) trait FileContext<T> {
    /// Wraps an error that occurred on the file `path`. `action` is text that fits after "cannot".
    fn on(self, action: &'static str, path: impl Into<PathBuf>) -> Result<T>;
}

impl<T> FileContext<T> for std::io::Result<T> {
    fn on(self, action: &'static str, path: impl Into<PathBuf>) -> Result<T> {
        self.map_err(|source| CliError::File {
            action,
            path: path.into(),
            source,
        })
    }
}
