//! What a message asks for, done beside the session by the library calls that HTTP uses.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use tidegate_feed::{EventSender, Subscription};
use tidegate_graphql::{GraphqlResponse, Request};
use tokio::sync::Semaphore;

use super::answer::{self, Texts};
use super::entry::{Frame, Framed};
use super::handshake::Dialect;
use super::message::{self, Id};
use super::subscribe::{Refusal, Wanted, no_feed, of_graphql};
use super::table_subscription;
use tidegate_http::app::App;
use tidegate_http::authenticate::Caller;
use tidegate_http::body::Content;
use tidegate_http::error::Failure;
use tidegate_http::memory::Share;
use tidegate_http::negotiate::Preferences;
use tidegate_http::operation::{Pieces, graphql, rpc, sql};
use tidegate_http::report::{Context, Errors, Protocol};

/// What came of it.
#[derive(Default)]
pub(super) struct Done {
    /// Under which id it ran.
    pub id: Option<(Id, u64)>,
    pub texts: Texts,
    /// Pays for large texts until they are written.
    pub share: Option<Share>,
    pub subscription: Option<Subscription>,
}

/// What operations work with.
pub(super) struct Work {
    pub app: App,
    pub caller: Caller,
    pub dialect: Dialect,
    pub request_id: Arc<str>,
}

/// The way into the connection's queue.
pub(super) struct Channel {
    pub events: EventSender,
    pub tag: u64,
    pub frame: Arc<OnceLock<Framed>>,
    pub places: Arc<Semaphore>,
    pub after: Option<String>,
}

impl Work {
    /// A statement.
    pub(super) async fn sql(self, id: Option<Id>, text: String) -> Done {
        let answered = sql::message(&self.app, &self.caller, text.as_bytes()).await;
        let (text, share) = match answered {
            Ok(content) => content.into_bytes(),
            Err(failure) => (self.failed(id.as_deref(), &failure), None),
        };
        Done {
            texts: vec![text],
            share,
            ..Done::default()
        }
    }

