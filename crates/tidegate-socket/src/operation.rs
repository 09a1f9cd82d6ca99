//! Runs the operation of a message in a task of its own, with the same functions as for HTTP
//! requests.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use tidegate_feed::{EventSender, Subscription};
use tidegate_graphql::{GraphqlResponse, Request};
use tidegate_sql::{QueryOptions, ReadFrom};
use tokio::sync::Semaphore;

use super::handshake::Dialect;
use super::message::{self, Id};
use super::outgoing::{self, Messages};
use super::running_operation::{Frame, Framed};
use super::subscribe::{Refusal, RequestedSubscription, no_feed, of_graphql};
use super::table_subscription;
use tidegate_http::app::App;
use tidegate_http::authenticate::{Caller, Scope};
use tidegate_http::body::Content;
use tidegate_http::error::ApiError;
use tidegate_http::memory::Reservation;
use tidegate_http::negotiate::Preferences;
use tidegate_http::operation::{Pieces, graphql, rpc, sql};
use tidegate_http::report::{Context, Errors, Protocol};

/// The result of an operation: the messages to send, or the subscription that it has started.
#[derive(Default)]
pub(super) struct OperationResult {
    /// The id and the tag under which the operation ran; `None` if it has no id.
    pub id: Option<(Id, u64)>,
    pub texts: Messages,
    /// The reservation in the memory budget for large messages. It is held until the messages are
    /// written.
    pub reservation: Option<Reservation>,
    pub subscription: Option<Subscription>,
}

/// The server, the caller and the settings of the socket for which an operation runs.
pub(super) struct OperationContext {
    pub app: App,
    pub caller: Caller,
    pub dialect: Dialect,
    pub request_id: Arc<str>,
    pub read_from: ReadFrom,
}

/// The parameters with which an operation starts a subscription. Other operations use only the tag.
pub(super) struct SubscriptionSetup {
    /// The event queue of the socket.
    pub events: EventSender,
    pub tag: u64,
    /// The operation sets this to the frame of its subscription before the first event.
    pub frame: Arc<OnceLock<Framed>>,
    /// One permit for each further subscription that the socket may have.
    pub slots: Arc<Semaphore>,
    /// The cursor after which the subscription starts; `None` to start now.
    pub after: Option<String>,
}

impl OperationContext {
    /// Runs the SQL statement in `text`, which is the whole message.
    pub(super) async fn sql(self, id: Option<Id>, text: String) -> OperationResult {
        let answered = match self.caller.require(&[Scope::Sql]) {
            Ok(()) => sql::message(&self.app, &self.caller, text.as_bytes()).await,
            Err(failure) => Err(failure),
        };
        let (text, reservation) = match answered {
            Ok(content) => content.into_bytes(),
            Err(failure) => (self.failed(id.as_deref(), &failure), None),
        };
        OperationResult {
            texts: vec![text],
            reservation,
            ..OperationResult::default()
        }
    }

    /// Runs one call of a method, or a batch of calls.
    pub(super) async fn rpc(self, text: String) -> OperationResult {
        let mut done = OperationResult::default();
        if let Err(failure) = self.caller.require(&[Scope::Methods]) {
            done.texts
                .push(self.failed(message_id(&text).as_deref(), &failure));
            return done;
        }
        let payload = match rpc::payload(&self.app, text.as_bytes()) {
            Ok(payload) => payload,
            Err(reply) => {
                self.report(Some(Errors::of_reply(&reply)));
                done.texts.push(reply.into_bytes().freeze());
                return done;
            }
        };
        let context = tidegate_rpc::Context {
            principal: &self.caller.principal,
            options: QueryOptions {
                read_from: self.read_from,
                ..Preferences::default().options(self.app.limits())
            },
            timezone: None,
        };
        let mut out = Pieces::of(&self.app, &self.caller);
        let dispatcher = self.app.dispatcher();
        let outcome = dispatcher.dispatch(&context, &payload, &mut out).await;
        self.report(rpc::report(outcome.errors, &self.context()));
        if outcome.answered {
            let (text, reservation) = Content::from(out).into_bytes();
            done.texts.push(text);
            done.reservation = reservation;
        }
        done
    }

    /// Runs a GraphQL operation of any kind.
    pub(super) async fn graphql(
        self,
        id: Id,
        schema: String,
        text: String,
        setup: SubscriptionSetup,
    ) -> OperationResult {
        let key = (id.clone(), setup.tag);
        let outcome = match self.operate(&id, &schema, &text, setup).await {
            Ok(outcome) => outcome,
            Err(failure) => {
                OperationOutcome::Messages(vec![self.failed(Some(&id), &failure)], None)
            }
        };
        self.done(key, outcome)
    }

    /// Starts a subscription to the rows of a table.
    pub(super) async fn raw(
        self,
        id: Id,
        text: String,
        setup: SubscriptionSetup,
    ) -> OperationResult {
        let key = (id.clone(), setup.tag);
        let outcome = match self.follow(&text, setup).await {
            Ok(outcome) => outcome,
            Err(failure) => {
                OperationOutcome::Messages(vec![self.failed(Some(&id), &failure)], None)
            }
        };
        self.done(key, outcome)
    }

    fn done(&self, key: (Id, u64), outcome: OperationOutcome) -> OperationResult {
        let mut done = OperationResult::default();
        match outcome {
            OperationOutcome::Messages(texts, reservation) => {
                (done.texts, done.reservation) = (texts, reservation);
            }
            OperationOutcome::Live(subscription) => done.subscription = Some(subscription),
            OperationOutcome::Refused(refusal) => {
                self.report(refusal.errors());
                done.texts = vec![outgoing::refusal(self.dialect, &key.0, &refusal)];
            }
        }
        done.id = Some(key);
        done
    }

