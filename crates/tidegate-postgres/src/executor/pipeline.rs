//! Pipelines of users' statements.

use std::convert::Infallible;

use tidegate_pool::PooledConnection;
use tidegate_sql::{
    Author, Completion, Login, Mode, Pipeline, PipelineError, QueryOptions, Result, RowSink,
    TransactionOutcome,
};

use super::member_route::claims_error;
use super::route::{CheckedOut, Route};
use super::user_executor::{UserExecutor, check, forget_if_malformed, return_connection};
use crate::connector::RoleConnector;
use crate::metadata::MetadataCache;
use crate::multiplex::BufferedRows;
use crate::session::{PipelineFailure, PipelineRequest, run_pipeline, take_reported_ddl};
use crate::statement::{RunError, is_stateless};

impl UserExecutor {
    /// Runs the statements of a pipeline in one transaction; see
    /// [`tidegate_sql::Executor::pipeline`].
    ///
    /// The statements are sent in one write. If one of them may end the transaction, or change name
    /// resolution for later statements, they run one after the other instead. Unless a snapshot is
    /// requested, the isolation level is `READ COMMITTED`, as in every new session.
    ///
    /// # Errors
    ///
    /// The first failure, with the index of its statement and the outcome of the transaction.
    pub async fn pipeline(
        &self,
        login: &Login,
        mut pipeline: Pipeline<'_>,
        options: &QueryOptions,
    ) -> Result<Vec<Completion>, PipelineError> {
        for (index, step) in pipeline.steps.iter().enumerate() {
            check(login, step.statement).map_err(|error| PipelineError::at(index, error))?;
        }
        // A single read needs no transaction of its own.
        if is_one_query(&pipeline) {
            return self.query_step(login, pipeline, options).await;
        }
        let statements: Vec<_> = pipeline.steps.iter().map(|step| step.statement).collect();
        let route = self.route(login, options.author, &statements).await?;
        let in_flight = self.enter(&route.login, &statements, options);
        // If no other request runs, the request is not multiplexed, because a connection of its own
        // responds sooner. If the multiplexed statements fail, they run again below. This is safe,
        // because they are stateless.
        if let Some(in_flight) = in_flight.as_ref().filter(|guard| !guard.is_alone())
            && let Some((rows, metadata)) = self.multiplex(in_flight, &route, &statements).await
        {
            return push_rows(&rows, &metadata, pipeline).await;
        }
        let sealed = route.sealed();
        let attempted = match self.attempt(route, &mut pipeline, options).await {
            // The decision about shared connections or the key of the claims may be outdated.
            // Nothing has taken effect, so the second attempt cannot repeat a write.
            Err(PipelineFailure::RoleRefused(error)) => {
                let route = self.route_again(login, sealed, &error).await?;
                self.attempt(route, &mut pipeline, options).await
            }
            attempted => attempted,
        };
        match attempted {
            Err(PipelineFailure::NotPipelined) => {}
            Err(PipelineFailure::Failed(failed)) => {
                let error = claims_error(login, failed.error);
                return Err(PipelineError { error, ..failed });
            }
            Err(PipelineFailure::RoleRefused(error)) => {
                return Err(claims_error(login, error).into());
            }
            Ok(completions) => return Ok(completions),
        }
        let transaction = self.begin(login, pipeline.mode, options).await?;
        pipeline.run_in(transaction).await
    }

    /// Checks out a connection and sends all statements in one write. Fails with `NotPipelined` if
    /// the statements cannot be sent in one write.
    async fn attempt(
        &self,
        route: Route,
        pipeline: &mut Pipeline<'_>,
        options: &QueryOptions,
    ) -> Result<Vec<Completion>, PipelineFailure> {
        let (pooled, checked_out) =
            self.check_out(route, options)
                .await
                .map_err(|error| match error {
                    RunError::RoleRefused(error) => PipelineFailure::RoleRefused(error),
                    RunError::Failed(error) => error.into(),
                })?;
        let outcome = self.send(pooled, &checked_out, pipeline, options).await;
        if outcome.changes_definitions {
            checked_out.metadata.forget();
            self.invalidate(&checked_out.route.login.database);
        }
        outcome.result
    }

