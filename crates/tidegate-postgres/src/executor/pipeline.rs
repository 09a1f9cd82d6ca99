//! Pipelines of users.

use std::convert::Infallible;

use tidegate_pool::Lease;
use tidegate_sql::{
    Author, Completion, Login, Mode, Pipeline, PipelineError, QueryOptions, Result, RowSink,
};

use super::RoleConnector;
use super::roles::{Lent, Roles, check, conclude, forget_if_malformed, told};
use super::route::Route;
use crate::multiplex::Answer;
use crate::session::batch::Batch;
use crate::session::reset::is_stateless;
use crate::session::run_pipeline::Setback;
use crate::session::task::RunError;

impl Roles {
    /// Runs the statements of a pipeline in one transaction; see
    /// [`tidegate_sql::Executor::pipeline`].
    ///
    /// They go out in one write. Statements that may end the transaction, or change what the names
    /// in those behind them mean, run in turn instead. Without a snapshot the transaction has the
    /// isolation level that every session begins with, `READ COMMITTED`.
    ///
    /// # Errors
    ///
    /// The first failure, with the statement to blame and what became of the transaction.
    pub async fn pipeline(
        &self,
        login: &Login,
        mut pipeline: Pipeline<'_>,
        options: &QueryOptions,
    ) -> Result<Vec<Completion>, PipelineError> {
        for (index, step) in pipeline.steps.iter().enumerate() {
            check(login, step.statement).map_err(|error| PipelineError::at(index, error))?;
        }
        if is_one_query(&pipeline) {
            return self.query_step(login, pipeline, options).await;
        }
        let statements: Vec<_> = pipeline.steps.iter().map(|step| step.statement).collect();
        let route = self.route(login, options.author, &statements).await;
        let entry = self.enter(&route.login, &statements, options);
        if let Some(entry) = &entry
            && let Some(answer) = self.multiplex(entry, &route, &statements).await
        {
            return self.take(&route, &answer, pipeline).await;
        }
        let attempted = match self.attempt(route, &mut pipeline, options).await {
            Err(Setback::RoleRefused(error)) => {
                self.refused(login, &error);
                self.attempt(Route::own(login), &mut pipeline, options)
                    .await
            }
            attempted => attempted,
        };
        match attempted {
            Err(Setback::Unfit) => {}
            Err(Setback::Failed(error)) => return Err(error),
            Err(Setback::RoleRefused(error)) => return Err(error.into()),
            Ok(completions) => return Ok(completions),
        }
        let transaction = self.begin(login, pipeline.mode, options).await?;
        pipeline.run_in(transaction).await
    }

    /// Sends all statements in one write, where they can be.
    async fn attempt(
        &self,
        route: Route,
        pipeline: &mut Pipeline<'_>,
        options: &QueryOptions,
    ) -> Result<Vec<Completion>, Setback> {
        let (lease, lent) = self
            .lend(route, options)
            .await
            .map_err(|error| match error {
                RunError::RoleRefused(error) => Setback::RoleRefused(error),
                RunError::Failed(error) => error.into(),
            })?;
        let outcome = send(lease, &lent, pipeline, options).await;
        if outcome.redefines {
            lent.dictionary.forget();
            self.distrust(&lent.route.login.database);
        }
        outcome.result
    }

    /// Pushes the rows of a multiplexed connection into the sinks.
    async fn take(
        &self,
        route: &Route,
        answer: &Answer,
        pipeline: Pipeline<'_>,
    ) -> Result<Vec<Completion>, PipelineError> {
        let mut completions = Vec::with_capacity(pipeline.steps.len());
        for (index, step) in pipeline.steps.into_iter().enumerate() {
            let pushed = answer.push(index, step.sink).await;
            forget_if_malformed(&self.dictionary(&route.login), &pushed);
            let ended =
                pushed.and_then(|completion| step.sink.end(completion).map(|()| completion));
            completions.push(ended.map_err(|error| PipelineError::at(index, error))?);
        }
        Ok(completions)
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
}

/// Whether a pipeline is one read, of which nothing has to be undone. In a snapshot PostgreSQL
/// refuses what the read leads to and writes, so it needs the transaction.
fn is_one_query(pipeline: &Pipeline<'_>) -> bool {
    match &pipeline.steps[..] {
        [step] => pipeline.mode == Mode::ReadWrite && is_stateless(step.statement),
        _ => false,
    }
}

/// What came of a pipeline.
struct Outcome {
    result: Result<Vec<Completion>, Setback>,
    /// Whether a trigger or a function changed a definition.
    redefines: bool,
}

impl From<Setback> for Outcome {
    fn from(setback: Setback) -> Self {
        Self {
            result: Err(setback),
            redefines: false,
        }
    }
}

async fn send(
    mut lease: Lease<RoleConnector>,
    lent: &Lent,
    pipeline: &mut Pipeline<'_>,
    options: &QueryOptions,
) -> Outcome {
    let mut tasks = Vec::with_capacity(pipeline.steps.len());
    let mut sinks: Vec<&mut dyn RowSink> = Vec::with_capacity(pipeline.steps.len());
    for step in &mut pipeline.steps {
        tasks.push(lent.task(step.statement));
        sinks.push(step.sink);
    }
    let batch = Batch {
        tasks,
        mode: pipeline.mode,
        commit: pipeline.commit,
    };
    // Text of our own keeps what names mean, whatever types it casts to.
    if !batch.is_fit(options.author == Author::Service) {
        return Setback::Unfit.into();
    }
    let outcome = lease.run_pipeline(&batch, &mut sinks).await;
    let redefines = told(&mut lease, &lent.dictionary).is_some();
    let result = match outcome {
        Ok(completions) => {
            let mut statements = batch.tasks.iter().map(|task| &task.bound.statement);
            lent.dictionary
                .count(statements.any(|statement| statement.calls()));
            Ok(completions)
        }
        Err(Setback::Failed(failed)) => {
            if failed.error.is_malformed_value() {
                lent.dictionary.forget();
            }
            let Err(error) = conclude::<Infallible>(lease, Err(failed.error)).await;
            Err(Setback::Failed(PipelineError { error, ..failed }))
        }
        Err(setback) => Err(setback),
    };
    Outcome { result, redefines }
}
