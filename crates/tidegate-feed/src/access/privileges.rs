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
    /// The names of the columns of the primary key, in the order of the key; empty without a
    /// primary key.
    pub(crate) primary_key: Arc<[Box<str>]>,
    /// The fingerprint of the table when the privileges were read; see
    /// [`crate::access::fingerprint`].
    pub(crate) fingerprint: Box<str>,
    /// The fingerprint of the role when the privileges were read.
    pub(crate) role_fingerprint: Box<str>,
    /// Whether a change of roles or memberships may change these privileges, even if the table does
    /// not change.
    pub(crate) depends_on_roles: bool,
    /// Whether the table is a partition. The change log reports changes of its rows as changes of
    /// the partitioned table.
    pub(crate) is_partition: bool,
    /// When the query began. The result of a query that began later replaces this one.
    pub(crate) queried_at: Instant,
    /// The policies; `None` if row level security does not apply to the role.
    pub(crate) policy: Option<RlsPolicy>,
}

/// A column with the privileges that a role has on it.
#[expect(clippy::struct_excessive_bools, reason = "they are separate facts")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ColumnPrivileges {
    pub(crate) name: Box<str>,
    pub(crate) readable: bool,
    /// Whether the change log omits the column because it is a generated column. PostgreSQL 18 and
    /// later omit only virtual generated columns. Earlier versions omit all generated columns.
    pub(crate) not_in_log: bool,
    /// Whether the column belongs to the replica identity, so that the change log contains its
    /// value in old rows.
    pub(crate) in_replica_identity: bool,
    /// Whether values of the column may be stored out of line (TOAST). The change log omits such a
    /// value if an UPDATE does not change it.
    pub(crate) may_be_toasted: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum PrivilegeOutcome {
    Loaded(Arc<Privileges>),
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
    /// The column with this name.
    ///
    /// # Errors
    ///
    /// [`Error::NoColumn`] if the column does not exist or the role may not read it.
    /// [`Error::Unsupported`] if the change log does not contain the column.
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
