//! Statements, their prepared forms, and their side effects on a session. This module does no I/O.

mod cache;
mod role_plans;
mod side_effects;
mod task;

pub(crate) use cache::StatementCache;
pub(crate) use side_effects::{NameResolution, SideEffects, is_stateless};
pub(crate) use task::{
    AttemptError, CallerSwitch, PreparedStatement, RunError, Seal, StatementTask,
    TransactionPosition, is_refused_seal,
};
