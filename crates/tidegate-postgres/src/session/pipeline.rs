//! Runs several statements in one write and one transaction.
//!
//! A pipeline in read-write mode needs no `BEGIN`: PostgreSQL runs everything before a Sync as one
//! transaction and commits it at the Sync (PostgreSQL, "Message Flow", "Pipelining"). Only a
//! pipeline whose statements share a snapshot has a `BEGIN`.

use std::sync::Arc;

use tidegate_sql::{Completion, Error, PipelineError, RowSink};

use super::execution::Execution;
use super::pipeline_request::PipelineRequest;
use super::pipeline_run::PipelineRun;
use crate::connection::Connection;
use crate::metadata::StatementKey;
use crate::statement::{AttemptError, PreparedStatement, StatementCache, StatementTask};

/// Why a pipeline failed.
pub(crate) enum PipelineFailure {
    /// Nothing has run. The statements have to run one after the other.
    NotPipelined,
    /// PostgreSQL refused to switch to the caller's role, or refused the sealed claims of a member.
    /// No statement of the pipeline has taken effect.
    RoleRefused(Error),
    /// Any other failure.
    Failed(PipelineError),
}

impl From<Error> for PipelineFailure {
    fn from(error: Error) -> Self {
        Self::Failed(error.into())
    }
}

/// Why one attempt to run a pipeline failed.
pub(super) enum PipelineAttemptError {
    /// A cached description was stale. Nothing has taken effect, and the sinks have received
    /// nothing.
    Stale,
    Failed(PipelineFailure),
}

impl From<Error> for PipelineAttemptError {
    fn from(error: Error) -> Self {
        Self::Failed(error.into())
    }
}

impl From<PipelineError> for PipelineAttemptError {
    fn from(error: PipelineError) -> Self {
        Self::Failed(PipelineFailure::Failed(error))
    }
}

/// Runs the statements of a pipeline and pushes the rows of each into its sink.
///
/// Statements without a cached description are described first. On return the transaction has
/// ended, except after an error of a sink, a broken stream or a passed deadline. In these cases the
/// transaction may still be open, and the connection must be recovered.
pub(crate) async fn run_pipeline(
    connection: &mut Connection,
    request: &PipelineRequest<'_>,
    sinks: &mut [&mut dyn RowSink],
) -> Result<Vec<Completion>, PipelineFailure> {
    match attempt(connection, request, sinks).await {
        Err(PipelineAttemptError::Stale) => {}
        Err(PipelineAttemptError::Failed(failure)) => return Err(failure),
        Ok(completions) => return Ok(completions),
    }
    connection.rewind(request.deadline()).await?;
    match attempt(connection, request, sinks).await {
        Err(PipelineAttemptError::Stale) => Err(PipelineFailure::NotPipelined),
        Err(PipelineAttemptError::Failed(failure)) => Err(failure),
        Ok(completions) => Ok(completions),
    }
}

async fn attempt(
    connection: &mut Connection,
    request: &PipelineRequest<'_>,
    sinks: &mut [&mut dyn RowSink],
) -> Result<Vec<Completion>, PipelineAttemptError> {
    for task in &request.tasks {
        connection.note_side_effects(task, false);
    }
    let Some(first) = request.tasks.first() else {
        return Ok(Vec::new());
    };
    if !connection.may_use_cached(first).await? {
        return Err(PipelineAttemptError::Failed(PipelineFailure::NotPipelined));
    }
    let known = match known(&mut connection.session.statements, request) {
        Some(known) => known,
        None => describe_unknown(connection, request).await?,
    };
    let steps = request.tasks.iter().zip(known);
    let steps: Vec<_> = steps
        .map(|(task, (prepared, unconfirmed))| {
            connection.note_side_effects(task, task.is_impure(&prepared));
            Execution::new(task, prepared, unconfirmed)
        })
        .collect();
    let mut run = PipelineRun::new(connection, request, steps, sinks);
    run.begin()?;
    match run.exchange().await {
        Ok(()) => run.conclude(),
        Err(error) => Err(run.interrupted(error).into()),
    }
}

/// The prepared statements of the pipeline, each with a flag that says whether it is unconfirmed.
/// Returns `None` if PostgreSQL first has to describe one of the statements.
///
/// PostgreSQL confirms a description only after the earlier statements have run. If a description
/// is stale, the pipeline runs again, although effects of the earlier statements could be committed
/// already. Therefore unconfirmed descriptions are not used if the pipeline has effects.
fn known(
    statements: &mut StatementCache,
    request: &PipelineRequest<'_>,
) -> Option<Vec<(Arc<PreparedStatement>, bool)>> {
    let allow_unconfirmed = !request.has_effects();
    let known = request.tasks.iter();
    let known = known.map(|task| statements.known(task, allow_unconfirmed));
    known.collect()
}

/// Lets PostgreSQL describe the unknown statements before any statement runs.
///
/// # Errors
///
/// `NotPipelined` if PostgreSQL refuses a statement, if a statement must not stay prepared, or if
/// the cache of statements is too small for the pipeline. The executor then runs the statements one
/// after the other, and reports the first error. `RoleRefused` if PostgreSQL refuses the switch to
/// the caller. Other errors are final.
async fn describe_unknown(
    connection: &mut Connection,
    request: &PipelineRequest<'_>,
) -> Result<Vec<(Arc<PreparedStatement>, bool)>, PipelineAttemptError> {
    let allow_unconfirmed = !request.has_effects();
    let statements = &mut connection.session.statements;
    let mut unknown: Vec<&StatementTask<'_>> = Vec::new();
    for task in &request.tasks {
        let key = StatementKey::of(task.bound);
        let is_same = |other: &&StatementTask<'_>| key.matches(other.bound);
        if statements.known(task, allow_unconfirmed).is_none() && !unknown.iter().any(is_same) {
            unknown.push(task);
        }
    }
    if !unknown.iter().all(|task| task.is_kept()) {
        return Err(PipelineAttemptError::Failed(PipelineFailure::NotPipelined));
    }
    match connection.prepare_all(&unknown).await {
        Ok(_) => known(&mut connection.session.statements, request)
            .ok_or(PipelineAttemptError::Failed(PipelineFailure::NotPipelined)),
        Err(AttemptError::Final(error)) if connection.session.prefix.is_refused() => Err(
            PipelineAttemptError::Failed(PipelineFailure::RoleRefused(error)),
        ),
        Err(AttemptError::Final(error)) if !is_refusal(&error) => Err(error.into()),
        Err(_) => Err(PipelineAttemptError::Failed(PipelineFailure::NotPipelined)),
    }
}

/// Whether the error is about the statement and not about the connection.
fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Rejected(_) | Error::Input(_))
}
