//! A statement that PostgreSQL has prepared on a connection.

use std::sync::Arc;

use tidegate_sql::RoleName;

use crate::metadata::StatementDescription;
use crate::purity::CachedPurity;

/// A statement that PostgreSQL has parsed and described.
#[derive(Debug)]
pub(crate) struct PreparedStatement {
    /// The name of the statement in the session; empty for a statement that is used once.
    pub(crate) name: String,
    /// The parameters and columns of the statement.
    pub(crate) description: Arc<StatementDescription>,
    /// The cached answer to whether the statement mentions an untrusted name.
    pub(crate) purity: Arc<CachedPurity>,
    /// The cached answer to whether the statement mentions a relation under row level security.
    pub(super) restricted: Arc<CachedPurity>,
    /// The only role that uses the statement, if the statement belongs to
    /// [`RolePlans`](super::role_plans::RolePlans); `None` if all roles use it.
    pub(crate) role: Option<RoleName>,
}

impl PreparedStatement {
    /// A prepared statement that all roles of the connection use.
    pub(crate) fn new(name: String, description: Arc<StatementDescription>) -> Self {
        Self {
            name,
            description,
            purity: Arc::default(),
            restricted: Arc::default(),
            role: None,
        }
    }

    /// The same statement with another name and description, for one role.
    pub(super) fn with(
        &self,
        name: String,
        description: &Arc<StatementDescription>,
        role: &RoleName,
    ) -> Self {
        Self {
            name,
            description: description.clone(),
            purity: self.purity.clone(),
            restricted: self.restricted.clone(),
            role: Some(role.clone()),
        }
    }
}
