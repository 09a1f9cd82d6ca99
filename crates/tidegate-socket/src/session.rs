//! One socket from its first message to its end: a loop over a closed set of happenings.

mod receive;
mod send;
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
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, Interval, MissedTickBehavior};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::CapacityError;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::answer;
use super::entry::Entry;
use super::handshake::{Credentials, Dialect, Opening};
use super::identity::Identity;
use super::message::Id;
use super::operation::{self, Done};
use tidegate_http::app::App;
use tidegate_http::error::Failure;
use tidegate_http::report::{Context, Errors, Protocol};

/// The largest message that is taken.
const MESSAGE: usize = 256 * 1024;
/// An idle socket must stay small; the library's own buffers would take a quarter of a megabyte.
const BUFFER: usize = 2 * 1024;
/// How often it is looked whether the caller's session has ended meanwhile.
const LOOK: Duration = Duration::from_millis(2_500);
/// A ping goes with every so many looks: every 25 s.
const PING: u8 = 10;
/// How long the first message of a socket without a token may take.
const FIRST: Duration = Duration::from_secs(10);
const SUBSCRIPTIONS: usize = 100;
/// Operations at once; then nothing is read until one of them has ended.
const OPERATIONS: usize = 100;
/// How long the peer may take to answer a close.
const GOODBYE: Duration = Duration::from_secs(2);

/// What happens to a socket.
enum SessionEvent {
    /// The peer has said something, or has gone.
    Heard(Option<Result<Message, Error>>),
    /// An operation has ended.
    Done(Result<Done, JoinError>),
    /// Events are due.
    Due(Option<Vec<Delivery>>),
    /// It is time for a look.
    Tick,
    /// The first message has not come, or the token has expired.
    Deadline,
    /// The service stops.
    Drain,
}

/// Why a socket ends.
pub(super) struct End {
    code: u16,
    reason: Cow<'static, str>,
    /// Whether the peer took nothing for too long.
    stuck: bool,
}

impl End {
    fn new(code: u16, reason: impl Into<Cow<'static, str>>) -> Self {
        let reason = reason.into();
        Self {
            code,
            reason,
            stuck: false,
        }
    }

    /// The peer takes nothing.
    fn stuck() -> Self {
        Self {
            stuck: true,
            ..Self::new(1013, "slow_consumer")
        }
    }

    /// The peer has gone; nobody reads a close.
    fn gone() -> Self {
        Self::new(0, "")
    }
}

type Flow = Result<(), End>;

/// A socket and what runs on it.
struct Session {
    app: App,
    socket: WebSocketStream<TokioIo<Upgraded>>,
    dialect: Dialect,
    credentials: Credentials,
    request_id: Arc<str>,
    identity: Option<Identity>,
    /// When the token expires.
    expires: Option<Instant>,
    /// When the socket ends unless something happens before.
    deadline: Option<Instant>,
    /// Whether `connection_init` has come.
    initialised: bool,
    look: Interval,
    /// Since the last ping.
    looks: u8,
    unanswered: u8,
    stopped: watch::Receiver<bool>,
    draining: bool,
    operations: JoinSet<Done>,
    entries: HashMap<Id, Entry>,
    /// The ids of entries by their tags.
    tags: HashMap<u64, Id>,
    last_tag: u64,
    places: Arc<Semaphore>,
    event_sender: EventSender,
    events: EventReceiver,
    /// The place of the last event that was written.
    sent: Option<Cursor>,
    /// What could not be written any more.
    unsent: Vec<Delivery>,
}

