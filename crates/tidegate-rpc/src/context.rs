//! As whom, and on which terms, calls run.

use tidegate_sql::{DatabaseName, Principal, Terms};
use tidegate_values::datetime::Zone;

use crate::error::Error;

/// As whom, and on which terms, calls run.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The caller; its database is the tenant whose methods are called.
    pub principal: &'a Principal,
    /// What the calls of one message have to keep together.
    pub terms: Terms,
    /// The zone of formatted values; `None` is UTC.
    pub timezone: Option<&'a Zone>,
}

impl Context<'_> {
    /// Whose methods are called; the service itself has none.
    pub(crate) fn tenant(&self) -> Result<&DatabaseName, Error> {
        self.principal.database().ok_or(Error::MethodNotFound)
    }
}

/// What became of a message.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Whether there is an answer: notifications alone have none.
    pub answered: bool,
    /// What failed, for logs and metrics. Calls that were only rolled back are not among it.
    pub errors: Vec<Error>,
}

impl Outcome {
    /// The errors that are faults of the service; the answer does not tell their causes.
    pub fn faults(&self) -> impl Iterator<Item = &Error> {
        let errors = self.errors.iter();
        errors.filter(|error| error.is_fault_of_service())
    }

    pub(crate) fn note(&mut self, error: Error) {
        self.errors.push(error);
    }
}
