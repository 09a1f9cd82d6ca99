//! Runs batches. A batch is one transaction, which commits all calls or none (JSON-RPC 2.0, section
//! 6).

use std::sync::Arc;

use tidegate_methods::Registry;
use tidegate_sql::{
    Author, Commit, Executor, Mode, Pipeline, PipelineError, PipelineStep, QueryOptions, RowSink,
    TransactionOutcome,
};

use crate::batch_response::{BatchResponse, CallSink};
use crate::bind::BoundCall;
use crate::call::Call;
use crate::context::{Context, DispatchOutcome};
use crate::error::Error;
use crate::output::Output;
use crate::reply::{self, List};
use crate::result::{Discard, ResultWriter};

/// The reason why a batch failed.
enum BatchFailure {
    /// The calls that failed: the index and the error of each, in ascending order of the indexes.
    Calls(Vec<(usize, Error)>),
    /// The failure was not caused by a single call; for example, no connection could be opened.
    /// Every call with an id gets this error as its response.
    Whole(Error),
    /// The commit failed, and everything was rolled back.
    Commit(Error),
}

impl BatchFailure {
    /// Whether a retry may succeed: all errors have SQLSTATE 40001. PostgreSQL reports this code if
    /// concurrent writes conflicted. The executor reports it if a table was redefined after a
    /// statement on the table had been prepared.
    fn is_retryable(&self) -> bool {
        let passing = |(_, error): &(usize, Error)| match error {
            Error::Statement(tidegate_sql::Error::Rejected(refused)) => refused.sqlstate == "40001",
            _ => false,
        };
        matches!(self, Self::Calls(errors) if errors.iter().all(passing))
    }
}

/// Runs a batch and writes its response. After a failure that is retryable, the batch is tried once
/// more.
pub(crate) async fn run(
    registry: &Registry,
    executor: &dyn Executor,
    context: &Context<'_>,
    calls: &[Call<'_>],
    out: &mut dyn Output,
) -> DispatchOutcome {
    let mut outcome = DispatchOutcome {
        answered: calls.iter().any(|call| call.id.is_some()),
        ..DispatchOutcome::default()
    };
    let mut attempted = attempt(registry, executor, context, calls, out).await;
    if attempted.as_ref().is_err_and(BatchFailure::is_retryable) {
        out.clear();
        attempted = attempt(registry, executor, context, calls, out).await;
    }
    if let Err(failure) = attempted {
        out.clear();
        write_failure(calls, &failure, out);
        match failure {
            BatchFailure::Calls(errors) => errors
                .into_iter()
                .for_each(|(_, error)| outcome.record(error)),
            BatchFailure::Whole(error) | BatchFailure::Commit(error) => outcome.record(error),
        }
    }
    outcome
}

async fn attempt(
    registry: &Registry,
    executor: &dyn Executor,
    context: &Context<'_>,
    calls: &[Call<'_>],
    out: &mut dyn Output,
) -> Result<(), BatchFailure> {
    let bound = bind(registry, context, calls).await?;
    let options = QueryOptions {
        author: author(&bound),
        ..context.options
    };
    let response = BatchResponse::new(out);
    let (mut statements, mut sinks) = (Vec::new(), Vec::new());
    for (call, bound) in calls.iter().zip(bound) {
        let BoundCall {
            statement,
            format,
            writer,
            ..
        } = bound;
        statements.push(statement);
        sinks.push(call.id.map(|id| {
            let result = ResultWriter::new(writer, format);
            CallSink::new(&response, id, result)
        }));
    }
    let mut silence: Vec<_> = sinks.iter().map(|_| Discard).collect();
    let sinks = sinks.iter_mut().zip(&mut silence);
    let sinks = sinks.map(|(sink, discard)| match sink {
        Some(sink) => sink as &mut dyn RowSink,
        None => discard,
    });
    let steps = statements.iter().zip(sinks);
    let pipeline = Pipeline {
        mode: Mode::ReadWrite,
        steps: steps
            .map(|(statement, sink)| PipelineStep { statement, sink })
            .collect(),
        commit: Commit::AfterRows,
    };
    let running = executor.pipeline(context.principal, pipeline, &options);
    let ran = running.await;
    ran.map_err(failure)?;
    response.end();
    Ok(())
}

/// The author of the batch: the least trusted of the authors of its calls.
fn author(bound: &[BoundCall]) -> Author {
    if bound.iter().all(|call| call.author == Author::Owner) {
        Author::Owner
    } else {
        Author::Caller
    }
}

/// Converts the error of a pipeline. Unless the transaction was rolled back, the batch is in doubt:
/// it may have been committed, for example if the connection was lost after COMMIT had been sent.
fn failure(failed: PipelineError) -> BatchFailure {
    let PipelineError {
        step,
        error,
        outcome,
    } = failed;
    match (step, error) {
        (_, error) if outcome != TransactionOutcome::RolledBack => {
            BatchFailure::Whole(Error::InDoubt(error))
        }
        (Some(index), error) => BatchFailure::Calls(vec![(index, Error::of_statement(error))]),
        (None, refused @ tidegate_sql::Error::Rejected(_)) => {
            BatchFailure::Commit(Error::Statement(refused))
        }
        (None, error) => BatchFailure::Whole(Error::Statement(error)),
    }
}

/// Looks up the methods of all calls and binds the values. This is done before a transaction is
/// opened, so that a batch with an invalid call opens none.
async fn bind(
    registry: &Registry,
    context: &Context<'_>,
    calls: &[Call<'_>],
) -> Result<Vec<BoundCall>, BatchFailure> {
    let names: Vec<_> = calls.iter().map(|call| &*call.method).collect();
    let tenant = context.tenant().map_err(BatchFailure::Whole)?;
    let methods = registry.lookup_all(tenant, &names).await;
    let methods = methods.map_err(|error| BatchFailure::Whole(Error::Registry(error)))?;
    let (mut bound, mut errors) = (Vec::with_capacity(calls.len()), Vec::new());
    for (index, (call, method)) in calls.iter().zip(methods).enumerate() {
        let method = method.ok_or(Error::MethodNotFound);
        match method.and_then(|method| BoundCall::new(context, &method, call, None)) {
            Ok(call) => bound.push(call),
            Err(error) => errors.push((index, error)),
        }
    }
    if errors.is_empty() {
        Ok(bound)
    } else {
        Err(BatchFailure::Calls(errors))
    }
}

fn write_failure(calls: &[Call<'_>], failure: &BatchFailure, out: &mut dyn Output) {
    let (errors, others) = match failure {
        BatchFailure::Calls(errors) => {
            // A notification has no response. If a notification failed, the other calls get its
            // error as their cause. Otherwise the client would not see the error.
            let unheard = |(index, _): &&(usize, Error)| calls[*index].is_notification();
            let cause = errors.iter().find(unheard).map(|(_, error)| cause(error));
            (&errors[..], &Error::RolledBack { cause })
        }
        BatchFailure::Whole(error) => (&[][..], error),
        BatchFailure::Commit(error) => {
            let cause = Some(cause(error));
            (&[][..], &Error::RolledBack { cause })
        }
    };
    let mut errors = errors.iter().peekable();
    let mut list = List::default();
    for (index, call) in calls.iter().enumerate() {
        let own = errors.next_if(|(failed, _)| *failed == index);
        let Some(id) = call.id else { continue };
        list.separate(out.bytes());
        reply::write_error(id, own.map_or(others, |(_, error)| error), out.bytes());
    }
    if list.has_begun() {
        out.bytes().extend_from_slice(b"]");
    }
}

fn cause(error: &Error) -> Arc<str> {
    reply::error_object(error).into()
}
