//! Errors of the control schema.

use tidegate_identity::StoreError;

/// A result whose error is [`Error`] by default.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why the control schema could not be read, written or migrated.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database cannot be reached now; a retry may succeed.
    #[error("the control database cannot be reached")]
    Unavailable(#[source] tidegate_sql::Error),
    /// A newer version of the program has migrated the schema.
    #[error(
        "the control schema is at version {found}, which is newer than this program knows \
         ({known}): run the newer program, or restore the control database from before"
    )]
    NewerSchema {
        /// The version of the schema in the database.
        found: u32,
        /// The newest version that this program knows.
        known: u32,
    },
    /// The control database was set up with another master key.
    #[error(
        "the control database belongs to another master key: give this server the key with which \
         the database was set up"
    )]
    OtherMasterKey,
    /// The database refused a statement or returned something unexpected.
    #[error("the control schema failed")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    pub(crate) fn failed(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Failed(source.into())
    }

    /// The name of the constraint that the statement violated; `None` for any other error.
    pub(crate) fn broken_constraint(&self) -> Option<&str> {
        let Self::Failed(source) = self else {
            return None;
        };
        match source.downcast_ref::<tidegate_sql::Error>()? {
            tidegate_sql::Error::Rejected(rejection) => rejection.constraint.as_deref(),
            _ => None,
        }
    }
}

impl From<tidegate_sql::Error> for Error {
    fn from(error: tidegate_sql::Error) -> Self {
        use tidegate_sql::Error as Sql;
        match error {
            Sql::Unavailable { .. } | Sql::PoolTimeout { .. } | Sql::Deadline | Sql::NoDatabase => {
                Self::Unavailable(error)
            }
            error => Self::failed(error),
        }
    }
}

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        match error {
            Error::Unavailable(_) => Self::Unavailable(Box::new(error)),
            error => Self::Failed(Box::new(error)),
        }
    }
}