    async fn query_step(
        &self,
        login: &Login,
        pipeline: Pipeline<'_>,
        options: &QueryOptions,
    ) -> Result<Vec<Completion>, PipelineError> {
        let mut completions = Vec::with_capacity(1);
        for (index, step) in pipeline.steps.into_iter().enumerate() {
            let ran = self.query(login, step.statement, options, step.sink).await;
            let ended = ran.and_then(|completion| step.sink.end(completion).map(|()| completion));
            completions.push(ended.map_err(|error| PipelineError::at(index, error))?);
        }
        Ok(completions)
    }

    /// Runs a pipeline on a connection, and returns the connection to the pool.
    async fn send(
        &self,
        mut pooled: PooledConnection<RoleConnector>,
        checked_out: &CheckedOut,
        pipeline: &mut Pipeline<'_>,
        options: &QueryOptions,
    ) -> PipelineOutcome {
        let mut tasks = Vec::with_capacity(pipeline.steps.len());
        let mut sinks: Vec<&mut dyn RowSink> = Vec::with_capacity(pipeline.steps.len());
        for step in &mut pipeline.steps {
            tasks.push(checked_out.task(step.statement));
            sinks.push(step.sink);
        }
        let request = PipelineRequest {
            tasks,
            mode: pipeline.mode,
            commit: pipeline.commit,
        };
        // Statements that Tidegate wrote are trusted. Even if they contain casts, they do not
        // change name resolution.
        if !request.can_pipeline(options.author == Author::Service) {
            return PipelineFailure::NotPipelined.into();
        }
        let outcome = run_pipeline(&mut pooled, &request, &mut sinks).await;
        let changes_definitions = take_reported_ddl(&mut pooled, &checked_out.metadata).is_some();
        let count = || {
            let mut statements = request.tasks.iter().map(|task| &task.bound.statement);
            let calls = statements.any(|statement| statement.calls());
            checked_out.metadata.count(calls);
        };
        let result = match outcome {
            Ok(completions) => {
                count();
                self.release(pooled, checked_out);
                Ok(completions)
            }
            Err(PipelineFailure::Failed(failed)) => {
                if failed.outcome != TransactionOutcome::RolledBack {
                    count();
                }
                if failed.error.is_malformed_value() {
                    checked_out.metadata.forget();
                }
                let Err(error) = return_connection::<Infallible>(pooled, Err(failed.error)).await;
                Err(PipelineFailure::Failed(PipelineError { error, ..failed }))
            }
            Err(failure) => Err(failure),
        };
        PipelineOutcome {
            result,
            changes_definitions,
        }
    }
}

/// Pushes the rows that a multiplexed connection returned into the sinks.
async fn push_rows(
    rows: &BufferedRows,
    metadata: &MetadataCache,
    pipeline: Pipeline<'_>,
) -> Result<Vec<Completion>, PipelineError> {
    let mut completions = Vec::with_capacity(pipeline.steps.len());
    for (index, step) in pipeline.steps.into_iter().enumerate() {
        let pushed = rows.push(index, step.sink).await;
        forget_if_malformed(metadata, &pushed);
        let ended = pushed.and_then(|completion| step.sink.end(completion).map(|()| completion));
        completions.push(ended.map_err(|error| PipelineError::at(index, error))?);
    }
    Ok(completions)
}

/// Whether a pipeline consists of one read outside of a snapshot, so that nothing has to be undone
/// after an error. A read in a snapshot needs the read-only transaction. It may call code that
/// writes, such as a function in a view, and only that transaction refuses the write.
fn is_one_query(pipeline: &Pipeline<'_>) -> bool {
    match &pipeline.steps[..] {
        [step] => pipeline.mode == Mode::ReadWrite && is_stateless(step.statement),
        _ => false,
    }
}

struct PipelineOutcome {
    result: Result<Vec<Completion>, PipelineFailure>,
    /// Whether a trigger or a function changed a definition.
    changes_definitions: bool,
}

impl From<PipelineFailure> for PipelineOutcome {
    fn from(failure: PipelineFailure) -> Self {
        Self {
            result: Err(failure),
            changes_definitions: false,
        }
    }
}
