//! Running an operation.

mod lose;

use bytes::{BufMut, BytesMut};
use serde_json::value::RawValue;
use tidegate_plan::{Place, Plan, Way};
use tidegate_sql::{Executor, Mode, Principal, Terms, Transaction};
use tokio::runtime::RuntimeFlavor;

use crate::api::{Api, Prepared};
use crate::coerce::Variables;
use crate::collect::Collector;
use crate::document::Operation;
use crate::error::{Code, Error};
use crate::lower::{self, Lost, Lowered, Lowerer};
use crate::response::{self, Answer};

use self::lose::{Fault, Fields, Tries, lose};

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
    /// The deadline.
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

/// Why an operation gives no data.
enum Failure {
    /// It is wrong in itself: nothing was executed.
    Refused(Vec<Error>),
    /// It was executed and failed.
    Failed(Fault),
    /// A definition changed between its statements. Nothing of it has happened.
    Redefined(Fault),
    /// It is to be run again: what failed is known better now.
    Again,
    /// The database cannot be reached now.
    Away(tidegate_sql::Error),
}

impl Failure {
    /// A definition that changes again and again is an error like another.
    fn for_good(self, tries: &Tries) -> Self {
        match self {
            Self::Redefined(fault) if tries.redefined => Self::Failed(fault),
            other => other,
        }
    }
}

impl Api {
    /// Runs an operation: a query in one snapshot, a mutation in one transaction. An operation
    /// that needs one statement takes one round trip.
    ///
    /// A field of a query that fails is null, if it is a root field or the end of a relationship,
    /// and the other ones are read in one snapshot again; a mutation that fails has no data.
    ///
    /// # Errors
    ///
    /// Only what is no answer of this API: the database is away, gone or broken, all its connections
    /// are taken, or the fault is ours. Everything else is said in the answer.
    pub async fn execute(
        &self,
        prepared: &Prepared,
        variables: Option<&RawValue>,
        context: Context<'_>,
    ) -> Result<Answer, tidegate_sql::Error> {
        match self.run(prepared, variables, context).await {
            Ok(answer) => Ok(answer),
            Err(Failure::Refused(errors)) => Ok(Answer::refused(&errors)),
            Err(Failure::Failed(fault) | Failure::Redefined(fault)) => {
                Ok(Answer::failed(&[fault.error]))
            }
            Err(Failure::Away(error)) => Err(error),
            Err(Failure::Again) => {
                Err(tidegate_sql::Error::internal("an operation without an end"))
            }
        }
    }

    async fn run(
        &self,
        prepared: &Prepared,
        variables: Option<&RawValue>,
        context: Context<'_>,
    ) -> Result<Answer, Failure> {
        let Some((document, operation)) = prepared.operation() else {
            let error = Error::new(Code::Internal, "the operation is not there");
            return Err(Failure::Refused(vec![error]));
        };
        let variables = Variables::coerce(operation, variables).map_err(Failure::Refused)?;
        let collect = Collector {
            document,
            variables: &variables,
        };
        let mut tries = Tries::default();
        loop {
            match self.attempt(collect, operation, context, &mut tries).await {
                // The statements are prepared anew, so the definitions may be what they are now.
                Err(Failure::Redefined(_)) => tries.redefined = true,
                Err(Failure::Again) => {}
                outcome => return outcome,
            }
        }
    }

