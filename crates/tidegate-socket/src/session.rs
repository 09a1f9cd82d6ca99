//! Serves a WebSocket from its first message to its end.

mod receive;
mod send;
mod socket_gauge;
mod write;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tidegate_feed::{Cursor, Delivery, EventReceiver, EventSender, QueueLimits, event_queue};
use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, Interval, MissedTickBehavior};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::CapacityError;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use self::socket_gauge::SocketGauge;
use super::handshake::{AcceptedSocket, Credentials, Dialect};
use super::identity::CallerIdentity;
use super::message::Id;
use super::operation::{self, OperationResult};
use super::outgoing;
use super::running_operation::RunningOperation;
use tidegate_http::app::{App, Departure};
use tidegate_http::error::ApiError;
use tidegate_http::report::{Context, Errors, Protocol};

/// The size of the largest accepted message, in bytes.
const MAX_MESSAGE_SIZE: usize = 256 * 1024;
/// The size of the WebSocket library's buffers, in bytes. The default buffers take 256 KiB for each
/// socket.
const BUFFER_SIZE: usize = 2 * 1024;
/// The interval at which the task checks whether the caller's OAuth session has ended.
const CHECK_INTERVAL: Duration = Duration::from_millis(2_500);
/// The number of checks from one ping to the next. A ping is sent every 25 seconds.
const CHECKS_PER_PING: u8 = 10;
/// How long a client may take to send `connection_init` (in `graphql-transport-ws`), or its first
/// message (in Tidegate's own protocol, if the handshake had no token).
const FIRST_MESSAGE_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_SUBSCRIPTIONS: usize = 100;
/// The maximum number of operations that run on a socket at the same time. At this number, no
/// message is read until an operation has ended.
const MAX_OPERATIONS: usize = 100;
/// How long the client may take to reply to a Close frame.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// An event that the task of a socket handles.
enum SessionEvent {
    /// A message was received, or the connection has ended.
    Received(Option<Result<Message, Error>>),
    /// An operation has ended, or a subscription has started.
    Done(Result<OperationResult, JoinError>),
    /// Deliveries of subscriptions are ready; `None` if the event queue was closed.
    Deliver(Option<Vec<Delivery>>),
    /// It is time to check the identity of the caller, and to send a ping if one is due.
    Tick,
    /// The deadline has passed: the first message (in GraphQL's protocol `connection_init`) did not
    /// arrive in time, or the token has expired.
    Deadline,
    /// The node is shutting down, and the client should reconnect.
    Drain,
}

/// The reason why a socket ends, with the code and text of the Close frame.
pub(super) struct CloseReason {
    code: u16,
    reason: Cow<'static, str>,
    /// Whether the socket ends because the client has not read for too long.
    stalled: bool,
}

impl CloseReason {
    fn new(code: u16, reason: impl Into<Cow<'static, str>>) -> Self {
        let reason = reason.into();
        Self {
            code,
            reason,
            stalled: false,
        }
    }

    /// The reason for a client that has not read for too long.
    fn stalled() -> Self {
        Self {
            stalled: true,
            ..Self::new(1013, "slow_consumer")
        }
    }

    /// The reason for a client that disconnected or ignores pings. No Close frame is sent.
    fn disconnected() -> Self {
        Self::new(0, "")
    }
}

type SessionResult = Result<(), CloseReason>;

/// A socket and the operations that run on it.
struct Session {
    app: App,
    socket: WebSocketStream<TokioIo<Upgraded>>,
    dialect: Dialect,
    credentials: Credentials,
    request_id: Arc<str>,
    /// The identity of the caller; `None` until the first token or message.
    identity: Option<CallerIdentity>,
    /// When the token expires; `None` if there is no token.
    expires: Option<Instant>,
    /// The time at which the socket is closed: the time limit of the first message, or the expiry
    /// of the token. A message can change the deadline. `None` if there is no limit.
    deadline: Option<Instant>,
    /// Whether `connection_init` was received.
    initialised: bool,
    check_timer: Interval,
    /// The number of checks since the most recent ping was sent.
    checks: u8,
    /// The number of pings since a message was last received.
    missed_pongs: u8,
    departure: Departure,
    /// Whether the node is shutting down. If so, no message is read, and the socket ends when its
    /// operations have ended.
    draining: bool,
    operations: JoinSet<OperationResult>,
    operations_by_id: HashMap<Id, RunningOperation>,
    /// The ids of the running operations, by their tags. A tag is the number of an operation on
    /// this socket. Unlike an id, it is never reused.
    tags: HashMap<u64, Id>,
    last_tag: u64,
    /// One permit for each subscription that may still start, at first [`MAX_SUBSCRIPTIONS`].
    slots: Arc<Semaphore>,
    event_sender: EventSender,
    events: EventReceiver,
    /// The cursor of the event or gap that was written most recently.
    sent: Option<Cursor>,
    /// The greatest cursor that was written. It may differ from `sent`, because a subscription that
    /// replays sends older events. Later reads of this client show all changes up to the end of
    /// this cursor.
    newest_sent: Option<Cursor>,
    /// The deliveries that were taken out of the queue and could not be written.
    unsent: Vec<Delivery>,
}

