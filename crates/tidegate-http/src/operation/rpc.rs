//! Runs calls of methods (JSON-RPC 2.0).

use bytes::BytesMut;
use tidegate_rpc::{Limits, Output, Payload, Reply};

use super::collect::Pieces;
use crate::app::App;
use crate::error::ApiError;
use crate::report::{Context, Errors};

/// Parses the calls of a message. If the message cannot be parsed, the error is the response to it.
pub fn payload<'a>(app: &App, message: &'a [u8]) -> Result<Payload<'a>, Reply> {
    let limits = Limits {
        calls: app.limits().batch,
        parameter_sets: app.limits().parameter_sets,
        ..Limits::default()
    };
    Payload::parse(message, limits)
}

/// Logs the causes of the errors with a 5xx status. Returns a summary of all errors of the calls;
/// `None` without errors.
pub fn report(errors: Vec<tidegate_rpc::Error>, context: &Context<'_>) -> Option<Errors> {
    let failures: Vec<_> = errors.into_iter().map(ApiError::from_rpc).collect();
    for failure in &failures {
        failure.log(context);
    }
    Errors::of_rpc(&failures)
}

impl Output for Pieces {
    fn bytes(&mut self) -> &mut BytesMut {
        self.open()
    }

    fn check(&mut self) -> tidegate_sql::Result<()> {
        self.close_full()
    }

    fn clear(&mut self) {
        self.discard();
    }
}
