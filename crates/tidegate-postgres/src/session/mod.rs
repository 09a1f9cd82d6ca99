//! Statements and transactions on a connection that is checked out.

mod commit;
mod execute;
mod execution;
mod internal_query;
mod pipeline;
mod pipeline_outcome;
mod pipeline_request;
mod pipeline_run;
mod prepare;
mod rejection;
mod type_hints;
mod type_lookup;

pub(crate) use execute::take_reported_ddl;
pub(crate) use execution::ParameterSet;
pub(crate) use pipeline::{PipelineFailure, run_pipeline};
pub(crate) use pipeline_request::PipelineRequest;
pub(crate) use prepare::push_parse;