    /// Calls of methods.
    pub(super) async fn rpc(self, text: String) -> Done {
        let mut done = Done::default();
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
            options: sql::options(&self.app, &Preferences::default()),
            timezone: None,
        };
        let mut out = Pieces::of(&self.app, &self.caller);
        let dispatcher = self.app.dispatcher();
        let outcome = dispatcher.dispatch(&context, &payload, &mut out).await;
        self.report(rpc::report(outcome.errors, &self.context()));
        if outcome.answered {
            let (text, share) = Content::from(out).into_bytes();
            done.texts.push(text);
            done.share = share;
        }
        done
    }

    /// A GraphQL operation of any kind.
    pub(super) async fn graphql(self, id: Id, schema: String, text: String, to: Channel) -> Done {
        let key = (id.clone(), to.tag);
        let outcome = match self.operate(&id, &schema, &text, to).await {
            Ok(outcome) => outcome,
            Err(failure) => Outcome::Texts(vec![self.failed(Some(&id), &failure)], None),
        };
        self.done(key, outcome)
    }

    /// A subscription to the rows of a table.
    pub(super) async fn raw(self, id: Id, text: String, to: Channel) -> Done {
        let key = (id.clone(), to.tag);
        let outcome = match self.follow(&text, to).await {
            Ok(outcome) => outcome,
            Err(failure) => Outcome::Texts(vec![self.failed(Some(&id), &failure)], None),
        };
        self.done(key, outcome)
    }

    fn done(&self, key: (Id, u64), outcome: Outcome) -> Done {
        let mut done = Done::default();
        match outcome {
            Outcome::Texts(texts, share) => (done.texts, done.share) = (texts, share),
            Outcome::Live(subscription) => done.subscription = Some(subscription),
            Outcome::Refused(refusal) => {
                self.report(refusal.errors());
                done.texts = vec![answer::refusal(self.dialect, &key.0, &refusal)];
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
        to: Channel,
    ) -> Result<Outcome, Failure> {
        let request = match Request::parse(text) {
            Ok(request) => request,
            Err(error) => return Ok(self.refused(id, &[error])),
        };
        let options = sql::generated_terms(&self.app, &Preferences::default());
        let api = graphql::api(&self.app, &self.caller, schema, &options).await?;
        let name = request.operation_name.as_deref();
        if self.app.feed().is_none() && api.means_subscription(&request.query, name) {
            return Ok(Outcome::Refused(no_feed()));
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
            // A message is one frame, so that its bytes must all be there.
            let answer = Box::pin(run).await?;
            let answer = answer.collect(self.app.limits().response).await;
            self.report(Errors::of_graphql(&answer.errors));
            let texts = answer::graphql(self.dialect, id, answer);
            // What was done cannot be undone, so it is told even where nothing is left to pay.
            let mut share = self.app.memory().share(self.caller.holder());
            let size = texts.iter().map(|text| text.len() as u64).sum();
            let pays = size >= graphql::LARGE && share.take(size).is_ok();
            let share = pays.then_some(share);
            return Ok(Outcome::Texts(texts, share));
        }
        match of_graphql(&api, &prepared, request.variables) {
            Ok(wanted) => {
                let frame = Frame::graphql(self.dialect, id, &wanted.key);
                Ok(self.subscribe(wanted, frame, to).await)
            }
            Err(refusal) => Ok(Outcome::Refused(refusal)),
        }
    }

    async fn follow(&self, text: &str, to: Channel) -> Result<Outcome, Failure> {
        let invalid = |wrong: message::Wrong| Failure::input(wrong.message);
        let fields = message::fields(text).map_err(invalid)?;
        let name = fields.needed("schema").map_err(invalid)?;
        let options = sql::generated_terms(&self.app, &Preferences::default());
        let schema = graphql::schema(&self.app, &self.caller, &name, &options).await?;
        let login = self.caller.login();
        let database = login.map_or("", |login| login.database.as_str());
        Ok(
            match table_subscription::wanted(&fields, &schema, database) {
                Ok((wanted, frame)) => self.subscribe(wanted, Frame::Raw(frame), to).await,
                Err(refusal) => Outcome::Refused(refusal),
            },
        )
    }

    async fn subscribe(&self, wanted: Wanted, frame: Frame, to: Channel) -> Outcome {
        let Ok(place) = to.places.try_acquire_owned() else {
            return Outcome::Refused(Refusal::new(
                "too_many_subscriptions",
                "a socket has at most 100 subscriptions",
            ));
        };
        let Some(login) = self.caller.login().cloned() else {
            return Outcome::Refused(Refusal::new("not_allowed", "only users subscribe"));
        };
        let framed = Framed {
            frame,
            _place: place,
        };
        // Only this task sets it, and only once.
        let _ = to.frame.set(framed);
        let subscribed = wanted
            .subscribe(&self.app, login, &to.events, (to.tag, to.after))
            .await;
        match subscribed {
            Ok(subscription) => Outcome::Live(subscription),
            Err(refusal) => Outcome::Refused(refusal),
        }
    }

    fn refused(&self, id: &str, errors: &[tidegate_graphql::Error]) -> Outcome {
        let answer = GraphqlResponse::refused(errors);
        self.report(Errors::of_graphql(&answer.errors));
        Outcome::Texts(answer::graphql(self.dialect, id, answer), None)
    }

    fn failed(&self, id: Option<&str>, failure: &Failure) -> Bytes {
        failure.log(&self.context());
        self.report(Some(Errors::of_failure(Protocol::WebSocket, failure)));
        answer::failure(self.dialect, id, failure)
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

/// Where an error of a socket happened, for the log.
pub(super) fn context<'a>(request_id: &'a str, caller: Option<&'a Caller>) -> Context<'a> {
    let login = caller.and_then(Caller::login);
    Context {
        request_id,
        route: "/api/v4/events",
        database: login.map(|login| login.database.as_str()),
        role: login.map(|login| login.role.as_str()),
    }
}

enum Outcome {
    Texts(Texts, Option<Share>),
    Live(Subscription),
    Refused(Refusal),
}
