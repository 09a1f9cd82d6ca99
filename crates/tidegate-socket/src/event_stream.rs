//! Change events as server-sent events (HTML Standard, "Server-sent events").

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::Stream;
use futures_util::stream::unfold;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use serde_json::json;
use serde_json::value::RawValue;
use tidegate_feed::{Delivery, EventReceiver, Item, QueueLimits, Subscription, event_queue};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, sleep_until};

use super::outgoing;
use super::subscribe::{
    Refusal, RequestedSubscription, no_feed, of_graphql, resync_reason, write_field_errors,
};
use tidegate_http::app::{App, Departure};
use tidegate_http::authenticate::{self, Caller, Scope, User};
use tidegate_http::body::{Body, BodyAborted, BodySource, Content};
use tidegate_http::call::Call;
use tidegate_http::error::{ApiError, NO_STORE};
use tidegate_http::negotiate::Preferences;
use tidegate_http::operation::graphql;
use tidegate_http::percent;

/// The interval at which a comment is sent while there are no events, so that proxies do not close
/// the connection.
const COMMENT_INTERVAL: Duration = Duration::from_secs(25);
/// The interval at which the stream checks whether the session of the token has ended.
const CHECK_INTERVAL: Duration = Duration::from_millis(2_500);

/// Handles `GET /api/v4/events/stream?schema=&query=&variables=&after=&token=&database=`.
pub async fn event_stream<B>(call: Call<'_, B>) -> Result<Response<Body>, ApiError> {
    let Call {
        app, head, subject, ..
    } = call;
    let asked = StreamRequest::of(head)?;
    let (caller, token) = asked.caller(app, head).await?;
    subject.login = caller.login().cloned();
    let (requested, key) = asked.requested(app, &caller).await?;
    let login = caller.login().cloned();
    let login = login.ok_or_else(|| ApiError::internal("only users subscribe"))?;
    let (sender, receiver) = event_queue(QueueLimits::default());
    let subscribed = requested.subscribe(app, login, &sender, (0, asked.after(head)));
    let subscription = subscribed.await.map_err(refused)?;
    let mut check = interval_at(Instant::now() + CHECK_INTERVAL, CHECK_INTERVAL);
    check.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let events = Events {
        app: app.clone(),
        receiver,
        key,
        token,
        check,
        departure: app.departure(),
        over: false,
        _subscription: subscription,
    };
    let content = Content::Streamed(Box::pin(TextStream(Box::pin(unfold(events, next)))));
    let mut response = Response::new(Body::from(content));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, NO_STORE);
    // Without this header, nginx would buffer events.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// The parameters in the query of the URL, as pairs of name and value.
struct StreamRequest(Vec<(String, String)>);

impl StreamRequest {
    fn of(head: &Parts) -> Result<Self, ApiError> {
        let pairs = percent::form(head.uri.query().unwrap_or_default());
        pairs
            .map(Self)
            .ok_or_else(|| ApiError::input("the query of the address cannot be decoded"))
    }

    fn member(&self, key: &str) -> Option<&str> {
        let mut pairs = self.0.iter();
        let found = pairs.find(|(name, value)| name == key && !value.is_empty());
        found.map(|(_, value)| value.as_str())
    }

    fn required(&self, name: &str) -> Result<&str, ApiError> {
        let missing = || ApiError::input(format!("`{name}` is missing in the address"));
        self.member(name).ok_or_else(missing)
    }

    /// The caller of the stream, and the caller's token; `None` for an anonymous caller. The token
    /// may be in the URL, because a browser's `EventSource` cannot set headers.
    async fn caller(
        &self,
        app: &App,
        head: &Parts,
    ) -> Result<(Caller, Option<StreamToken>), ApiError> {
        let database = self.member("database");
        let database = authenticate::named_database_or(&head.headers, database)?;
        let header = authenticate::bearer(&head.headers)?;
        if let Some(token) = header.or_else(|| self.member("token")) {
            let user = authenticate::by_token(app, token, || Ok(database)).await?;
            let token = StreamToken {
                expires: Instant::now() + app.issuer().remaining(&user.claims),
                user: user.clone(),
            };
            let caller = Caller::from(user);
            caller.require(&[Scope::Read])?;
            return Ok((caller, Some(token)));
        }
        Ok((authenticate::anonymous(app, database).await?, None))
    }

    /// The cursor after which the stream resumes; `None` to start now. The id of the event that the
    /// browser received most recently (`Last-Event-ID`) takes precedence over the cursor in the
    /// URL, which is older.
    fn after(&self, head: &Parts) -> Option<String> {
        let last = head.headers.get("last-event-id");
        let last = last.and_then(|last| last.to_str().ok());
        let last = last.filter(|last| !last.is_empty());
        last.or_else(|| self.member("after")).map(str::to_owned)
    }

    async fn requested(
        &self,
        app: &App,
        caller: &Caller,
    ) -> Result<(RequestedSubscription, String), ApiError> {
        let options = Preferences::default().options_for_generated(app.limits());
        let api = graphql::api(app, caller, self.required("schema")?, &options).await?;
        let document = |errors: Vec<tidegate_graphql::Error>| refused(Refusal::GraphQl(errors));
        let (query, name) = (self.required("query")?, self.member("operationName"));
        if app.feed().is_none() && api.means_subscription(query, name) {
            return Err(refused(no_feed()));
        }
        let prepared = api.prepare(query, name);
        let prepared = prepared.map_err(document)?;
        if !prepared.is_subscription() {
            return Err(ApiError::input("`query` must be a subscription"));
        }
        let variables: Option<&RawValue> = self
            .member("variables")
            .map(serde_json::from_str)
            .transpose()
            .map_err(|_| ApiError::input("`variables` must be a JSON object"))?;
        let requested = of_graphql(&api, &prepared, variables).map_err(refused)?;
        let key = json!(&*requested.key).to_string();
        Ok((requested, key))
    }
}

