//! Receives the messages of both protocols.

use std::borrow::Cow;
use std::future::Future;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::{CloseReason, Session, SessionResult};
use crate::message::{self, Id, InvalidMessage, Message, MessageFields};
use crate::operation::{OperationContext, OperationResult, SubscriptionSetup};
use crate::running_operation::RunningOperation;
use crate::{graphql_transport_ws, outgoing};
use tidegate_http::replica_reads;

/// The schema of a `graphql-transport-ws` socket if neither the URL nor `connection_init` names a
/// schema.
const SCHEMA: &str = "public";

impl Session {
    /// Handles a text message. The socket ends if the caller's token is no longer valid. Without a
    /// token, a message other than `auth` makes the caller anonymous.
    pub(super) async fn receive_text(&mut self, text: &str) -> SessionResult {
        if let Some(identity) = &self.identity
            && let Err(failure) = identity.check(&self.app).await
        {
            return Err(self.unauthorized(&failure).await);
        }
        if self.is_graphql_transport_ws() {
            return self.receive_graphql_transport_ws(text).await;
        }
        let mut fields = None;
        let message = message::read(text, &mut fields);
        let is_auth = matches!(message, Ok(Message::Auth(_)));
        if self.identity.is_none() && !is_auth {
            self.anonymous().await?;
        }
        match message {
            Ok(message) => self.respond(message, fields, text).await,
            Err(invalid) => self.send_error(&invalid).await,
        }
    }

    async fn send_error(&mut self, invalid: &InvalidMessage) -> SessionResult {
        self.report(invalid.code);
        self.send(invalid.text()).await
    }

    async fn respond(
        &mut self,
        message: Message<'_>,
        fields: Option<MessageFields<'_>>,
        text: &str,
    ) -> SessionResult {
        let text = text.to_owned();
        match message {
            Message::Auth(token) => {
                let left = self.authenticate(&token).await?.as_secs();
                let text = format!("{{\"type\":\"auth_ack\",\"expires_in\":{left}}}");
                self.send(text.into()).await
            }
            Message::Subscribe { id, schema, after } => {
                let (schema, after) = (schema.into_owned(), after.map(Cow::into_owned));
                self.start(id, after, |context, id, setup| {
                    context.graphql(id, schema, text, setup)
                })
                .await
            }
            Message::Raw { id } => {
                let after = match fields.as_ref().map(|fields| fields.text("after")) {
                    Some(Err(invalid)) => return self.send_error(&invalid).await,
                    Some(Ok(after)) => after.map(Cow::into_owned),
                    None => None,
                };
                self.start(id, after, |context, id, setup| context.raw(id, text, setup))
                    .await
            }
            Message::Unsubscribe(id) => {
                if !self.remove(&id) {
                    let message = "nothing runs under this id";
                    return self.send_error(&invalid(id, "unknown_id", message)).await;
                }
                self.send(outgoing::complete(&id)).await
            }
            Message::Rpc => {
                self.spawn(|context| context.rpc(text));
                Ok(())
            }
            Message::Sql(id) => {
                self.spawn(|context| context.sql(id, text));
                Ok(())
            }
        }
    }

    async fn receive_graphql_transport_ws(&mut self, text: &str) -> SessionResult {
        let message = graphql_transport_ws::read(text).map_err(|reason| {
            self.report("invalid_message");
            CloseReason::new(4400, reason)
        })?;
        match message {
            graphql_transport_ws::TransportMessage::Init { token, schema } => {
                self.init(token, schema).await
            }
            graphql_transport_ws::TransportMessage::Subscribe { .. } if !self.initialised() => {
                Err(CloseReason::new(4401, "Unauthorized"))
            }
            graphql_transport_ws::TransportMessage::Subscribe { id, payload } => {
                if self.operations_by_id.contains_key(&id) {
                    self.report("duplicate_id");
                    let reason = format!("Subscriber for {} already exists", id.trim_matches('"'));
                    return Err(CloseReason::new(4409, truncate(reason)));
                }
                let schema = self.credentials.schema.clone();
                let schema = schema.unwrap_or_else(|| SCHEMA.to_owned());
                let text = payload.get().to_owned();
                let after = after_of(&text);
                self.start(id, after, |context, id, setup| {
                    context.graphql(id, schema, text, setup)
                })
                .await
            }
            graphql_transport_ws::TransportMessage::Complete(id) => {
                self.remove(&id);
                Ok(())
            }
            graphql_transport_ws::TransportMessage::Ping(payload) => {
                let text = match payload {
                    Some(payload) => format!("{{\"type\":\"pong\",\"payload\":{payload}}}"),
                    None => "{\"type\":\"pong\"}".to_owned(),
                };
                self.send(text.into()).await
            }
            graphql_transport_ws::TransportMessage::Pong => Ok(()),
        }
    }

