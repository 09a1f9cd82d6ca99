//! The principal and options with which calls run.

use tidegate_sql::{DatabaseName, Principal, QueryOptions, RoleUse};
use tidegate_values::datetime::Zone;

use crate::error::Error;

/// The principal and options with which calls run.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The principal of the caller. Its database is the database of the tenant whose methods are
    /// called.
    pub principal: &'a Principal,
    /// The options of the calls' statements.
    pub options: QueryOptions,
    /// The zone in which formatted values are written; `None` is UTC.
    pub timezone: Option<&'a Zone>,
}

impl Context<'_> {
    /// The database of the tenant whose methods are called. Fails with [`Error::MethodNotFound`]
    /// if the principal has no database.
    pub(crate) fn tenant(&self) -> Result<&DatabaseName, Error> {
        self.principal.database().ok_or(Error::MethodNotFound)
    }

    /// Whether the caller is a member, who shares a role with others.
    pub(crate) fn is_member(&self) -> bool {
        match self.principal {
            Principal::Role(login) => matches!(login.role_use, RoleUse::Member(_)),
            Principal::Control | Principal::Catalog(_) => false,
        }
    }
}

/// The outcome of dispatching a message.
#[derive(Debug, Default)]
pub struct DispatchOutcome {
    /// Whether there is a response. A message whose calls are all notifications has none.
    pub answered: bool,
    /// The errors, for the log and the metrics. If a batch is rolled back because some of its calls
    /// failed, only the errors of the failed calls are included.
    pub errors: Vec<Error>,
}

impl DispatchOutcome {
    pub(crate) fn record(&mut self, error: Error) {
        self.errors.push(error);
    }
}
