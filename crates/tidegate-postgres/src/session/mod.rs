//! What happens on a connection that is lent: statements, transactions, resets.

pub(crate) mod batch;
pub(crate) mod cache;
mod commit;
pub(crate) mod execute;
pub(crate) mod lookup;
pub(crate) mod names;
mod own;
pub(crate) mod pipeline;
pub(crate) mod prefix;
pub(crate) mod prepare;
pub(crate) mod reset;
mod role_plans;
pub(crate) mod run_pipeline;
mod steps;
pub(crate) mod task;
