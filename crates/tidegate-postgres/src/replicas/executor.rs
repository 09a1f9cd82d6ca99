//! The executor that sends reads to replicas.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tidegate_sql::{
    BoundStatement, BoxFuture, Completion, Description, Error, Executor, Login, Mode, Pipeline,
    PipelineError, PipelineStep, Principal, QueryOptions, ReadFrom, Result, RowSink, Transaction,
    TransactionOutcome, WalPosition,
};
use tidegate_wire::outage;

use super::Replicas;
use super::held_rows::{AtLimit, HeldRows};
use super::replica::Replica;
use super::transaction::{WritingTransaction, may_have_written};
use crate::executor::Postgres;
use crate::statement::is_stateless;

/// Runs reads on replicas where [`ReadFrom`] allows it, and everything else on the primary.
#[derive(Clone)]
pub struct ReplicatedExecutor {
    primary: Postgres,
    replicas: Arc<Replicas>,
}

impl ReplicatedExecutor {
    /// An executor for a primary and its replicas.
    pub fn new(primary: Postgres, replicas: Arc<Replicas>) -> Self {
        Self { primary, replicas }
    }

    /// The replica for a read; `None` if it must run on the primary.
    fn replica(&self, login: &Login, options: &QueryOptions) -> Option<&Replica> {
        match options.read_from {
            ReadFrom::Replica { after } => self.replicas.choose(login, after),
            ReadFrom::Primary => None,
        }
    }

    async fn read(
        &self,
        (who, login): (&Principal, &Login),
        statement: &BoundStatement,
        options: &QueryOptions,
        sink: &mut dyn RowSink,
    ) -> Result<Completion> {
        if let Some(replica) = self.replica(login, options) {
            let mut held = HeldRows::new(sink, AtLimit::PassOn);
            let passed = held.passed_flag();
            let ran = {
                let mut query = pin!(replica.users.query(login, statement, options, &mut held));
                tokio::select! {
                    ran = &mut query => ran,
                    () = replica.until_unused(&self.replicas.primary) => {
                        if passed.load(Ordering::Relaxed) {
                            // A read whose rows have reached the sink cannot run again, so it
                            // continues even if the replica is no longer used. It may still
                            // succeed.
                            query.await
                        } else {
                            Err(outage("the replica is lost or far behind"))
                        }
                    }
                }
            };
            match ran {
                Ok(completion) => {
                    replica.count_answered();
                    return held.deliver().await.map(|()| completion);
                }
                Err(error) if held.passed() || is_final(&error) => return Err(error),
                Err(error) => failed(replica, &error),
            }
        }
        self.primary.query(who, statement, options, sink).await
    }

    async fn write(
        &self,
        (who, login): (&Principal, &Login),
        statement: &BoundStatement,
        options: &QueryOptions,
        sink: &mut dyn RowSink,
    ) -> Result<Completion> {
        let ran = self.primary.query(who, statement, options, sink).await;
        let error = ran.as_ref().err();
        if error.is_none_or(may_have_written) {
            self.replicas.wrote(login, error).await;
        }
        ran
    }

    async fn read_together<'a>(
        &'a self,
        (who, login): (&'a Principal, &'a Login),
        mut pipeline: Pipeline<'a>,
        options: &'a QueryOptions,
    ) -> Result<Vec<Completion>, PipelineError> {
        if let Some(replica) = self.replica(login, options) {
            let unused = replica.until_unused(&self.replicas.primary);
            match run_on((replica, unused), login, &mut pipeline, options).await {
                Ok(completions) => return Ok(completions),
                Err(ReplicaFailure::Final(error)) => return Err(error),
                Err(ReplicaFailure::Again(error)) => failed(replica, &error),
            }
        }
        self.primary.pipeline(who, pipeline, options).await
    }

    async fn write_together<'a>(
        &'a self,
        (who, login): (&'a Principal, &'a Login),
        pipeline: Pipeline<'a>,
        options: &'a QueryOptions,
    ) -> Result<Vec<Completion>, PipelineError> {
        let ran = self.primary.pipeline(who, pipeline, options).await;
        let rolled_back = |error: &PipelineError| error.outcome == TransactionOutcome::RolledBack;
        if !ran.as_ref().is_err_and(rolled_back) {
            let error = ran.as_ref().err().map(|failed| &failed.error);
            self.replicas.wrote(login, error).await;
        }
        ran
    }

    async fn begin_write(
        &self,
        (who, login): (&Principal, &Login),
        options: &QueryOptions,
    ) -> Result<Box<dyn Transaction>> {
        let transaction = self.primary.begin(who, Mode::ReadWrite, options).await?;
        Ok(Box::new(WritingTransaction {
            transaction,
            replicas: self.replicas.clone(),
            login: login.clone(),
        }))
    }
}

/// Why the statements of a pipeline failed on a replica.
enum ReplicaFailure {
    /// The sinks have received nothing yet, so the statements can run again. They may succeed on
    /// the primary.
    Again(Error),
    /// The error is reported, and the statements do not run again.
    Final(PipelineError),
}

