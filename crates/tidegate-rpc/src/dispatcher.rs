//! From calls to answers.

use std::fmt;
use std::sync::Arc;

use tidegate_methods::{Method, Registry};
use tidegate_sql::Executor;
use tidegate_values::OutputFormat;

use crate::context::{Context, Outcome};
use crate::error::Error;
use crate::output::Output;
use crate::payload::{Call, Payload};
use crate::prepare::Prepared;
use crate::{batch, dry, reply, run};

/// Calls methods by name. It knows nothing of how messages travel.
#[derive(Clone)]
pub struct Dispatcher {
    pub(crate) registry: Arc<Registry>,
    pub(crate) executor: Arc<dyn Executor>,
}

impl fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dispatcher").finish_non_exhaustive()
    }
}

impl Dispatcher {
    /// A dispatcher over the methods of `registry`, whose statements `executor` runs.
    pub fn new(registry: Arc<Registry>, executor: Arc<dyn Executor>) -> Self {
        Self { registry, executor }
    }

    /// Runs the calls of a message and writes the answer.
    ///
    /// A single call is a transaction of its own. A batch is one transaction: the answers come in
    /// the order of the calls, and when one fails nothing takes effect, and every other call
    /// with an id is answered by `-32603` with `{"rolledBack":true}`. Dropping the future
    /// cancels what runs.
    pub async fn dispatch(
        &self,
        context: &Context<'_>,
        payload: &Payload<'_>,
        out: &mut dyn Output,
    ) -> Outcome {
        match payload {
            Payload::Single(call) => self.single(context, call, out).await,
            Payload::Batch(calls) => batch::run(self, context, calls, out).await,
        }
    }

    /// Lets PostgreSQL describe the statements of the calls, and keeps the types that it infers;
    /// nothing runs, and values are neither needed nor looked at.
    ///
    /// The answers are those of calls with `"data":[]`, and with `"params"`, the types of the
    /// placeholders. Each call of a batch stands alone.
    pub async fn dry_run(
        &self,
        context: &Context<'_>,
        payload: &Payload<'_>,
        out: &mut dyn Output,
    ) -> Outcome {
        dry::run(self, context, payload, out).await
    }

    /// Looks a call's method up and binds its values, for an answer without the envelope;
    /// `format` is that of the rows instead of the method's own.
    ///
    /// # Errors
    ///
    /// What [`crate::Reply::failed`] answers.
    pub async fn prepare(
        &self,
        context: &Context<'_>,
        call: &Call<'_>,
        format: Option<OutputFormat>,
    ) -> Result<Prepared, Error> {
        let method = self.find(context, &call.method).await?;
        Prepared::new(&method, call, format, context.timezone)
    }

    pub(crate) async fn find(
        &self,
        context: &Context<'_>,
        name: &str,
    ) -> Result<Arc<Method>, Error> {
        let found = self.registry.lookup(context.tenant()?, name).await;
        found.map_err(Error::Registry)?.ok_or(Error::MethodNotFound)
    }

    async fn single(
        &self,
        context: &Context<'_>,
        call: &Call<'_>,
        out: &mut dyn Output,
    ) -> Outcome {
        let mut outcome = Outcome {
            answered: call.id.is_some(),
            ..Outcome::default()
        };
        if let Err(error) = self.call(context, call, out).await {
            if let Some(id) = call.id {
                out.clear();
                reply::write_error(id, &error, out.bytes());
            }
            outcome.note(error);
        }
        outcome
    }

    async fn call(
        &self,
        context: &Context<'_>,
        call: &Call<'_>,
        out: &mut dyn Output,
    ) -> Result<(), Error> {
        let prepared = self.prepare(context, call, None).await?;
        run::run(&*self.executor, context, call, prepared, out).await
    }
}