    async fn attempt(
        &self,
        collect: Collector<'_>,
        operation: &Operation,
        context: Context<'_>,
        tries: &mut Tries,
    ) -> Result<Answer, Failure> {
        let lowered = self.lower(collect, operation, &mut tries.lost)?;
        let introspections = lowered.introspections;
        let fields = Fields { collect, operation };
        let failed = |trouble, place: Option<Place>| match trouble {
            Trouble::Away(error) => Failure::Away(error),
            Trouble::Error(error) => Failure::Failed(fields.locate(error, place)),
            Trouble::Redefined(error) => Failure::Redefined(fields.locate(error, place)),
        };
        let mut limits = self.limits().rows;
        limits.bytes = limits.bytes.min(context.room);
        let make = if tries.apart { Plan::apart } else { Plan::new };
        let plan = make(self.schema(), lowered.planned, &limits);
        let mut plan = plan.map_err(|error| match error {
            tidegate_plan::Error::Root(key, error) => {
                failed(Trouble::of_plan(*error), fields.root(&key))
            }
            error => failed(Trouble::of_plan(error), None),
        })?;
        plan.begin_with(tries.first);
        let written = match drive(&mut plan, context).await {
            Ok(written) => written,
            Err((trouble, begun)) => {
                let failure = failed(trouble, plan.place().filter(|_| begun));
                lose(failure, &mut plan, fields, tries)?;
                None
            }
        };
        let size = plan.size();
        let finish = || {
            let mut body = BytesMut::with_capacity(1024);
            body.put_slice(response::BEGIN);
            let outcome = plan.finish(&mut body);
            let outcome = outcome.map_err(|error| failed(Trouble::of_plan(error), None))?;
            Ok(response::end(body, &outcome, &tries.lost, introspections))
        };
        // A few rows that refer to each other on many levels can make an answer of any size.
        if size > limits.bytes.saturating_mul(2) {
            let error = tidegate_plan::Error::TooLarge(limits.bytes);
            return Err(failed(Trouble::of_plan(error), None));
        }
        let answer = if size > LARGE && may_block() {
            tokio::task::block_in_place(finish)?
        } else {
            finish()?
        };
        // Only what can be answered is written.
        if let Some(transaction) = written
            && let Err(error) = transaction.commit().await
        {
            let failure = failed(Trouble::of_sql(error, context.anonymous), None);
            return Err(failure.for_good(tries));
        }
        Ok(answer)
    }

    fn lower<'d>(
        &'d self,
        collect: Collector<'d>,
        operation: &'d Operation,
        lost: &mut Lost,
    ) -> Result<Lowered<'d>, Failure> {
        let lowerer = Lowerer {
            schema: self.schema(),
            roots: self.roots(),
            collect,
            variables: collect.variables,
            introspect: self,
        };
        lower::lower(lowerer, operation, self.limits(), lost).map_err(|error| {
            if error.path.is_empty() {
                Failure::Refused(vec![error])
            } else {
                Failure::Failed(Fault { error, place: None })
            }
        })
    }
}

/// What went wrong on the way.
enum Trouble {
    Error(Error),
    Redefined(Error),
    Away(tidegate_sql::Error),
}

impl Trouble {
    fn of_plan(error: tidegate_plan::Error) -> Self {
        let code = match error {
            tidegate_plan::Error::TooLarge(_) => Code::TooComplex,
            internal @ tidegate_plan::Error::Internal(_) => {
                return Self::Away(tidegate_sql::Error::internal(internal));
            }
            _ => Code::BadUserInput,
        };
        Self::Error(Error::new(code, error.to_string()))
    }

    fn of_sql(error: tidegate_sql::Error, anonymous: bool) -> Self {
        let redefined = matches!(&error, tidegate_sql::Error::Rejected(rejection) if rejection.is_redefinition());
        // A type that has changed is looked up again by the next attempt.
        if error.is_malformed_value() {
            return Self::Redefined(Error::new(Code::Internal, error.to_string()));
        }
        match Error::of_sql(error, anonymous) {
            Ok(error) if redefined => Self::Redefined(error),
            Ok(error) => Self::Error(error),
            Err(error) => Self::Away(error),
        }
    }
}

/// Runs the statements of a plan; what they wrote is still to be committed where a transaction
/// comes back. With what went wrong comes whether a statement was to blame.
async fn drive<'c>(
    plan: &mut Plan<'_>,
    context: Context<'c>,
) -> Result<Option<Box<dyn Transaction + 'c>>, (Trouble, bool)> {
    let Context {
        executor,
        principal,
        anonymous,
        terms,
        ..
    } = context;
    let refused = |error| (Trouble::of_sql(error, anonymous), true);
    let wrong = |error| (Trouble::of_plan(error), true);
    let mode = match plan.way() {
        Way::Alone => {
            while let Some(step) = plan.next().map_err(wrong)? {
                let query = executor.query(principal, step.statement, &terms, step.sink);
                let ran = query.await;
                ran.map_err(|error| refused(plan.locate(error)))?;
            }
            return Ok(None);
        }
        Way::Snapshot => Mode::Snapshot,
        Way::ReadWrite => Mode::ReadWrite,
    };
    let opening = executor.begin(principal, mode, &terms).await;
    let mut transaction = opening.map_err(|error| (Trouble::of_sql(error, anonymous), false))?;
    while let Some(step) = plan.next().map_err(wrong)? {
        let query = transaction.query(step.statement, step.sink);
        let ran = query.await;
        ran.map_err(|error| refused(plan.locate(error)))?;
    }
    // A snapshot that is dropped is ended behind the answer; there is nothing to keep of it.
    Ok((mode == Mode::ReadWrite).then_some(transaction))
}
