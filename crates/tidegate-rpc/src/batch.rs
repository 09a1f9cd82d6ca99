//! Batches: one transaction, all or nothing (JSON-RPC 2.0, section 6).

use std::sync::Arc;

use tidegate_sql::{
    Author, BoundStatement, Commit, Mode, Pipeline, PipelineError, RowSink, Step, Terms,
    TransactionOutcome,
};

use crate::answer::{Answer, CallSink};
use crate::context::{Context, Outcome};
use crate::dispatcher::Dispatcher;
use crate::error::Error;
use crate::output::Output;
use crate::payload::Call;
use crate::prepare::Prepared;
use crate::reply::{self, List};
use crate::result::{Discard, ResultWriter};

/// What failed: which calls, or the transaction around them.
enum Failure {
    /// By the index of the call, in ascending order.
    Calls(Vec<(usize, Error)>),
    /// No call was to blame and none ran; the error is everybody's answer.
    Whole(Error),
    /// No call was to blame, and all were undone.
    Commit(Error),
}

impl Failure {
    /// Whether PostgreSQL rolled back something that may go well the next time: a table that was
    /// redefined after a statement on it had been prepared, or others that wrote at once.
    fn may_pass(&self) -> bool {
        let passing = |(_, error): &(usize, Error)| match error {
            Error::Statement(tidegate_sql::Error::Rejected(refused)) => refused.sqlstate == "40001",
            _ => false,
        };
        matches!(self, Self::Calls(errors) if errors.iter().all(passing))
    }
}

/// Runs a batch and writes its answer. What PostgreSQL asks to run again is run again once.
pub(crate) async fn run(
    dispatcher: &Dispatcher,
    context: &Context<'_>,
    calls: &[Call<'_>],
    out: &mut dyn Output,
) -> Outcome {
    let mut outcome = Outcome {
        answered: calls.iter().any(|call| call.id.is_some()),
        ..Outcome::default()
    };
    let mut attempted = attempt(dispatcher, context, calls, out).await;
    if attempted.as_ref().is_err_and(Failure::may_pass) {
        out.clear();
        attempted = attempt(dispatcher, context, calls, out).await;
    }
    if let Err(failure) = attempted {
        out.clear();
        answer(calls, &failure, out);
        match failure {
            Failure::Calls(errors) => errors
                .into_iter()
                .for_each(|(_, error)| outcome.note(error)),
            Failure::Whole(error) | Failure::Commit(error) => outcome.note(error),
        }
    }
    outcome
}

async fn attempt(
    dispatcher: &Dispatcher,
    context: &Context<'_>,
    calls: &[Call<'_>],
    out: &mut dyn Output,
) -> Result<(), Failure> {
    let prepared = prepare(dispatcher, context, calls).await?;
    let terms = Terms {
        author: author(&prepared),
        ..context.terms
    };
    let answer = Answer::new(out);
    let (mut statements, mut sinks) = (Vec::new(), Vec::new());
    for (call, prepared) in calls.iter().zip(prepared) {
        let Prepared {
            statement,
            format,
            writer,
            ..
        } = prepared;
        statements.push(statement);
        sinks.push(call.id.map(|id| {
            let result = ResultWriter::new(writer, format);
            CallSink::new(&answer, id, result)
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
            .map(|(statement, sink)| Step { statement, sink })
            .collect(),
        commit: Commit::AfterRows,
    };
    let running = dispatcher
        .executor
        .pipeline(context.principal, pipeline, &terms);
    let ran = running.await;
    ran.map_err(|failed| failure(failed, &statements))?;
    answer.end();
    Ok(())
}

/// Whom the text of the whole batch is from: of several, the one who is trusted least.
fn author(prepared: &[Prepared]) -> Author {
    if prepared.iter().all(|call| call.author == Author::Owner) {
        Author::Owner
    } else {
        Author::Caller
    }
}

/// PostgreSQL says for certain that it did not commit; a lost connection says nothing.
fn failure(failed: PipelineError, statements: &[BoundStatement]) -> Failure {
    let PipelineError {
        step,
        error,
        outcome,
    } = failed;
    match (step, error) {
        (_, error) if outcome != TransactionOutcome::RolledBack => {
            Failure::Whole(Error::InDoubt(error))
        }
        (Some(index), error) => {
            let placeholders = statements[index].statement.placeholders();
            Failure::Calls(vec![(index, Error::of_statement(error, placeholders))])
        }
        (None, refused @ tidegate_sql::Error::Rejected(_)) => {
            Failure::Commit(Error::Statement(refused))
        }
        (None, error) => Failure::Whole(Error::Statement(error)),
    }
}

/// Everything that can fail without the database does so before the transaction begins.
async fn prepare(
    dispatcher: &Dispatcher,
    context: &Context<'_>,
    calls: &[Call<'_>],
) -> Result<Vec<Prepared>, Failure> {
    let names: Vec<_> = calls.iter().map(|call| &*call.method).collect();
    let tenant = context.tenant().map_err(Failure::Whole)?;
    let methods = dispatcher.registry.lookup_all(tenant, &names).await;
    let methods = methods.map_err(|error| Failure::Whole(Error::Registry(error)))?;
    let (mut prepared, mut errors) = (Vec::with_capacity(calls.len()), Vec::new());
    for (index, (call, method)) in calls.iter().zip(methods).enumerate() {
        let method = method.ok_or(Error::MethodNotFound);
        match method.and_then(|method| Prepared::new(&method, call, None, context.timezone)) {
            Ok(call) => prepared.push(call),
            Err(error) => errors.push((index, error)),
        }
    }
    if errors.is_empty() {
        Ok(prepared)
    } else {
        Err(Failure::Calls(errors))
    }
}

/// Writes the answer of a batch that failed.
fn answer(calls: &[Call<'_>], failure: &Failure, out: &mut dyn Output) {
    let (errors, others) = match failure {
        Failure::Calls(errors) => {
            let unheard = |(index, _): &&(usize, Error)| calls[*index].is_notification();
            let cause = errors.iter().find(unheard).map(|(_, error)| cause(error));
            (&errors[..], &Error::RolledBack { cause })
        }
        Failure::Whole(error) => (&[][..], error),
        Failure::Commit(error) => {
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