fn refused(refusal: Refusal) -> ApiError {
    let (code, message) = match refusal {
        Refusal::GraphQl(errors) => {
            let message = errors.into_iter().next().map(|error| error.message);
            return ApiError::input(message.unwrap_or_default());
        }
        Refusal::Other { code, message } => (code, message),
    };
    match code {
        "not_allowed" => ApiError::insufficient_privileges(message),
        "feed_unavailable" | "database_unavailable" | "subscribe_timeout" => {
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "FEED_UNAVAILABLE", message)
                .retrying_after(Duration::from_secs(1))
        }
        "capture_not_allowed" => {
            ApiError::new(StatusCode::FORBIDDEN, "CAPTURE_NOT_ALLOWED", message)
        }
        "internal_error" => ApiError::internal(message),
        _ => ApiError::input(message),
    }
}

/// The user of the token with which the stream was opened, and when the token expires.
struct StreamToken {
    user: User,
    expires: Instant,
}

/// The state of an event stream, which sends the events of one subscription.
struct Events {
    app: App,
    receiver: EventReceiver,
    /// The response key of the root field, as JSON.
    key: String,
    /// The caller's token; `None` for an anonymous caller.
    token: Option<StreamToken>,
    check: Interval,
    departure: Departure,
    /// Whether [`next`] has returned the final event.
    over: bool,
    _subscription: Subscription,
}

/// Waits for the next deliveries and returns their text. If no delivery arrives for
/// [`COMMENT_INTERVAL`], returns a comment, which clients ignore. If the token expires or is no
/// longer valid, returns an error event. Returns `None` after the final event, when the event queue
/// was closed, and when the node is shutting down.
async fn next(mut events: Events) -> Option<(Bytes, Events)> {
    if events.over {
        return None;
    }
    let comment = Instant::now() + COMMENT_INTERVAL;
    let expires = events.token.as_ref().map(|token| token.expires);
    let wake = expires.map_or(comment, |at| at.min(comment));
    loop {
        let due = tokio::select! {
            due = events.receiver.next() => due,
            () = events.departure.due() => return None,
            _ = events.check.tick() => match events.failure().await {
                Some(failure) => return Some((events.end(&failure), events)),
                None => continue,
            },
            () = sleep_until(wake) => {
                events.over = expires.is_some_and(|at| at <= Instant::now());
                let text: &[u8] = if events.over {
                    b"event: error\ndata: {\"error\":\"token_expired\",\"message\":\"the token has expired\"}\n\n"
                } else {
                    b":\n\n"
                };
                return Some((Bytes::from_static(text), events));
            }
        };
        let mut out = BytesMut::with_capacity(256);
        for Delivery { item, .. } in due? {
            events.write(item, &mut out);
        }
        return Some((out.freeze(), events));
    }
}

impl Events {
    /// The error if the token is no longer valid, because its session has ended or its user was
    /// dropped; otherwise `None`.
    async fn failure(&self) -> Option<ApiError> {
        let token = self.token.as_ref()?;
        authenticate::recheck(&self.app, &token.user).await.err()
    }

    /// Ends the stream. Returns the text of its final event, which reports an error.
    fn end(&mut self, failure: &ApiError) -> Bytes {
        self.over = true;
        let error = failure.code.to_ascii_lowercase();
        let data = json!({"error": error, "message": failure.message});
        format!("event: error\ndata: {data}\n\n").into()
    }

    fn write(&mut self, item: Item, out: &mut BytesMut) {
        let text = match item {
            Item::Acknowledged { cursor } => {
                format!("event: subscribe_ack\nid: {cursor}\ndata: {{}}\n\n")
            }
            Item::Event {
                cursor,
                row,
                field_errors,
                ..
            } => {
                let key = &self.key;
                out.put_slice(format!("id: {cursor}\ndata: {{\"data\":{{{key}:[").as_bytes());
                // JSON strings contain no line breaks, and this JSON has none between tokens, so
                // the data is one line.
                out.put_slice(&row);
                out.put_slice(b"]}");
                write_field_errors(key, field_errors.as_deref(), out);
                out.put_slice(format!(",\"cursor\":\"{cursor}\"}}\n\n").as_bytes());
                return;
            }
            Item::Resync { cursor, reason } => {
                let reason = resync_reason(reason);
                format!("event: resync\nid: {cursor}\ndata: {{\"reason\":\"{reason}\"}}\n\n")
            }
            Item::Ended(ended) => {
                self.over = true;
                let (error, message, cursor) = outgoing::ended(&ended);
                let cursor = cursor.map(|cursor| cursor.to_string());
                let data = json!({"error": error, "message": message, "cursor": cursor});
                format!("event: error\ndata: {data}\n\n")
            }
        };
        out.put_slice(text.as_bytes());
    }
}

/// Adapts a stream of texts to the content of a response.
struct TextStream<S>(Pin<Box<S>>);

impl<S: Stream<Item = Bytes> + Send> BodySource for TextStream<S> {
    fn poll_next(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, BodyAborted>>> {
        self.0.as_mut().poll_next(cx).map(|next| next.map(Ok))
    }
}
