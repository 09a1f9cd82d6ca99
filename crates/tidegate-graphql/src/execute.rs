//! Executes operations.

mod run;

use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use serde_json::value::RawValue;
use tidegate_plan::Plan;
use tidegate_sql::{Author, Executor, Principal, QueryOptions};
use tokio::runtime::RuntimeFlavor;

use crate::api::{Api, PreparedOperation};
use crate::collect::Collector;
use crate::definition::OperationKind;
use crate::document::{Operation, Variables};
use crate::error::{Code, Error, FieldErrors};
use crate::lower::VariableUses;
use crate::response::{self, GraphqlResponse};
use crate::templates::Templates;

use self::run::{Planned, run};

/// The executor, the caller and the limits for the execution of an operation.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "an executor cannot be shown")]
pub struct Context<'a> {
    /// Runs the statements.
    pub executor: &'a dyn Executor,
    /// The principal as which the statements run.
    pub principal: &'a Principal,
    /// Whether the caller has no token. If so, the error code for a missing privilege is
    /// `UNAUTHENTICATED`.
    pub anonymous: bool,
    /// The options of the statements, such as the deadline. The author is always the service, which
    /// writes all statements.
    pub options: QueryOptions,
    /// The largest size of the data in bytes. The API's limit applies too.
    pub response_budget: u64,
}

/// The size in bytes of a response that takes about a millisecond to build. A larger response is
/// built in `block_in_place`, because it would delay the other requests of the same thread.
const LARGE: u64 = 1 << 18;

/// Whether the tokio runtime has several threads, so that this thread may block.
fn may_block() -> bool {
    let runtime = tokio::runtime::Handle::try_current();
    runtime.is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
}

/// The reason why an operation, or one of its root fields, has no data.
enum ExecutionFailure {
    /// The operation is invalid, and nothing was executed.
    Invalid(Vec<Error>),
    /// The operation was executed and failed as a whole.
    Operation(Error),
    /// The statement of the root field with this index failed.
    Field(usize, Error),
    /// The shared statement of several root fields failed.
    Shared(Error),
    /// The results are incomplete ([`Plan::restart`]). The statements cannot run again, because the
    /// plan comes from a template.
    TemplateUnusable,
    /// The deadline passed before the statements of the root fields with these indexes ended.
    Deadline(Vec<usize>, Error),
    /// A definition changed while the statements ran, and they were rolled back. The index belongs
    /// to the root field whose statement failed; `None` if this root field is unknown.
    Redefined(Option<usize>, Error),
    /// The database is unavailable, or the service itself failed.
    Unavailable(tidegate_sql::Error),
}

impl ExecutionFailure {
    fn of_plan(error: tidegate_plan::Error) -> Self {
        let code = match error {
            tidegate_plan::Error::TooLarge(_) => Code::TooComplex,
            internal @ tidegate_plan::Error::Internal(_) => {
                return Self::Unavailable(tidegate_sql::Error::internal(internal));
            }
            _ => Code::BadUserInput,
        };
        Self::Operation(Error::new(code, error.to_string()))
    }

    /// The failure for an error of `tidegate-sql`. `root` is the root field whose statement failed;
    /// `None` if the whole operation failed.
    fn of_sql(error: tidegate_sql::Error, root: Option<usize>, context: &Context<'_>) -> Self {
        // A value does not match the cached type of its column. The type may have changed. The
        // executor has cleared its cache of types, so the next attempt loads the types again.
        if error.is_malformed_value() {
            return Self::Redefined(root, Error::new(Code::Internal, error.to_string()));
        }
        let redefined = matches!(&error, tidegate_sql::Error::Rejected(rejection) if rejection.is_definition_changed());
        let error = Error::of_sql(error, context.principal, context.anonymous);
        match (error, root) {
            (Ok(error), root) if redefined => Self::Redefined(root, error),
            (Ok(error), Some(root)) => Self::Field(root, error),
            (Ok(error), None) => Self::Operation(error),
            (Err(error), _) => Self::Unavailable(error),
        }
    }

    /// The failure to report if there is no further attempt.
    fn without_retry(self) -> Self {
        match self {
            Self::Redefined(Some(root), error) => Self::Field(root, error),
            Self::Redefined(None, error) => Self::Operation(error),
            other => other,
        }
    }
}

