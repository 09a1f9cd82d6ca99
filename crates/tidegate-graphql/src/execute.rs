//! Running an operation.

mod planning;
mod run;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use serde_json::value::RawValue;
use tidegate_plan::Plan;
use tidegate_sql::{Author, Executor, Principal, Terms};
use tokio::runtime::RuntimeFlavor;

use crate::api::{Api, Prepared};
use crate::coerce::Variables;
use crate::collect::Collector;
use crate::document::{Operation, OperationKind};
use crate::error::{Code, Error};
use crate::lower::Trace;
use crate::response::{self, Answer};
use crate::templates::Templates;

use self::planning::Planned;
use self::run::run;

/// As whom and on what terms an operation runs.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "an executor cannot be shown")]
pub struct Context<'a> {
    /// What runs the statements.
    pub executor: &'a dyn Executor,
    /// As whom.
    pub principal: &'a Principal,
    /// Whether the caller showed no token, and might do better with one.
    pub anonymous: bool,
    /// The deadline. The author is always the service: it writes all statements.
    pub terms: Terms,
    /// How many bytes the data may have where that is less than the API allows.
    pub room: u64,
}

/// From this size on to put an answer together takes so long that other requests must not wait.
const LARGE: u64 = 1 << 20;

/// Whether there are other threads that go on meanwhile.
fn may_block() -> bool {
    let runtime = tokio::runtime::Handle::try_current();
    runtime.is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
}

/// The errors of root fields of a query that show null, by the number of the field.
pub(crate) type FieldErrors = BTreeMap<usize, Error>;

/// Why an operation, or one of its root fields, gives no data.
enum Failure {
    /// It is wrong in itself: nothing was executed.
    Invalid(Vec<Error>),
    /// The operation was executed and failed as a whole.
    Operation(Error),
    /// The statement of a root field failed.
    Field(usize, Error),
    /// The statement of several root fields failed.
    Shared(Error),
    /// The plan of a template has to be sent again, which it cannot be.
    Outgrown,
    /// The deadline passed before the statements of these root fields ended.
    Deadline(Vec<usize>, Error),
    /// A definition changed under the statements; nothing has taken effect.
    Redefined(Option<usize>, Error),
    /// The database cannot be reached, or the fault is ours.
    Unavailable(tidegate_sql::Error),
}

impl Failure {
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

    /// The failure of a statement of a root field, or of the whole transaction.
    fn of_sql(error: tidegate_sql::Error, root: Option<usize>, anonymous: bool) -> Self {
        // A type that has changed is looked up again by the next attempt.
        if error.is_malformed_value() {
            return Self::Redefined(root, Error::new(Code::Internal, error.to_string()));
        }
        let redefined = matches!(&error, tidegate_sql::Error::Rejected(rejection) if rejection.is_redefinition());
        match (Error::of_sql(error, anonymous), root) {
            (Ok(error), root) if redefined => Self::Redefined(root, error),
            (Ok(error), Some(root)) => Self::Field(root, error),
            (Ok(error), None) => Self::Operation(error),
            (Err(error), _) => Self::Unavailable(error),
        }
    }

    /// The failure once there is no further attempt.
    fn for_good(self) -> Self {
        match self {
            Self::Redefined(Some(root), error) => Self::Field(root, error),
            Self::Redefined(None, error) => Self::Operation(error),
            other => other,
        }
    }
}

impl Api {
    /// Runs an operation: a query in one snapshot, a mutation in one transaction, both in one round
    /// trip where no statement needs the rows of another.
    ///
    /// A root field of a query that fails is null, and the others are read in one snapshot again;
    /// a mutation that fails has no data.
    ///
    /// # Errors
    ///
    /// Only what is no answer of this API: the database is away, gone or broken, all its connections
    /// are taken, or the fault is ours. Everything else is said in the answer.
    pub async fn execute(
        &self,
        prepared: &Prepared,
        variables: Option<&RawValue>,
        mut context: Context<'_>,
    ) -> Result<Answer, tidegate_sql::Error> {
        context.terms.author = Author::Service;
        let operation = prepared.operation().zip(prepared.templates());
        let Some(((document, operation), templates)) = operation else {
            let error = Error::new(Code::Internal, "the operation is not there");
            return Ok(Answer::refused(&[error]));
        };
        let variables = match Variables::coerce(operation, variables) {
            Ok(variables) => variables,
            Err(errors) => return Ok(Answer::refused(&errors)),
        };
        let request = Request {
            api: self,
            collect: Collector {
                document,
                variables: &variables,
            },
            operation,
            context,
            trace: &Trace::default(),
            templates,
        };
        match request.answer().await {
            Ok(answer) => Ok(answer),
            Err(Failure::Invalid(errors)) => Ok(Answer::refused(&errors)),
            Err(
                Failure::Operation(error)
                | Failure::Field(_, error)
                | Failure::Shared(error)
                | Failure::Deadline(_, error)
                | Failure::Redefined(_, error),
            ) => Ok(Answer::failed(&[error])),
            Err(Failure::Outgrown) => {
                Err(tidegate_sql::Error::internal("a template outgrown twice"))
            }
            Err(Failure::Unavailable(error)) => Err(error),
        }
    }
}