/// Serves a socket until it ends.
pub async fn run(app: App, accepted: AcceptedSocket) {
    // On an error, the client disconnected before the handshake was complete.
    let Ok(upgraded) = accepted.on_upgrade.await else {
        return;
    };
    let config = WebSocketConfig::default()
        .read_buffer_size(BUFFER_SIZE)
        .write_buffer_size(BUFFER_SIZE)
        .max_message_size(Some(MAX_MESSAGE_SIZE))
        .max_frame_size(Some(MAX_MESSAGE_SIZE));
    let io = TokioIo::new(upgraded);
    let socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
    let (event_sender, events) = event_queue(QueueLimits::default());
    let mut check_timer = tokio::time::interval_at(Instant::now() + CHECK_INTERVAL, CHECK_INTERVAL);
    check_timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let session = Session {
        socket,
        dialect: accepted.dialect,
        credentials: accepted.credentials,
        request_id: accepted.request_id.into(),
        identity: None,
        expires: None,
        deadline: None,
        initialised: false,
        check_timer,
        checks: 0,
        missed_pongs: 0,
        departure: app.departure(),
        draining: false,
        operations: JoinSet::new(),
        operations_by_id: HashMap::new(),
        tags: HashMap::new(),
        last_tag: 0,
        slots: Arc::new(Semaphore::new(MAX_SUBSCRIPTIONS)),
        event_sender,
        events,
        sent: None,
        newest_sent: None,
        unsent: Vec::new(),
        app,
    };
    session.serve().await;
}

impl Session {
    async fn serve(mut self) {
        let _counted = SocketGauge::new(&self.app);
        let end = match self.begin().await {
            Ok(()) => self.run_events().await,
            Err(end) => end,
        };
        self.end(end).await;
    }

    async fn begin(&mut self) -> SessionResult {
        if self.dialect == Dialect::Unknown {
            return Err(CloseReason::new(4406, "Subprotocol not acceptable"));
        }
        match self.credentials.token.take() {
            Some(Ok(token)) => {
                self.authenticate(&token).await?;
            }
            Some(Err(failure)) => return Err(self.unauthorized(&failure).await),
            None => {}
        }
        if self.identity.is_none() || self.dialect == Dialect::GraphQlTransportWs {
            self.deadline = Some(Instant::now() + FIRST_MESSAGE_TIMEOUT);
        }
        Ok(())
    }

    async fn run_events(&mut self) -> CloseReason {
        loop {
            let event = self.next().await;
            let flow = match event {
                SessionEvent::Received(received) => self.received(received).await,
                SessionEvent::Done(done) => self.operation_ended(done).await,
                SessionEvent::Deliver(due) => self.send_deliveries(due).await,
                SessionEvent::Tick => self.tick().await,
                SessionEvent::Deadline => Err(self.expired().await),
                SessionEvent::Drain => {
                    self.draining = true;
                    Ok(())
                }
            };
            if let Err(end) = flow {
                return end;
            }
            if self.draining && self.operations.is_empty() {
                return CloseReason::new(1001, "server shutting down; reconnect");
            }
        }
    }

    async fn next(&mut self) -> SessionEvent {
        let reads = !self.draining && self.operations.len() < MAX_OPERATIONS;
        let deadline = self.deadline;
        tokio::select! {
            received = self.socket.next(), if reads => SessionEvent::Received(received),
            Some(done) = self.operations.join_next() => SessionEvent::Done(done),
            due = self.events.next() => SessionEvent::Deliver(due),
            _ = self.check_timer.tick() => SessionEvent::Tick,
            () = wait(deadline), if deadline.is_some() => SessionEvent::Deadline,
            () = self.departure.due(), if !self.draining => SessionEvent::Drain,
        }
    }

