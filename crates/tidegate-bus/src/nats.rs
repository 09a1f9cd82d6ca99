//! The connection to NATS, and the requests of JetStream that the bus needs (NATS, "JetStream wire
//! API Reference").

mod address;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::connection::State;
use async_nats::{Client, ConnectErrorKind, Event, RequestErrorKind, ServerAddr, Subscriber};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::error::{BusError, BusResult};
use crate::settings::BusSettings;

/// The timeout for connecting, and for requests that delay no events.
const TIMEOUT: Duration = Duration::from_secs(3);
/// The timeout for requests that delay events: for a message, or for the state of the stream. After
/// it the node reads from PostgreSQL. If the leader of the stream dies, the servers need longer to
/// elect another one.
const READ_TIMEOUT: Duration = Duration::from_millis(600);
/// The interval between pings. The connection counts as broken after two pings without an answer.
const PING: Duration = Duration::from_secs(1);
/// How long a message waits for room in the connection's queue.
const QUEUE_TIMEOUT: Duration = Duration::from_millis(100);
/// The maximum number of messages in the queue of the connection. The queue of a subscription takes
/// four times as many.
const QUEUE: usize = 256;
/// The limits of the stream that depend on the settings.
const LIMITS: [&str; 3] = ["num_replicas", "max_age", "max_bytes"];
/// The maximum size of a message's subject and headers together, in bytes.
const OVERHEAD: usize = 1024;
/// The error codes of JetStream for missing room (nats-server, `server/errors.json`): resources,
/// memory, storage, store size of an account.
const FULL: [u64; 4] = [10_023, 10_028, 10_047, 10_002];
/// The error codes for the number of replicas: no suitable peers, more than one replica without a
/// cluster, too many replicas.
const REPLICAS: [u64; 3] = [10_005, 10_074, 10_079];
/// The text that the description of error 10005 (no suitable peers) contains if the servers have
/// too little storage.
const NO_ROOM: &str = "insufficient storage";
/// The error codes for a missing JetStream: not enabled on the server, not enabled for the account,
/// unavailable.
const NO_JETSTREAM: [u64; 3] = [10_076, 10_039, 10_035];
/// The error code for a message that does not exist.
const NO_MESSAGE: u64 = 10_037;
/// The error code for a stream that does not exist.
const NO_STREAM: u64 = 10_059;
/// The error code if a stream of this name exists with another configuration.
const EXISTS: u64 = 10_058;

/// A connection to NATS that reconnects by itself.
pub(crate) struct Nats {
    client: Client,
    /// The name of the stream in JetStream.
    stream: String,
    config: Value,
    /// Whether the stream had the settings of this node at some time.
    is_applied: AtomicBool,
    replicas: usize,
    bytes: u64,
}

/// A message that JetStream keeps.
pub(crate) struct Kept {
    pub(crate) sequence: u64,
    pub(crate) payload: Vec<u8>,
}