impl Api {
    /// Executes an operation: a query in one snapshot, a mutation in one transaction. An operation
    /// takes one round trip, unless a statement needs the rows of another statement.
    ///
    /// If a root field of a query fails, it becomes null. The other fields are read again in a new
    /// snapshot, unless all of them were already read. If the deadline passes, the root fields that
    /// were not read become null, and no field is read again. A mutation that fails has no data.
    ///
    /// # Errors
    ///
    /// Only errors that are not GraphQL responses: the database is unavailable, all connections are
    /// in use, or the service itself failed. All other errors are in the response.
    pub async fn execute(
        &self,
        prepared: &PreparedOperation,
        variables: Option<&RawValue>,
        mut context: Context<'_>,
    ) -> Result<GraphqlResponse, tidegate_sql::Error> {
        context.options.author = Author::Service;
        let operation = prepared.operation().zip(prepared.templates());
        let Some(((document, operation), templates)) = operation else {
            let error = Error::new(Code::Internal, "the operation is not there");
            return Ok(GraphqlResponse::refused(&[error]));
        };
        let variables = match Variables::coerce(operation, variables) {
            Ok(variables) => variables,
            Err(errors) => return Ok(GraphqlResponse::refused(&errors)),
        };
        let request = Request {
            api: self,
            collect: Collector {
                document,
                variables: &variables,
            },
            operation,
            context,
            variable_uses: &VariableUses::default(),
            templates,
        };
        match request.respond().await {
            Ok(response) => Ok(response),
            Err(ExecutionFailure::Invalid(errors)) => Ok(GraphqlResponse::refused(&errors)),
            Err(
                ExecutionFailure::Operation(error)
                | ExecutionFailure::Field(_, error)
                | ExecutionFailure::Shared(error)
                | ExecutionFailure::Deadline(_, error)
                | ExecutionFailure::Redefined(_, error),
            ) => Ok(GraphqlResponse::failed(&[error])),
            Err(ExecutionFailure::TemplateUnusable) => Err(tidegate_sql::Error::internal(
                "a template was unusable twice",
            )),
            Err(ExecutionFailure::Unavailable(error)) => Err(error),
        }
    }
}

/// An operation that is being executed, and the input of its execution.
#[derive(Clone, Copy)]
struct Request<'r> {
    api: &'r Api,
    collect: Collector<'r>,
    operation: &'r Operation,
    context: Context<'r>,
    variable_uses: &'r VariableUses,
    templates: &'r Templates,
}