/// Serves a socket until it ends.
pub async fn run(app: App, opening: Opening, stopped: watch::Receiver<bool>) {
    // The handshake has been answered, or the peer has gone before that.
    let Ok(upgraded) = opening.on_upgrade.await else {
        return;
    };
    let config = WebSocketConfig::default()
        .read_buffer_size(BUFFER)
        .write_buffer_size(BUFFER)
        .max_message_size(Some(MESSAGE))
        .max_frame_size(Some(MESSAGE));
    let io = TokioIo::new(upgraded);
    let socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
    let (event_sender, events) = event_queue(QueueLimits::default());
    let mut look = tokio::time::interval_at(Instant::now() + LOOK, LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let session = Session {
        socket,
        dialect: opening.dialect,
        credentials: opening.credentials,
        request_id: opening.request_id.into(),
        identity: None,
        expires: None,
        deadline: None,
        initialised: false,
        look,
        looks: 0,
        unanswered: 0,
        stopped,
        draining: false,
        operations: JoinSet::new(),
        entries: HashMap::new(),
        tags: HashMap::new(),
        last_tag: 0,
        places: Arc::new(Semaphore::new(SUBSCRIPTIONS)),
        event_sender,
        events,
        sent: None,
        unsent: Vec::new(),
        app,
    };
    session.serve().await;
}

impl Session {
    async fn serve(mut self) {
        let _counted = Counted::new(&self.app);
        let end = match self.begin().await {
            Ok(()) => self.listen().await,
            Err(end) => end,
        };
        self.say_goodbye(end).await;
    }

    async fn begin(&mut self) -> Flow {
        if self.dialect == Dialect::Unknown {
            return Err(End::new(4406, "Subprotocol not acceptable"));
        }
        match self.credentials.token.take() {
            Some(Ok(token)) => {
                self.authenticate(&token).await?;
            }
            Some(Err(failure)) => return Err(self.unauthorized(&failure).await),
            None => {}
        }
        if self.identity.is_none() || self.dialect == Dialect::Transport {
            self.deadline = Some(Instant::now() + FIRST);
        }
        Ok(())
    }

    async fn listen(&mut self) -> End {
        loop {
            let event = self.next().await;
            let flow = match event {
                SessionEvent::Heard(heard) => self.heard(heard).await,
                SessionEvent::Done(done) => self.done(done).await,
                SessionEvent::Due(due) => self.due(due).await,
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
                return End::new(1001, "server shutting down; reconnect");
            }
        }
    }

    async fn next(&mut self) -> SessionEvent {
        let reads = !self.draining && self.operations.len() < OPERATIONS;
        let deadline = self.deadline;
        tokio::select! {
            heard = self.socket.next(), if reads => SessionEvent::Heard(heard),
            Some(done) = self.operations.join_next() => SessionEvent::Done(done),
            due = self.events.next() => SessionEvent::Due(due),
            _ = self.look.tick() => SessionEvent::Tick,
            () = wait(deadline), if deadline.is_some() => SessionEvent::Deadline,
            _ = self.stopped.changed(), if !self.draining => SessionEvent::Drain,
        }
    }

    async fn heard(&mut self, heard: Option<Result<Message, Error>>) -> Flow {
        self.unanswered = 0;
        match heard {
            Some(Ok(Message::Text(text))) => self.hear(&text).await,
            Some(Ok(Message::Binary(_))) => {
                self.report("invalid_message");
                let text = "binary messages are not supported";
                if self.dialect == Dialect::Transport {
                    return Err(End::new(4400, text));
                }
                let text = answer::error(self.dialect, None, "invalid_message", text);
                self.send(text).await
            }
            Some(Ok(_)) => Ok(()),
            Some(Err(Error::Capacity(CapacityError::MessageTooLong { .. }))) => {
                self.report("message_too_large");
                let message = format!("a message has at most {MESSAGE} bytes");
                if self.dialect == Dialect::Own {
                    let text = answer::error(self.dialect, None, "message_too_large", &message);
                    self.send(text).await?;
                }
                Err(End::new(1009, message))
            }
            Some(Err(Error::Utf8(_))) => Err(End::new(1007, "a text message must be UTF-8")),
            Some(Err(Error::Protocol(_))) => Err(End::new(1002, "protocol error")),
            Some(Err(_)) | None => Err(End::gone()),
        }
    }

    async fn tick(&mut self) -> Flow {
        if let Some(identity) = &self.identity
            && let Err(failure) = identity.check(&self.app)
        {
            return Err(self.unauthorized(&failure).await);
        }
        self.looks += 1;
        if self.looks < PING {
            return Ok(());
        }
        self.looks = 0;
        if self.unanswered >= 2 {
            return Err(End::gone());
        }
        // What is not read cannot be answered.
        if self.operations.len() < OPERATIONS {
            self.unanswered += 1;
        }
        self.write(Message::Ping(Bytes::new())).await
    }

    async fn expired(&mut self) -> End {
        match self.dialect {
            Dialect::Transport if !self.initialised => {
                End::new(4408, "Connection initialisation timeout")
            }
            _ if self.identity.is_none() => {
                let text = "no message within 10 seconds";
                self.unauthorized(&Failure::missing_token(text)).await
            }
            _ => {
                if self.dialect == Dialect::Own {
                    let text = "the token has expired";
                    let text = answer::error(self.dialect, None, "token_expired", text);
                    let _ = self.send(text).await;
                }
                End::new(4440, "token_expired")
            }
        }
    }

    /// A token that is good makes or renews who asks.
    async fn authenticate(&mut self, token: &str) -> Result<Duration, End> {
        let (identity, left) = match Identity::by_token(&self.app, token) {
            Ok(known) => known,
            Err(failure) => return Err(self.unauthorized(&failure).await),
        };
        if let Some(known) = &self.identity
            && !known.is_same(&identity)
            && !self.entries.is_empty()
        {
            let text = "the token is another user's, and subscriptions or operations run";
            return Err(self.unauthorized(&Failure::invalid_token(text)).await);
        }
        self.identity = Some(identity);
        self.expires = Some(Instant::now() + left);
        self.deadline = self.expires;
        Ok(left)
    }

    async fn anonymous(&mut self) -> Flow {
        match Identity::anonymous(&self.app, &self.credentials).await {
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

    /// Logs and counts an error of the socket itself.
    fn report(&self, code: &'static str) {
        let errors = Errors::one(Protocol::WebSocket, code);
        self.app.metrics().errors(&errors);
        errors.log(&self.context());
    }

    /// Tells why the caller is not accepted.
    async fn unauthorized(&mut self, failure: &Failure) -> End {
        let errors = Errors::of_failure(Protocol::WebSocket, failure);
        self.app.metrics().errors(&errors);
        errors.log(&self.context());
        let code = failure.code.to_ascii_lowercase();
        if self.dialect != Dialect::Transport {
            let text = answer::failure(self.dialect, None, failure);
            let _ = self.send(text).await;
        }
        if failure.status.is_server_error() {
            return End::new(1013, code);
        }
        End::new(4401, code)
    }
}

async fn wait(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// A socket in the gauge.
struct Counted(App);

impl Counted {
    fn new(app: &App) -> Self {
        app.metrics().socket(1);
        Self(app.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.metrics().socket(-1);
    }
}