impl Nats {
    /// Connects. The stream is named `name` and keeps messages on `subjects`. `opened` is notified
    /// whenever the connection is opened or reopened.
    pub(crate) async fn connect(
        settings: &BusSettings,
        (name, subjects): (&str, &str),
        opened: Arc<Notify>,
    ) -> BusResult<Self> {
        let (addresses, servers) = address::parse(&settings.url)?;
        let replicas = addresses.len().min(3);
        let options = address::login(&addresses)?
            .name("tidegate")
            .event_callback(move |event| {
                if matches!(event, Event::Connected) {
                    opened.notify_one();
                }
                std::future::ready(())
            })
            // A NATS server names other servers in plain text before TLS, so an attacker can add
            // servers of its own. The password must not be sent to them.
            .ignore_discovered_servers()
            .require_tls(addresses.iter().any(ServerAddr::tls_required))
            .no_echo()
            .ping_interval(PING)
            .client_capacity(QUEUE)
            .subscription_capacity(4 * QUEUE)
            .connection_timeout(TIMEOUT)
            .request_timeout(Some(TIMEOUT));
        let client = options
            .connect(addresses)
            .await
            .map_err(|error| match error.kind() {
                ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
                    BusError::Refused { servers }
                }
                _ => BusError::Unreachable {
                    servers,
                    reason: error.to_string(),
                },
            })?;
        if !client.is_server_compatible(2, 9, 0) {
            let version = client.server_info().version;
            return Err(BusError::TooOld { version });
        }
        Ok(Self {
            client,
            stream: name.to_owned(),
            config: json!({
                "name": name,
                "description": "Change events of Tidegate, encrypted",
                "subjects": [subjects],
                "retention": "limits",
                "storage": "file",
                "discard": "old",
                "num_replicas": replicas,
                "max_age": u64::try_from(settings.window.as_nanos()).unwrap_or(u64::MAX),
                "max_bytes": settings.bytes,
                "max_msgs": -1,
                "max_consumers": -1,
            }),
            is_applied: AtomicBool::new(false),
            replicas,
            bytes: settings.bytes,
        })
    }

    /// Whether the connection is open.
    pub(crate) fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// The maximum size of a message's payload in bytes.
    pub(crate) fn max_payload(&self) -> usize {
        self.client.max_payload().saturating_sub(OVERHEAD)
    }

    /// Creates the stream, or applies the settings to an existing stream with other settings. After
    /// the first time only raises limits of the stream, because nodes with different settings would
    /// change the stream in turn.
    pub(crate) async fn ensure_stream(&self) -> BusResult<()> {
        match self.api("STREAM.CREATE", &self.config).await {
            Err(BusError::JetStream { code: EXISTS, .. }) => {
                if let Some(config) = self.needed_change().await? {
                    self.api("STREAM.UPDATE", &config).await?;
                }
            }
            created => drop(created?),
        }
        self.is_applied.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// The settings that the existing stream should get; `None` if it can keep its settings.
    async fn needed_change(&self) -> BusResult<Option<Value>> {
        if !self.is_applied.load(Ordering::Relaxed) {
            return Ok(Some(self.config.clone()));
        }
        let info = self.api("STREAM.INFO", &Value::Null).await?;
        let limit = |config: &Value, name: &str| config[name].as_u64().unwrap_or_default();
        let mut config = self.config.clone();
        let mut is_lower = false;
        for name in LIMITS {
            let (own, current) = (limit(&self.config, name), limit(&info["config"], name));
            is_lower |= current < own;
            config[name] = own.max(current).into();
        }
        Ok(is_lower.then_some(config))
    }

    /// The state of the stream; `None` if there is no stream.
    pub(crate) async fn info(&self) -> BusResult<Option<Value>> {
        match self.api("STREAM.INFO", &Value::Null).await {
            Err(BusError::JetStream {
                code: NO_STREAM, ..
            }) => Ok(None),
            info => info.map(Some),
        }
    }

    /// The first and the last sequence number of the stream.
    pub(crate) async fn range(&self) -> BusResult<(u64, u64)> {
        let info = self.read_api("STREAM.INFO", &Value::Null).await?;
        let number = |name: &str| info["state"][name].as_u64().unwrap_or_default();
        Ok((number("first_seq"), number("last_seq")))
    }

    /// The first message on a subject at or after a sequence number.
    pub(crate) async fn next(&self, subject: &str, sequence: u64) -> BusResult<Option<Kept>> {
        let request = json!({"seq": sequence, "next_by_subj": subject});
        self.get(&request).await
    }

    /// The last message on a subject.
    pub(crate) async fn last(&self, subject: &str) -> BusResult<Option<Kept>> {
        self.get(&json!({"last_by_subj": subject})).await
    }

    /// Requests a message from the leader of the stream, because a replica that has just started
    /// may lack the last messages. Returns `None` if there is no such message.
    async fn get(&self, request: &Value) -> BusResult<Option<Kept>> {
        let response = match self.read_api("STREAM.MSG.GET", request).await {
            Err(BusError::JetStream {
                code: NO_MESSAGE, ..
            }) => return Ok(None),
            response => response?,
        };
        let message = &response["message"];
        let payload = message["data"].as_str().unwrap_or_default();
        let payload = BASE64.decode(payload).ok();
        let kept = payload.zip(message["seq"].as_u64());
        let kept = kept.map(|(payload, sequence)| Kept { sequence, payload });
        let unreadable = || BusError::Request("its answer has no message".to_owned());
        kept.map(Some).ok_or_else(unreadable)
    }

    /// Sends a message, unless the connection is broken or too slow. Nodes that miss the message
    /// notice the gap. Returns whether the message was sent.
    pub(crate) async fn publish(&self, subject: String, payload: Vec<u8>) -> bool {
        if !self.is_connected() {
            return false;
        }
        let sent = timeout(QUEUE_TIMEOUT, self.client.publish(subject, payload.into()));
        matches!(sent.await, Ok(Ok(())))
    }

    pub(crate) async fn subscribe(&self, subject: String) -> BusResult<Subscriber> {
        let subscribed = self.client.subscribe(subject).await;
        subscribed.map_err(|error| BusError::Request(error.to_string()))
    }

    async fn read_api(&self, request: &str, body: &Value) -> BusResult<Value> {
        let response = timeout(READ_TIMEOUT, self.api(request, body)).await;
        response.unwrap_or_else(|_| Err(BusError::Request("no response in time".to_owned())))
    }

    async fn api(&self, request: &str, body: &Value) -> BusResult<Value> {
        let subject = format!("$JS.API.{request}.{}", self.stream);
        let body = if body.is_null() {
            Bytes::new()
        } else {
            body.to_string().into()
        };
        let response = self.client.request(subject, body).await;
        let response = response.map_err(|error| match error.kind() {
            RequestErrorKind::NoResponders => BusError::NoJetStream,
            _ => BusError::Request(error.to_string()),
        })?;
        self.read(&response.payload)
    }

    fn read(&self, response: &[u8]) -> BusResult<Value> {
        let response: Value = serde_json::from_slice(response)
            .map_err(|_| BusError::Request("its answer is no JSON".to_owned()))?;
        let Some(error) = response.get("error") else {
            return Ok(response);
        };
        let code = error["err_code"].as_u64().unwrap_or_default();
        let reason = error["description"].as_str().unwrap_or("no reason given");
        let reason = reason.to_owned();
        Err(match code {
            _ if FULL.contains(&code) || reason.contains(NO_ROOM) => BusError::Full {
                bytes: self.bytes,
                reason,
            },
            _ if REPLICAS.contains(&code) => BusError::Replicas {
                replicas: self.replicas,
                reason,
            },
            _ if NO_JETSTREAM.contains(&code) => BusError::NoJetStream,
            _ => BusError::JetStream { reason, code },
        })
    }
}

impl fmt::Debug for Nats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nats")
            .field("stream", &self.stream)
            .finish_non_exhaustive()
    }
}
