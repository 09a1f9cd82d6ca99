//! Errors of managing methods and of calling them.

use std::time::Duration;

use tidegate_methods::{Error, StoreError};

use super::ApiError;

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::Request(request) => request.into(),
            Error::Statement { index, source } => {
                let failure = Self::from(source);
                match index {
                    Some(index) => failure.of_request(index),
                    None => failure,
                }
            }
            Error::AlreadyExists(_) => Self::already_exists(message),
            Error::NotFound(_) => Self::not_found(message),
            Error::NotAllowed(_) => Self::insufficient_privileges(message),
            Error::Store(error) => error.into(),
        }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(source) => Self::unavailable(
                "DATABASE_UNAVAILABLE",
                "the database is not available",
                Duration::from_secs(1),
            )
            .with_cause(Some(source)),
            failed @ StoreError::Failed(_) => Self::internal(failed),
        }
    }
}

impl ApiError {
    /// Converts the error of a JSON-RPC call for the log and the metrics. The response to the
    /// client has been written already.
    pub fn from_rpc(error: tidegate_rpc::Error) -> Self {
        use tidegate_rpc::Error as Rpc;
        match error {
            Rpc::Registry(error) => error.into(),
            Rpc::Statement(error) | Rpc::InDoubt(error) => Self::from_sql(error, false),
            error @ Rpc::NoJson { .. } => Self::invalid_json(error.to_string()),
            error @ Rpc::MethodNotFound => Self::not_found(error.to_string()),
            error @ (Rpc::InvalidRequest(_)
            | Rpc::TooMany { .. }
            | Rpc::Params(_)
            | Rpc::Definition(_)) => Self::input(error.to_string()),
            error @ Rpc::NotForMembers => Self::insufficient_privileges(error.to_string()),
            error @ Rpc::RolledBack { .. } => Self::internal(error),
        }
    }
}
