//! Running the statements of a plan.

use tidegate_plan::{Plan, Way};
use tidegate_sql::{Commit, Mode, Pipeline, PipelineError, Transaction};

use super::{Context, Failure};
use crate::error::Error;

/// Runs the statements of a plan. A transaction comes back where what they wrote is still to be
/// committed.
///
/// # Errors
///
/// The first failure; `of_plan` makes one of an error in a value of the request.
pub(super) async fn run<'c>(
    plan: &mut Plan<'_>,
    context: Context<'c>,
    of_plan: impl Fn(tidegate_plan::Error) -> Failure,
) -> Result<Option<Box<dyn Transaction + 'c>>, Failure> {
    if plan.way() == Way::InTurn {
        return in_turn(plan, context, of_plan).await.map(Some);
    }
    loop {
        let ran = send(plan, context, &of_plan).await?;
        ran.map_err(|failed| failure(plan, failed, context.anonymous))?;
        if !plan.restart() {
            return Ok(None);
        }
        if plan.is_from_template() {
            return Err(Failure::Outgrown);
        }
    }
}

/// Sends all statements at once.
async fn send(
    plan: &mut Plan<'_>,
    context: Context<'_>,
    of_plan: impl Fn(tidegate_plan::Error) -> Failure,
) -> Result<Result<(), PipelineError>, Failure> {
    let Context {
        executor,
        principal,
        terms,
        ..
    } = context;
    let (mode, commit) = match plan.way() {
        Way::Alone | Way::Snapshot => (Mode::Snapshot, Commit::Together),
        Way::Together => (Mode::ReadWrite, Commit::Together),
        Way::AfterRows | Way::InTurn => (Mode::ReadWrite, Commit::AfterRows),
    };
    let way = plan.way();
    let mut steps = plan.steps().map_err(of_plan)?;
    Ok(match &mut steps[..] {
        [] => Ok(()),
        [step] if way == Way::Alone => {
            let query = executor.query(principal, step.statement, &terms, &mut *step.sink);
            let ran = query.await.map(|_| ());
            ran.map_err(|error| PipelineError::at(0, error))
        }
        _ => {
            let pipeline = Pipeline {
                mode,
                steps,
                commit,
            };
            let ran = executor.pipeline(principal, pipeline, &terms).await;
            ran.map(|_| ())
        }
    })
}

/// Runs one statement after another: each needs what the one before returned.
async fn in_turn<'c>(
    plan: &mut Plan<'_>,
    context: Context<'c>,
    of_plan: impl Fn(tidegate_plan::Error) -> Failure,
) -> Result<Box<dyn Transaction + 'c>, Failure> {
    let Context {
        executor,
        principal,
        anonymous,
        terms,
        ..
    } = context;
    let opening = executor.begin(principal, Mode::ReadWrite, &terms).await;
    let mut transaction = opening.map_err(|error| Failure::of_sql(error, None, anonymous))?;
    while let Some(step) = plan.next().map_err(&of_plan)? {
        let ran = transaction.query(step.statement, step.sink).await;
        ran.map_err(|error| failure(plan, PipelineError::at(0, error), anonymous))?;
    }
    Ok(transaction)
}

/// What a failed pipeline means.
fn failure(plan: &Plan<'_>, failed: PipelineError, anonymous: bool) -> Failure {
    let PipelineError { step, error, .. } = failed;
    if let tidegate_sql::Error::Deadline = error {
        let roots = plan.roots_from(step.unwrap_or_default());
        return match Error::of_sql(error, anonymous) {
            Ok(error) => Failure::Deadline(roots, error),
            Err(error) => Failure::Unavailable(error),
        };
    }
    let Some(step) = step else {
        return Failure::of_sql(error, None, anonymous);
    };
    let error = plan.locate(step, error);
    match Failure::of_sql(error, plan.root(step), anonymous) {
        Failure::Field(_, error) | Failure::Redefined(_, error) if plan.is_shared(step) => {
            Failure::Shared(error)
        }
        failure => failure,
    }
}