impl Request<'_> {
    /// Executes the operation. Some failures lead to another attempt. If a root field of a query
    /// failed, the next attempt leaves that field out. If a definition changed, one more attempt
    /// makes a new plan. If the results of a plan from a template are incomplete, the next attempt
    /// plans without templates. If a statement of several root fields failed, the next attempt has
    /// a statement for each root field.
    async fn respond(&self) -> Result<GraphqlResponse, ExecutionFailure> {
        let mut errors = FieldErrors::new();
        let mut redefined = false;
        let mut share = true;
        loop {
            let failure = match self.attempt(&mut errors, share).await {
                Err(ExecutionFailure::Shared(_)) if share => {
                    share = false;
                    continue;
                }
                Err(ExecutionFailure::TemplateUnusable) => {
                    self.templates.disable();
                    continue;
                }
                Err(ExecutionFailure::Redefined(..)) if !redefined => {
                    redefined = true;
                    continue;
                }
                Err(failure) => failure.without_retry(),
                Ok(response) => return Ok(response),
            };
            match failure {
                ExecutionFailure::Field(root, error) => {
                    let error = self.locate(root, error);
                    if self.operation.kind != OperationKind::Query {
                        return Err(ExecutionFailure::Operation(error));
                    }
                    errors.insert(root, error);
                }
                other => return Err(other),
            }
        }
    }

    /// Sets the path of an error to a root field. If the error has no location, also sets the
    /// location of that field.
    fn locate(&self, root: usize, mut error: Error) -> Error {
        let groups = self.collect.fields(&self.operation.selection);
        let groups = groups.unwrap_or_default();
        match groups.get(root) {
            Some(group) => {
                error.path.clear();
                error.within(group.key(), group.field.location)
            }
            None => error,
        }
    }

    /// Executes the operation once. Root fields with an entry in `errors` are null. If `share` is
    /// true, root fields may share a statement.
    async fn attempt(
        &self,
        errors: &mut FieldErrors,
        share: bool,
    ) -> Result<GraphqlResponse, ExecutionFailure> {
        let mut limits = self.api.limits().rows;
        limits.bytes = limits.bytes.min(self.context.response_budget);
        let Planned {
            mut plan,
            introspections,
            conditions,
        } = self.plan(errors, share, &limits)?;
        let ran = run(&mut plan, self.context, |error| self.of_plan(error)).await;
        let uncommitted = match ran {
            Ok(uncommitted) => {
                self.cache_template(conditions, &plan);
                uncommitted
            }
            Err(failure) => {
                self.recover(failure, &mut plan, errors)?;
                None
            }
        };
        if let Some(error) = plan.dropped() {
            return Err(ExecutionFailure::Operation(committed(&error)));
        }
        // The size is computed before the response is built. Even few rows can make a very large
        // response, because a row to which several rows refer is repeated for each of them.
        let size = plan.size();
        if size > limits.bytes.saturating_mul(2) && !plan.is_committed() {
            let error = tidegate_plan::Error::TooLarge(limits.bytes);
            return Err(ExecutionFailure::of_plan(error));
        }
        let finish = || {
            let mut body = BytesMut::with_capacity(1024);
            body.put_slice(response::BEGIN);
            let outcome = plan.finish(&mut body).map_err(ExecutionFailure::of_plan)?;
            Ok(response::end(body, &outcome, errors, introspections))
        };
        let response = if size > LARGE && may_block() {
            tokio::task::block_in_place(finish)?
        } else {
            finish()?
        };
        // The transaction is committed only if the response can be built.
        if let Some(transaction) = uncommitted {
            let committed = transaction.commit().await;
            committed.map_err(|error| ExecutionFailure::of_sql(error, None, &self.context))?;
        }
        Ok(response)
    }

    /// Makes root fields of a query null, if no further attempt is needed then. If the deadline
    /// passed, the root fields that were not read become null, or all root fields if the results
    /// are incomplete. If one root field failed and all others were read, the failed field becomes
    /// null. Any other failure is returned as the error.
    fn recover(
        &self,
        failure: ExecutionFailure,
        plan: &mut Plan<'_>,
        errors: &mut FieldErrors,
    ) -> Result<(), ExecutionFailure> {
        if self.operation.kind != OperationKind::Query {
            return Err(failure);
        }
        match failure {
            ExecutionFailure::Deadline(unfinished, error) => {
                let roots = if plan.restart() {
                    plan.roots_from(0)
                } else {
                    unfinished
                };
                for root in roots {
                    plan.show_null(root);
                    errors.insert(root, self.locate(root, error.clone()));
                }
                Ok(())
            }
            ExecutionFailure::Field(root, error) if plan.is_last(root) && !plan.restart() => {
                plan.show_null(root);
                errors.insert(root, self.locate(root, error));
                Ok(())
            }
            other => Err(other),
        }
    }

    /// The failure for an error of planning. The failure has the index of a root field if the error
    /// names the root field.
    fn of_plan(&self, error: tidegate_plan::Error) -> ExecutionFailure {
        let tidegate_plan::Error::Root(key, error) = error else {
            return ExecutionFailure::of_plan(error);
        };
        match (ExecutionFailure::of_plan(*error), self.root_index(&key)) {
            (ExecutionFailure::Operation(error), Some(root)) => {
                ExecutionFailure::Field(root, error)
            }
            (failure, _) => failure,
        }
    }

    /// The index of the root field with this response key.
    fn root_index(&self, key: &Arc<str>) -> Option<usize> {
        let groups = self.collect.fields(&self.operation.selection).ok()?;
        groups.iter().position(|group| group.key() == key)
    }
}

/// The error for a mutation that was committed but whose response cannot be built.
fn committed(error: &tidegate_sql::Error) -> Error {
    let (code, problem) = match error {
        tidegate_sql::Error::ResultTooLarge(limit) => {
            let problem = format!("its result is larger than {limit} bytes");
            (Code::TooComplex, problem)
        }
        other => (Code::Internal, other.to_string()),
    };
    Error::new(code, format!("the mutation is committed, but {problem}"))
}
