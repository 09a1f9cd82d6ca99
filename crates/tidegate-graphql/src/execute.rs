//! Running an operation.

use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use serde_json::value::RawValue;
use tidegate_plan::{Operation as Planned, Plan, Way};
use tidegate_sql::{Executor, Mode, Principal, Terms};
use tokio::runtime::RuntimeFlavor;

use crate::api::{Api, Prepared};
use crate::coerce::Variables;
use crate::collect::Collector;
use crate::document::Operation;
use crate::error::{Code, Error, Location};
use crate::lower::{self, Lowerer};
use crate::response::{self, Answer};

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
    Failed(Error),
    /// A definition changed between its statements. Nothing of it has happened.
    Redefined(Error),
    /// The database cannot be reached now.
    Away(tidegate_sql::Error),
}

impl Api {
    /// Runs an operation: a query in one snapshot, a mutation in one transaction. An operation
    /// that needs one statement takes one round trip.
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
            Err(Failure::Failed(error) | Failure::Redefined(error)) => Ok(Answer::failed(&[error])),
            Err(Failure::Away(error)) => Err(error),
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
        match self.attempt(collect, operation, context).await {
            // The statements are prepared anew, so the definitions may be what they are now.
            Err(Failure::Redefined(_)) => self.attempt(collect, operation, context).await,
            outcome => outcome,
        }
    }

    async fn attempt(
        &self,
        collect: Collector<'_>,
        operation: &Operation,
        context: Context<'_>,
    ) -> Result<Answer, Failure> {
        let planned = self.lower(collect, operation)?;
        let failed = |trouble, key: Option<&Arc<str>>| match trouble {
            Trouble::Away(error) => Failure::Away(error),
            Trouble::Error(error) => Failure::Failed(locate(error, key, collect, operation)),
            Trouble::Redefined(error) => Failure::Redefined(locate(error, key, collect, operation)),
        };
        let plan = Plan::new(self.schema(), planned, &self.limits().rows);
        let mut plan = plan.map_err(|error| match error {
            tidegate_plan::Error::Root(key, error) => failed(Trouble::of_plan(*error), Some(&key)),
            error => failed(Trouble::of_plan(error), None),
        })?;
        let driven = drive(&mut plan, context).await;
        driven.map_err(|trouble| failed(trouble, plan.key()))?;
        let size = plan.size();
        let most = self.limits().rows.bytes;
        let finish = || {
            let mut body = BytesMut::with_capacity(1024);
            body.put_slice(response::BEGIN);
            let outcome = plan.finish(&mut body);
            let outcome = outcome.map_err(|error| failed(Trouble::of_plan(error), None))?;
            Ok(response::end(body, &outcome))
        };
        // A few rows that refer to each other on many levels can make an answer of any size.
        if size > most.saturating_mul(2) {
            let error = tidegate_plan::Error::TooLarge(most);
            return Err(failed(Trouble::of_plan(error), None));
        }
        if size > LARGE && may_block() {
            return tokio::task::block_in_place(finish);
        }
        finish()
    }

    fn lower<'d>(
        &'d self,
        collect: Collector<'d>,
        operation: &'d Operation,
    ) -> Result<Planned<'d>, Failure> {
        let lowerer = Lowerer {
            schema: self.schema(),
            roots: self.roots(),
            collect,
            variables: collect.variables,
            introspect: self,
        };
        lower::lower(lowerer, operation, self.limits()).map_err(|error| {
            if error.path.is_empty() {
                Failure::Refused(vec![error])
            } else {
                Failure::Failed(error)
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
        match Error::of_sql(error, anonymous) {
            Ok(error) if redefined => Self::Redefined(error),
            Ok(error) => Self::Error(error),
            Err(error) => Self::Away(error),
        }
    }
}

/// Runs the statements of a plan.
async fn drive(plan: &mut Plan<'_>, context: Context<'_>) -> Result<(), Trouble> {
    let Context {
        executor,
        principal,
        anonymous,
        terms,
    } = context;
    let refused = |error| Trouble::of_sql(error, anonymous);
    let mode = match plan.way() {
        Way::Alone => {
            while let Some(step) = plan.next().map_err(Trouble::of_plan)? {
                let query = executor.query(principal, step.statement, &terms, step.sink);
                let ran = query.await;
                ran.map_err(|error| refused(plan.locate(error)))?;
            }
            return Ok(());
        }
        Way::Snapshot => Mode::Snapshot,
        Way::ReadWrite => Mode::ReadWrite,
    };
    let begin = executor.begin(principal, mode, &terms);
    let mut transaction = begin.await.map_err(refused)?;
    while let Some(step) = plan.next().map_err(Trouble::of_plan)? {
        let query = transaction.query(step.statement, step.sink);
        let ran = query.await;
        ran.map_err(|error| refused(plan.locate(error)))?;
    }
    if mode == Mode::ReadWrite {
        transaction.commit().await.map_err(refused)?;
    }
    // A snapshot that is dropped is ended behind the answer; there is nothing to keep of it.
    Ok(())
}

/// Says at which root field an error happened.
fn locate(
    error: Error,
    key: Option<&Arc<str>>,
    collect: Collector<'_>,
    operation: &Operation,
) -> Error {
    let Some(key) = key else { return error };
    let groups = collect.fields(&operation.selection).unwrap_or_default();
    let mut groups = groups.iter();
    let group = groups.find(|group| group.key() == key);
    let location = group.map_or_else(Location::default, |group| group.field.location);
    error.within(key, location)
}
