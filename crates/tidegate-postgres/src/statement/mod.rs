//! Statements, their prepared forms, and their side effects on a session. This module does no I/O.

mod cache;
mod caller_switch;
mod prepared;
mod role_plans;
mod side_effects;
mod task;

pub(crate) use cache::StatementCache;
pub(crate) use caller_switch::{CallerSwitch, Seal, is_refused_seal};
pub(crate) use prepared::PreparedStatement;
pub(crate) use side_effects::{NameResolution, SideEffects, is_stateless};
pub(crate) use task::{AttemptError, RunError, StatementTask, TransactionPosition};