    async fn received(&mut self, received: Option<Result<Message, Error>>) -> SessionResult {
        self.missed_pongs = 0;
        match received {
            Some(Ok(Message::Text(text))) => self.receive_text(&text).await,
            Some(Ok(Message::Binary(_))) => {
                self.report("invalid_message");
                let text = "binary messages are not supported";
                if self.dialect == Dialect::GraphQlTransportWs {
                    return Err(CloseReason::new(4400, text));
                }
                let text = outgoing::error(self.dialect, None, "invalid_message", text);
                self.send(text).await
            }
            Some(Ok(_)) => Ok(()),
            Some(Err(Error::Capacity(CapacityError::MessageTooLong { .. }))) => {
                self.report("message_too_large");
                let message = format!("a message has at most {MAX_MESSAGE_SIZE} bytes");
                if self.dialect == Dialect::Tidegate {
                    let text = outgoing::error(self.dialect, None, "message_too_large", &message);
                    self.send(text).await?;
                }
                Err(CloseReason::new(1009, message))
            }
            Some(Err(Error::Utf8(_))) => {
                Err(CloseReason::new(1007, "a text message must be UTF-8"))
            }
            Some(Err(Error::Protocol(_))) => Err(CloseReason::new(1002, "protocol error")),
            Some(Err(_)) | None => Err(CloseReason::disconnected()),
        }
    }

    async fn tick(&mut self) -> SessionResult {
        if let Some(identity) = &self.identity
            && let Err(failure) = identity.check(&self.app).await
        {
            return Err(self.unauthorized(&failure).await);
        }
        self.checks += 1;
        if self.checks < CHECKS_PER_PING {
            return Ok(());
        }
        self.checks = 0;
        if self.missed_pongs >= 2 {
            return Err(CloseReason::disconnected());
        }
        // While `MAX_OPERATIONS` operations run, no message is read, so a missing pong does not count.
        if self.operations.len() < MAX_OPERATIONS {
            self.missed_pongs += 1;
        }
        self.write(Message::Ping(Bytes::new())).await
    }

    async fn expired(&mut self) -> CloseReason {
        match self.dialect {
            Dialect::GraphQlTransportWs if !self.initialised => {
                CloseReason::new(4408, "Connection initialisation timeout")
            }
            _ if self.identity.is_none() => {
                let text = "no message within 10 seconds";
                self.unauthorized(&ApiError::missing_token(text)).await
            }
            _ => {
                if self.dialect == Dialect::Tidegate {
                    let text = "the token has expired";
                    let text = outgoing::error(self.dialect, None, "token_expired", text);
                    let _ = self.send(text).await;
                }
                CloseReason::new(4440, "token_expired")
            }
        }
    }

    /// Validates a token, and sets or renews the identity and the deadline. Fails if the identity
    /// would change while a subscription or another operation with an id runs. Returns the
    /// remaining lifetime of the token.
    async fn authenticate(&mut self, token: &str) -> Result<Duration, CloseReason> {
        let identity = CallerIdentity::by_token(&self.app, token, &self.credentials).await;
        let (identity, left) = match identity {
            Ok(known) => known,
            Err(failure) => return Err(self.unauthorized(&failure).await),
        };
        if let Some(known) = &self.identity
            && !known.is_same(&identity)
            && !self.operations_by_id.is_empty()
        {
            let text = "the token is another user's, and subscriptions or operations run";
            return Err(self.unauthorized(&ApiError::invalid_token(text)).await);
        }
        self.identity = Some(identity);
        self.expires = Some(Instant::now() + left);
        self.deadline = self.expires;
        Ok(left)
    }

    async fn anonymous(&mut self) -> SessionResult {
        match CallerIdentity::anonymous(&self.app, &self.credentials).await {
            Ok(identity) => {
                self.identity = Some(identity);
                (self.expires, self.deadline) = (None, None);
                Ok(())
            }
            Err(failure) => Err(self.unauthorized(&failure).await),
        }
    }

    fn context(&self) -> Context<'_> {
        let caller = self.identity.as_ref().map(|identity| &identity.caller);
        operation::context(&self.request_id, caller)
    }

    /// Logs and counts an error that does not belong to an operation.
    fn report(&self, code: &'static str) {
        let errors = Errors::one(Protocol::WebSocket, code);
        self.app.metrics().errors(&errors);
        errors.log(&self.context());
    }

    /// Sends the error of a failed authentication, and returns the reason for the close. Also logs
    /// and counts the error.
    async fn unauthorized(&mut self, failure: &ApiError) -> CloseReason {
        let errors = Errors::of_failure(Protocol::WebSocket, failure);
        self.app.metrics().errors(&errors);
        errors.log(&self.context());
        let code = failure.code.to_ascii_lowercase();
        if self.dialect != Dialect::GraphQlTransportWs {
            let text = outgoing::failure(self.dialect, None, failure);
            let _ = self.send(text).await;
        }
        if failure.status.is_server_error() {
            return CloseReason::new(1013, code);
        }
        CloseReason::new(4401, code)
    }
}

async fn wait(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
