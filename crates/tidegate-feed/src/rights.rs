//! What a role may read of a table.

use std::sync::Arc;

use tokio::time::Instant;

use crate::error::{Error, Result};
use crate::policy::Policy;

/// A table as a role sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rights {
    pub(crate) schema: Box<str>,
    pub(crate) name: Box<str>,
    pub(crate) columns: Vec<ColumnRights>,
    /// The columns of the primary key, in its order.
    pub(crate) primary: Arc<[Box<str>]>,
    /// The stamps of the table and of the role when this was read; see [`crate::stamps`].
    pub(crate) stamp: Box<str>,
    pub(crate) role_stamp: Box<str>,
    /// Whether a change of roles or memberships alone may change any of this.
    pub(crate) depends_on_roles: bool,
    /// When it was asked for: what was asked for later counts.
    pub(crate) asked: Instant,
    /// What row level security asks of a row, where it applies to the role.
    pub(crate) policy: Option<Policy>,
}

/// A column as a role sees it.
#[expect(clippy::struct_excessive_bools, reason = "they are separate facts")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ColumnRights {
    pub(crate) name: Box<str>,
    pub(crate) readable: bool,
    /// Computed by PostgreSQL, and not in the log: before version 18 every generated column.
    pub(crate) generated: bool,
    /// Whether the log tells it of an old row.
    pub(crate) key: bool,
    /// Whether its values may stand out of line, and so be left out when they do not change.
    pub(crate) long: bool,
}

/// What came of asking about a table.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Rights(Arc<Rights>),
    /// The table is not there, or the role may not see it.
    NoTable,
    /// The role is not there, or may not log in to the database.
    NoRole,
    /// Its definition changed during every attempt.
    Restless,
    Failed(Arc<tidegate_sql::Error>),
}

impl Answer {
    pub(crate) fn into_result(self) -> Result<Arc<Rights>> {
        match self {
            Self::Rights(rights) => Ok(rights),
            Self::NoTable => Err(Error::NoTable),
            Self::NoRole => Err(Error::NoRole),
            Self::Restless => Err(Error::Internal("the table's definition never rests".into())),
            Self::Failed(error) => Err(Error::Rights(error)),
        }
    }
}

impl Rights {
    /// A column that the role may read and the log tells.
    ///
    /// # Errors
    /// [`Error::NoColumn`] and [`Error::Unsupported`].
    pub(crate) fn column(&self, name: &str) -> Result<&ColumnRights> {
        let column = self
            .columns
            .iter()
            .find(|column| &*column.name == name && column.readable);
        let column = column.ok_or_else(|| Error::NoColumn(name.into()))?;
        if column.generated {
            return Err(Error::Unsupported(format!(
                "`{name}` is a generated column, which the log does not tell"
            )));
        }
        Ok(column)
    }

    /// Whether all of these may be read.
    pub(crate) fn may_read(&self, columns: &[Box<str>]) -> bool {
        columns.iter().all(|name| {
            self.columns
                .iter()
                .any(|column| column.name == *name && column.readable)
        })
    }
}