/// An operation with its variables.
#[derive(Clone, Copy)]
struct Request<'r> {
    api: &'r Api,
    collect: Collector<'r>,
    operation: &'r Operation,
    context: Context<'r>,
    trace: &'r Trace,
    templates: &'r Templates,
}

impl Request<'_> {
    /// Runs the operation. Each attempt has one root field less than the one before, but for one
    /// that finds the definitions changed, and for the first one in which root fields that shared
    /// a statement are read by statements of their own.
    async fn answer(&self) -> Result<Answer, Failure> {
        let mut errors = FieldErrors::new();
        let mut redefined = false;
        let mut share = true;
        loop {
            let failure = match self.attempt(&mut errors, share).await {
                Err(Failure::Shared(_)) if share => {
                    share = false;
                    continue;
                }
                Err(Failure::Outgrown) => {
                    self.templates.forbid();
                    continue;
                }
                Err(Failure::Redefined(..)) if !redefined => {
                    redefined = true;
                    continue;
                }
                Err(failure) => failure.for_good(),
                Ok(answer) => return Ok(answer),
            };
            match failure {
                Failure::Field(root, error) => {
                    let error = self.locate(root, error);
                    if self.operation.kind != OperationKind::Query {
                        return Err(Failure::Operation(error));
                    }
                    errors.insert(root, error);
                }
                other => return Err(other),
            }
        }
    }

    /// An error at a root field. What is known of its place in the document stays.
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

    /// With `share` root fields may share a statement.
    async fn attempt(&self, errors: &mut FieldErrors, share: bool) -> Result<Answer, Failure> {
        let mut limits = self.api.limits().rows;
        limits.bytes = limits.bytes.min(self.context.room);
        let Planned {
            mut plan,
            introspections,
            shape,
        } = self.plan(errors, share, &limits)?;
        let ran = run(&mut plan, self.context, |error| self.of_plan(error)).await;
        let uncommitted = match ran {
            Ok(uncommitted) => {
                self.share(shape, &plan);
                uncommitted
            }
            Err(failure) => {
                self.recover(failure, &mut plan, errors)?;
                None
            }
        };
        if let Some(error) = plan.dropped() {
            return Err(Failure::Operation(committed(&error)));
        }
        // A few rows that refer to each other on many levels can make an answer of any size.
        let size = plan.size();
        if size > limits.bytes.saturating_mul(2) && !plan.is_committed() {
            let error = tidegate_plan::Error::TooLarge(limits.bytes);
            return Err(Failure::of_plan(error));
        }
        let finish = || {
            let mut body = BytesMut::with_capacity(1024);
            body.put_slice(response::BEGIN);
            let outcome = plan.finish(&mut body).map_err(Failure::of_plan)?;
            Ok(response::end(body, &outcome, errors, introspections))
        };
        let answer = if size > LARGE && may_block() {
            tokio::task::block_in_place(finish)?
        } else {
            finish()?
        };
        // Only what can be answered is written.
        if let Some(transaction) = uncommitted {
            let committed = transaction.commit().await;
            committed.map_err(|error| Failure::of_sql(error, None, self.context.anonymous))?;
        }
        Ok(answer)
    }

    /// Goes on after a failure where all other root fields of a query have been read.
    fn recover(
        &self,
        failure: Failure,
        plan: &mut Plan<'_>,
        errors: &mut FieldErrors,
    ) -> Result<(), Failure> {
        if self.operation.kind != OperationKind::Query {
            return Err(failure);
        }
        match failure {
            Failure::Deadline(unfinished, error) => {
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
            Failure::Field(root, error) if plan.is_last(root) && !plan.restart() => {
                plan.show_null(root);
                errors.insert(root, self.locate(root, error));
                Ok(())
            }
            other => Err(other),
        }
    }

    /// A failure to plan: of a root field, where it is known which.
    fn of_plan(&self, error: tidegate_plan::Error) -> Failure {
        let tidegate_plan::Error::Root(key, error) = error else {
            return Failure::of_plan(error);
        };
        match (Failure::of_plan(*error), self.number(&key)) {
            (Failure::Operation(error), Some(root)) => Failure::Field(root, error),
            (failure, _) => failure,
        }
    }

    /// The number of the root field with a response key.
    fn number(&self, key: &Arc<str>) -> Option<usize> {
        let groups = self.collect.fields(&self.operation.selection).ok()?;
        groups.iter().position(|group| group.key() == key)
    }
}

/// The error for a mutation that is committed and whose answer cannot be shown.
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
