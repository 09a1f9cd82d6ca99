//! Cancel requests (PostgreSQL, "Canceling Requests in Progress").

use std::sync::Arc;

use bytes::BytesMut;
use postgres_protocol::message::frontend;

use crate::channel::Channel;
use crate::config::{Config, Target};
use crate::connect_error::ConnectError;
use crate::stream::Stream;
use crate::terminator::Backend;

/// Cancels the statement that runs on a connection.
#[derive(Clone, Debug)]
pub struct Canceller {
    config: Arc<Config>,
    /// The address of the backend's server.
    target: Target,
    backend: Backend,
}

impl Canceller {
    /// A canceller for the statements of `backend`, a process of the server at `target`.
    pub fn new(config: &Config, target: &Target, backend: Backend) -> Self {
        Self {
            config: Arc::new(config.clone()),
            target: target.clone(),
            backend,
        }
    }

    /// The backend whose statement is cancelled.
    pub fn backend(&self) -> &Backend {
        &self.backend
    }

    /// Whether the connection may still be used; see [`Config::is_current`].
    pub fn is_current(&self) -> bool {
        self.config.is_current(&self.target)
    }

    /// Sends a cancel request. On return, PostgreSQL has signalled the backend, so the request
    /// cannot hit a statement that is sent later.
    pub async fn cancel(&self) -> Result<(), ConnectError> {
        let mut channel = Channel::new(Stream::connect(&self.config, &self.target).await?);
        let mut request = BytesMut::with_capacity(16);
        frontend::cancel_request(
            self.backend.process_id,
            self.backend.secret_key,
            &mut request,
        );
        channel.outbound.unsplit(request);
        channel.close().await.map_err(ConnectError::Unreachable)
    }
}
