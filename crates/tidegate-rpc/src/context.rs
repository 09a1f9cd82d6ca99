//! The principal and options of calls.

use tidegate_sql::{DatabaseName, Principal, QueryOptions};
use tidegate_values::datetime::Zone;

use crate::error::Error;

/// The principal and options of calls.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The caller. Its database is the tenant whose methods are called.
    pub principal: &'a Principal,
    /// The options of the statements.
    pub options: QueryOptions,
    /// The zone of formatted values; `None` is UTC.
    pub timezone: Option<&'a Zone>,
}

impl Context<'_> {
    /// The tenant whose methods are called. The service itself has no methods.
    pub(crate) fn tenant(&self) -> Result<&DatabaseName, Error> {
        self.principal.database().ok_or(Error::MethodNotFound)
    }
}

/// The result of a message.
#[derive(Debug, Default)]
pub struct DispatchOutcome {
    /// Whether there is a response. Notifications have none.
    pub answered: bool,
    /// The errors, for logs and metrics, without those of calls that were only rolled back.
    pub errors: Vec<Error>,
}

impl DispatchOutcome {
    /// The errors that are the service's fault. The response does not show their causes.
    pub fn faults(&self) -> impl Iterator<Item = &Error> {
        let errors = self.errors.iter();
        errors.filter(|error| error.is_fault_of_service())
    }

    pub(crate) fn note(&mut self, error: Error) {
        self.errors.push(error);
    }
}
