//! Runs the statements of a plan.

use tidegate_plan::{ExecutionMode, Plan};
use tidegate_sql::{Commit, Mode, Pipeline, PipelineError, Transaction};

use super::{Context, ExecutionFailure};
use crate::error::Error;

/// Runs the statements of a plan. Returns the transaction if the caller has to commit it, and
/// `None` if there is nothing to commit.
///
/// # Errors
///
/// The first failure. `of_plan` converts the errors of the plan itself, such as an invalid value of
/// the request.
pub(super) async fn run<'c>(
    plan: &mut Plan<'_>,
    context: Context<'c>,
    of_plan: impl Fn(tidegate_plan::Error) -> ExecutionFailure,
) -> Result<Option<Box<dyn Transaction + 'c>>, ExecutionFailure> {
    if plan.mode() == ExecutionMode::InTurn {
        return run_in_turn(plan, context, of_plan).await.map(Some);
    }
    loop {
        let ran = send(plan, context, &of_plan).await?;
        ran.map_err(|failed| failure(plan, failed, context.anonymous))?;
        if !plan.restart() {
            return Ok(None);
        }
        if plan.is_from_template() {
            return Err(ExecutionFailure::TemplateUnusable);
        }
    }
}

/// Sends all statements in one pipeline. The outer result is the error of building the statements,
/// and the inner result is the error of running them.
async fn send(
    plan: &mut Plan<'_>,
    context: Context<'_>,
    of_plan: impl Fn(tidegate_plan::Error) -> ExecutionFailure,
) -> Result<Result<(), PipelineError>, ExecutionFailure> {
    let Context {
        executor,
        principal,
        options,
        ..
    } = context;
    let (mode, commit) = match plan.mode() {
        ExecutionMode::Single | ExecutionMode::Snapshot => (Mode::Snapshot, Commit::Together),
        ExecutionMode::Together => (Mode::ReadWrite, Commit::Together),
        ExecutionMode::AfterRows | ExecutionMode::InTurn => (Mode::ReadWrite, Commit::AfterRows),
    };
    let way = plan.mode();
    let mut steps = plan.steps().map_err(of_plan)?;
    Ok(match &mut steps[..] {
        [] => Ok(()),
        [step] if way == ExecutionMode::Single => {
            let query = executor.query(principal, step.statement, &options, &mut *step.sink);
            let ran = query.await.map(|_| ());
            ran.map_err(|error| PipelineError::at(0, error))
        }
        _ => {
            let pipeline = Pipeline {
                mode,
                steps,
                commit,
            };
            let ran = executor.pipeline(principal, pipeline, &options).await;
            ran.map(|_| ())
        }
    })
}

/// Runs the statements one after the other, because each needs the rows of the previous one.
async fn run_in_turn<'c>(
    plan: &mut Plan<'_>,
    context: Context<'c>,
    of_plan: impl Fn(tidegate_plan::Error) -> ExecutionFailure,
) -> Result<Box<dyn Transaction + 'c>, ExecutionFailure> {
    let Context {
        executor,
        principal,
        anonymous,
        options,
        ..
    } = context;
    let opening = executor.begin(principal, Mode::ReadWrite, &options).await;
    let mut transaction =
        opening.map_err(|error| ExecutionFailure::of_sql(error, None, anonymous))?;
    while let Some(step) = plan.next().map_err(&of_plan)? {
        let ran = transaction.query(step.statement, step.sink).await;
        ran.map_err(|error| failure(plan, PipelineError::at(0, error), anonymous))?;
    }
    Ok(transaction)
}

/// The failure for the error of a pipeline.
fn failure(plan: &Plan<'_>, failed: PipelineError, anonymous: bool) -> ExecutionFailure {
    let PipelineError { step, error, .. } = failed;
    if let tidegate_sql::Error::Deadline = error {
        let roots = plan.roots_from(step.unwrap_or_default());
        return match Error::of_sql(error, anonymous) {
            Ok(error) => ExecutionFailure::Deadline(roots, error),
            Err(error) => ExecutionFailure::Unavailable(error),
        };
    }
    let Some(step) = step else {
        return ExecutionFailure::of_sql(error, None, anonymous);
    };
    let error = plan.locate(step, error);
    match ExecutionFailure::of_sql(error, plan.root(step), anonymous) {
        ExecutionFailure::Field(_, error) | ExecutionFailure::Redefined(_, error)
            if plan.is_shared(step) =>
        {
            ExecutionFailure::Shared(error)
        }
        failure => failure,
    }
}