    async fn init(&mut self, token: Option<String>, schema: Option<String>) -> SessionResult {
        if self.initialised() {
            return Err(CloseReason::new(4429, "Too many initialisation requests"));
        }
        self.initialised = true;
        if let Some(token) = token {
            let authenticated = self.authenticate(&token).await;
            authenticated.map_err(|end| match end.code {
                // `graphql-transport-ws` has no error message without an id, so the error is sent
                // in the Close frame.
                4401 => CloseReason::new(4401, "Unauthorized"),
                _ => end,
            })?;
        } else if self.identity.is_none() {
            self.anonymous().await?;
        } else {
            self.deadline = self.expires;
        }
        if self.credentials.schema.is_none() {
            self.credentials.schema = schema;
        }
        self.send(Bytes::from_static(b"{\"type\":\"connection_ack\"}"))
            .await
    }

    const fn initialised(&self) -> bool {
        self.initialised
    }

    /// Starts an operation that has an id. Sends an error if the id is in use.
    async fn start<F>(
        &mut self,
        id: Id,
        after: Option<String>,
        work: impl FnOnce(OperationContext, Id, SubscriptionSetup) -> F,
    ) -> SessionResult
    where
        F: Future<Output = OperationResult> + Send + 'static,
    {
        if self.operations_by_id.contains_key(&id) {
            let message = "something runs under this id already";
            return self.send_error(&invalid(id, "duplicate_id", message)).await;
        }
        let Some(context) = self.operation_context() else {
            return Ok(());
        };
        self.last_tag += 1;
        let frame = Arc::new(OnceLock::new());
        let setup = SubscriptionSetup {
            events: self.event_sender.clone(),
            tag: self.last_tag,
            frame: Arc::clone(&frame),
            slots: Arc::clone(&self.slots),
            after,
        };
        let task = self.operations.spawn(work(context, id.clone(), setup));
        self.tags.insert(self.last_tag, id.clone());
        let entry = RunningOperation {
            tag: self.last_tag,
            task,
            frame,
            subscription: None,
        };
        self.operations_by_id.insert(id, entry);
        Ok(())
    }

    /// Starts an operation that has no id.
    fn spawn<F>(&mut self, work: impl FnOnce(OperationContext) -> F)
    where
        F: Future<Output = OperationResult> + Send + 'static,
    {
        if let Some(context) = self.operation_context() {
            self.operations.spawn(work(context));
        }
    }

    fn operation_context(&self) -> Option<OperationContext> {
        let identity = self.identity.as_ref()?;
        Some(OperationContext {
            app: self.app.clone(),
            caller: identity.caller.clone(),
            dialect: self.dialect,
            request_id: Arc::clone(&self.request_id),
            read_from: replica_reads::read_after(&self.app, self.newest_sent),
        })
    }
}

fn invalid(id: Id, code: &'static str, message: &str) -> InvalidMessage {
    let (id, message) = (Some(id), message.to_owned());
    InvalidMessage { id, code, message }
}

/// The member `extensions.after` of a request: the cursor after which a subscription resumes.
fn after_of(request: &str) -> Option<String> {
    let request: serde_json::Value = serde_json::from_str(request).ok()?;
    request["extensions"]["after"].as_str().map(str::to_owned)
}

/// Shortens the reason of a Close frame to the allowed 123 bytes (RFC 6455, section 5.5).
fn truncate(mut reason: String) -> String {
    while reason.len() > 123 {
        reason.pop();
    }
    reason
}
