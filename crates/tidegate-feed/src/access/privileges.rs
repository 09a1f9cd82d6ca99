//! The SELECT privileges of a role on a table and its columns.

use std::sync::Arc;

use tokio::time::Instant;

use crate::access::rls_policy::RlsPolicy;
use crate::error::{Error, Result};

/// A table with the privileges that a role has on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Privileges {
    pub(crate) schema: Box<str>,
    pub(crate) name: Box<str>,
    pub(crate) columns: Vec<ColumnPrivileges>,
    /// The names of the columns of the primary key, in its order.
    pub(crate) primary_key: Arc<[Box<str>]>,
    /// The fingerprints of the table and of the role when the privileges were read; see
    /// [`crate::access::fingerprint`].
    pub(crate) fingerprint: Box<str>,
    pub(crate) role_fingerprint: Box<str>,
    /// Whether a change of roles or memberships alone may change these privileges.
    pub(crate) depends_on_roles: bool,
    /// When the query began. The result of a query that began later replaces this one.
    pub(crate) queried_at: Instant,
    /// The policies, if row level security applies to the role.
    pub(crate) policy: Option<RlsPolicy>,
}

/// A column with the privileges that a role has on it.
#[expect(clippy::struct_excessive_bools, reason = "they are separate facts")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ColumnPrivileges {
    pub(crate) name: Box<str>,
    pub(crate) readable: bool,
    /// Whether the change log omits the column, because PostgreSQL generates it. Before PostgreSQL
    /// 18 that holds for every generated column.
    pub(crate) not_in_log: bool,
    /// Whether the change log contains the column for an old row.
    pub(crate) in_replica_identity: bool,
    /// Whether values may be stored out of line (TOAST). The change log omits such a value if it
    /// does not change.
    pub(crate) may_be_toasted: bool,
}

/// The result of a query for privileges.
#[derive(Clone, Debug)]
pub(crate) enum PrivilegeOutcome {
    Loaded(Arc<Privileges>),
    /// The table does not exist.
    NoTable,
    /// The role does not exist, or may not log in to the database.
    NoRole,
    /// The definition of the table changed during every attempt.
    Unstable,
    Failed(Arc<tidegate_sql::Error>),
}

impl PrivilegeOutcome {
    pub(crate) fn into_result(self) -> Result<Arc<Privileges>> {
        match self {
            Self::Loaded(privileges) => Ok(privileges),
            Self::NoTable => Err(Error::NoTable),
            Self::NoRole => Err(Error::NoRole),
            Self::Unstable => Err(Error::Internal(
                "the definition of the table keeps changing".into(),
            )),
            Self::Failed(error) => Err(Error::Privileges(error)),
        }
    }
}

impl Privileges {
    /// The column with this name. Fails unless the role may read it and the change log contains it.
    ///
    /// # Errors
    ///
    /// [`Error::NoColumn`] and [`Error::Unsupported`].
    pub(crate) fn column(&self, name: &str) -> Result<&ColumnPrivileges> {
        let column = self
            .columns
            .iter()
            .find(|column| &*column.name == name && column.readable);
        let column = column.ok_or_else(|| Error::NoColumn(name.into()))?;
        if column.not_in_log {
            return Err(Error::Unsupported(format!(
                "changes of the generated column `{name}` are not in the log"
            )));
        }
        Ok(column)
    }

    /// Whether the role may read all of these columns.
    pub(crate) fn may_read(&self, columns: &[Box<str>]) -> bool {
        columns.iter().all(|name| {
            self.columns
                .iter()
                .any(|column| column.name == *name && column.readable)
        })
    }
}