    async fn operate(
        &self,
        id: &str,
        schema: &str,
        text: &str,
        setup: SubscriptionSetup,
    ) -> Result<OperationOutcome, ApiError> {
        let request = match Request::parse(text) {
            Ok(request) => request,
            Err(error) => return Ok(self.refused(id, &[error])),
        };
        let options = QueryOptions {
            read_from: self.read_from,
            ..Preferences::default().options_for_generated(self.app.limits())
        };
        let api = graphql::api(&self.app, &self.caller, schema, &options).await?;
        let name = request.operation_name.as_deref();
        if self.app.feed().is_none() && api.means_subscription(&request.query, name) {
            return Ok(OperationOutcome::Refused(no_feed()));
        }
        let prepared = match api.prepare(&request.query, name) {
            Ok(prepared) => prepared,
            Err(errors) => return Ok(self.refused(id, &errors)),
        };
        if !prepared.is_subscription() {
            let run = graphql::execute(
                (&self.app, &api),
                &self.caller,
                (options, u64::MAX),
                &prepared,
                request.variables,
            );
            // A message is sent as one WebSocket frame, so its whole text must be in memory.
            let reply = Box::pin(run).await?;
            let reply = reply.collect(self.app.limits().response).await;
            self.report(Errors::of_graphql(&reply.errors));
            let texts = outgoing::graphql(self.dialect, id, reply);
            // The operation cannot be undone, so its response is sent even if the memory budget is
            // exhausted.
            let mut reservation = self.app.memory().reservation(self.caller.holder());
            let size = texts.iter().map(|text| text.len() as u64).sum();
            let pays = size >= graphql::LARGE && reservation.take(size).is_ok();
            let reservation = pays.then_some(reservation);
            return Ok(OperationOutcome::Messages(texts, reservation));
        }
        self.caller.require(&[Scope::Read])?;
        match of_graphql(&api, &prepared, request.variables) {
            Ok(requested) => {
                let frame = Frame::graphql(self.dialect, id, &requested.key);
                Ok(self.subscribe(requested, frame, setup).await)
            }
            Err(refusal) => Ok(OperationOutcome::Refused(refusal)),
        }
    }

    async fn follow(
        &self,
        text: &str,
        setup: SubscriptionSetup,
    ) -> Result<OperationOutcome, ApiError> {
        self.caller.require(&[Scope::Read])?;
        let invalid = |invalid: message::InvalidMessage| ApiError::input(invalid.message);
        let fields = message::fields(text).map_err(invalid)?;
        let name = fields.required("schema").map_err(invalid)?;
        let options = Preferences::default().options_for_generated(self.app.limits());
        let schema = graphql::schema(&self.app, &self.caller, &name, &options).await?;
        let login = self.caller.login();
        let database = login.map_or("", |login| login.database.as_str());
        Ok(
            match table_subscription::requested(&fields, &schema, database) {
                Ok((requested, frame)) => self.subscribe(requested, Frame::Raw(frame), setup).await,
                Err(refusal) => OperationOutcome::Refused(refusal),
            },
        )
    }

    async fn subscribe(
        &self,
        requested: RequestedSubscription,
        frame: Frame,
        setup: SubscriptionSetup,
    ) -> OperationOutcome {
        let Ok(slot) = setup.slots.try_acquire_owned() else {
            return OperationOutcome::Refused(Refusal::new(
                "too_many_subscriptions",
                "a socket has at most 100 subscriptions",
            ));
        };
        let Some(login) = self.caller.login().cloned() else {
            return OperationOutcome::Refused(Refusal::new("not_allowed", "only users subscribe"));
        };
        let framed = Framed { frame, _slot: slot };
        // Setting the frame cannot fail, because only this task sets it, and only once.
        let _ = setup.frame.set(framed);
        let subscribed = requested
            .subscribe(&self.app, login, &setup.events, (setup.tag, setup.after))
            .await;
        match subscribed {
            Ok(subscription) => OperationOutcome::Live(subscription),
            Err(refusal) => OperationOutcome::Refused(refusal),
        }
    }

    fn refused(&self, id: &str, errors: &[tidegate_graphql::Error]) -> OperationOutcome {
        let response = GraphqlResponse::refused(errors);
        self.report(Errors::of_graphql(&response.errors));
        OperationOutcome::Messages(outgoing::graphql(self.dialect, id, response), None)
    }

    fn failed(&self, id: Option<&str>, failure: &ApiError) -> Bytes {
        failure.log(&self.context());
        self.report(Some(Errors::of_failure(Protocol::WebSocket, failure)));
        outgoing::failure(self.dialect, id, failure)
    }

    fn context(&self) -> Context<'_> {
        context(&self.request_id, Some(&self.caller))
    }

    fn report(&self, errors: Option<Errors>) {
        if let Some(errors) = errors {
            self.app.metrics().errors(&errors);
            errors.log(&self.context());
        }
    }
}

/// The `id` of a call, as JSON; `None` for a batch or a call without an id.
fn message_id(message: &str) -> Option<String> {
    let call: serde_json::Value = serde_json::from_str(message).ok()?;
    call.get("id").map(ToString::to_string)
}

/// The context of the log line for an error on a socket.
pub(super) fn context<'a>(request_id: &'a str, caller: Option<&'a Caller>) -> Context<'a> {
    let login = caller.and_then(Caller::login);
    Context {
        request_id,
        route: "/api/v4/events",
        database: login.map(|login| login.database.as_str()),
        role: login.map(|login| login.role.as_str()),
    }
}

/// The outcome of an operation that has an id.
enum OperationOutcome {
    Messages(Messages, Option<Reservation>),
    Live(Subscription),
    Refused(Refusal),
}