/// Runs the statements on a replica. Stops them when `unused` completes.
async fn run_on(
    (replica, unused): (&Replica, impl Future<Output = ()>),
    login: &Login,
    pipeline: &mut Pipeline<'_>,
    options: &QueryOptions,
) -> Result<Vec<Completion>, ReplicaFailure> {
    let (mode, commit) = (pipeline.mode, pipeline.commit);
    let mut statements = Vec::with_capacity(pipeline.steps.len());
    let mut held = Vec::with_capacity(pipeline.steps.len());
    // No row reaches a sink before all statements have succeeded. Otherwise the pipeline could not
    // run again on the primary.
    for step in &mut pipeline.steps {
        statements.push(step.statement);
        held.push(HeldRows::new(&mut *step.sink, AtLimit::GiveUp));
    }
    let steps = statements.into_iter().zip(&mut held);
    let steps = steps.map(|(statement, sink)| PipelineStep { statement, sink });
    let steps = steps.collect();
    let pipeline = Pipeline {
        mode,
        steps,
        commit,
    };
    let ran = tokio::select! {
        ran = replica.users.pipeline(login, pipeline, options) => ran,
        () = unused => Err(outage("the replica is lost or far behind").into()),
    };
    let completions = match ran {
        Ok(completions) => completions,
        // A sink that gave up also fails with `ResultTooLarge`. But then only the limit of held
        // rows was exceeded, and not the limit of the request.
        Err(failed) if is_final(&failed.error) && !held.iter().any(HeldRows::gave_up) => {
            return Err(ReplicaFailure::Final(failed));
        }
        Err(failed) => return Err(ReplicaFailure::Again(failed.error)),
    };
    replica.count_answered();
    for (index, (held, completion)) in held.iter_mut().zip(&completions).enumerate() {
        // An error is final from here on, because a sink may have received rows.
        let delivered = held.deliver().await;
        let ended = delivered.and_then(|()| held.sink.end(*completion));
        ended.map_err(|error| ReplicaFailure::Final(PipelineError::at(index, error)))?;
    }
    Ok(completions)
}

/// Whether a second attempt on the primary is useless, because the primary would report the same
/// error, or because the client no longer waits. All other errors may come from the replica's
/// state: the replica may not have replayed a definition or a grant yet, may have cancelled the
/// read because of the replay, may have refused a function, or may be gone.
fn is_final(error: &Error) -> bool {
    match error {
        Error::Input(_) | Error::Deadline | Error::SinkClosed | Error::ResultTooLarge(_) => true,
        Error::Rejected(_)
        | Error::PoolTimeout { .. }
        | Error::Unavailable { .. }
        | Error::NoDatabase
        | Error::Internal(_) => false,
    }
}

fn failed(replica: &Replica, error: &Error) {
    replica.count_failed();
    tracing::debug!(?replica, %error, "a read failed on a replica; it runs on the primary");
}

impl Executor for ReplicatedExecutor {
    fn query<'a>(
        &'a self,
        who: &'a Principal,
        statement: &'a BoundStatement,
        options: &'a QueryOptions,
        sink: &'a mut dyn RowSink,
    ) -> BoxFuture<'a, Result<Completion>> {
        match who {
            Principal::Role(login) if is_stateless(statement) => {
                Box::pin(self.read((who, login), statement, options, sink))
            }
            Principal::Role(login) => Box::pin(self.write((who, login), statement, options, sink)),
            _ => self.primary.query(who, statement, options, sink),
        }
    }

    fn begin<'a>(
        &'a self,
        who: &'a Principal,
        mode: Mode,
        options: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>>> {
        match (who, mode) {
            (Principal::Role(login), Mode::ReadWrite) => {
                Box::pin(self.begin_write((who, login), options))
            }
            _ => self.primary.begin(who, mode, options),
        }
    }

    fn pipeline<'a>(
        &'a self,
        who: &'a Principal,
        pipeline: Pipeline<'a>,
        options: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<Vec<Completion>, PipelineError>> {
        let mut statements = pipeline.steps.iter().map(|step| step.statement);
        let reads = statements.all(is_stateless);
        match who {
            Principal::Role(login) if reads => {
                Box::pin(self.read_together((who, login), pipeline, options))
            }
            Principal::Role(login) if pipeline.mode == Mode::ReadWrite => {
                Box::pin(self.write_together((who, login), pipeline, options))
            }
            _ => self.primary.pipeline(who, pipeline, options),
        }
    }

    fn describe<'a>(
        &'a self,
        who: &'a Principal,
        statement: &'a BoundStatement,
        options: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<Description>> {
        self.primary.describe(who, statement, options)
    }

    fn last_write(&self, login: &Login) -> Option<WalPosition> {
        self.replicas.last_write(login)
    }
}

impl fmt::Debug for ReplicatedExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplicatedExecutor")
            .field("replicas", &self.replicas)
            .finish_non_exhaustive()
    }
}
