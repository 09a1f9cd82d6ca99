//! Dispatches calls to methods.

use std::fmt;
use std::sync::Arc;

use tidegate_methods::Registry;
use tidegate_sql::Executor;
use tidegate_values::OutputFormat;

use crate::bind::BoundCall;
use crate::call::Call;
use crate::context::{Context, DispatchOutcome};
use crate::error::Error;
use crate::output::Output;
use crate::payload::Payload;
use crate::{batch, bind, dry, reply, run};

/// Calls methods by their names. The dispatcher is independent of the transport.
#[derive(Clone)]
pub struct Dispatcher {
    registry: Arc<Registry>,
    executor: Arc<dyn Executor>,
}

impl fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dispatcher").finish_non_exhaustive()
    }
}

impl Dispatcher {
    /// A dispatcher for the methods of `registry`, whose statements `executor` runs.
    pub fn new(registry: Arc<Registry>, executor: Arc<dyn Executor>) -> Self {
        Self { registry, executor }
    }

    /// Runs the calls of a message and writes the response.
    ///
    /// A single call is a transaction of its own. A batch is one transaction, and its responses
    /// have the order of the calls. If one call fails, all are rolled back, and every other call
    /// with an id gets `-32603` with `{"rolledBack":true}`. Dropping the future cancels the running
    /// statement.
    pub async fn dispatch(
        &self,
        context: &Context<'_>,
        payload: &Payload<'_>,
        out: &mut dyn Output,
    ) -> DispatchOutcome {
        match payload {
            Payload::Single(call) => self.single(context, call, out).await,
            Payload::Batch(calls) => {
                batch::run(&self.registry, &*self.executor, context, calls, out).await
            }
        }
    }

    /// Has PostgreSQL describe the statements of the calls, and stores the inferred types. No
    /// statement runs, and the values of the calls are ignored.
    ///
    /// The responses have the form of responses to calls, with `"data":[]`, and with the types of
    /// the placeholders in `"params"`. Each call of a batch is independent.
    pub async fn dry_run(
        &self,
        context: &Context<'_>,
        payload: &Payload<'_>,
        out: &mut dyn Output,
    ) -> DispatchOutcome {
        dry::run(&self.registry, &*self.executor, context, payload, out).await
    }

    /// Looks up a call's method and binds the call's values, for a response without the JSON-RPC
    /// envelope. `format` replaces the format of the method, unless it is `None`.
    ///
    /// # Errors
    ///
    /// The errors for which [`crate::Reply::failed`] writes a response.
    pub async fn bind(
        &self,
        context: &Context<'_>,
        call: &Call<'_>,
        format: Option<OutputFormat>,
    ) -> Result<BoundCall, Error> {
        let method = bind::find(&self.registry, context, &call.method).await?;
        BoundCall::new(context, &method, call, format)
    }

    async fn single(
        &self,
        context: &Context<'_>,
        call: &Call<'_>,
        out: &mut dyn Output,
    ) -> DispatchOutcome {
        let mut outcome = DispatchOutcome {
            answered: call.id.is_some(),
            ..DispatchOutcome::default()
        };
        if let Err(error) = self.call(context, call, out).await {
            if let Some(id) = call.id {
                out.clear();
                reply::write_error(id, &error, out.bytes());
            }
            outcome.record(error);
        }
        outcome
    }

    async fn call(
        &self,
        context: &Context<'_>,
        call: &Call<'_>,
        out: &mut dyn Output,
    ) -> Result<(), Error> {
        let bound = self.bind(context, call, None).await?;
        run::run(&*self.executor, context, call, bound, out).await
    }
}
