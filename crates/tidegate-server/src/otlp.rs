//! Sends spans to an OpenTelemetry collector: OTLP over HTTP with JSON (OTLP 1, section 2.4).
//!
//! Only plain HTTP is supported, because a collector runs next to the service. Spans that the
//! collector does not accept in time are discarded, and the log reports their number.

mod encode;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{Request, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tidegate_identity::Clock;
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use tidegate_http::trace::{Span, SpanSink};

/// The maximum number of spans that wait to be sent. Further spans are discarded.
const QUEUE: usize = 4_096;
/// The maximum number of spans in one request to the collector.
const BATCH: usize = 512;
/// How long spans are collected before they are sent, unless a batch is full earlier.
const INTERVAL: Duration = Duration::from_secs(2);
/// The time limit of one request to the collector.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);

/// The reason why spans cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum OtlpError {
    /// The address is not `http://host[:port][/path]`.
    #[error("the collector's address must be http://host[:port][/path], and is {0}")]
    Address(String),
    /// The collector cannot be reached.
    #[error("the collector cannot be reached")]
    Unreachable(#[source] std::io::Error),
    /// The collector does not respond in time, or its response is not HTTP.
    #[error("the collector does not answer")]
    Silent,
    /// The collector responds with this status, which is not a success.
    #[error("the collector answers {0}")]
    Refused(u16),
}

/// The sending end of the queue of spans. The app puts the spans of its requests into it.
#[derive(Clone, Debug)]
pub struct Exporter {
    queue: mpsc::Sender<Span>,
    dropped: Arc<AtomicU64>,
}

impl SpanSink for Exporter {
    fn record(&self, span: Span) {
        if self.queue.try_send(span).is_err() {
            self.dropped.fetch_add(1, Relaxed);
        }
    }
}

impl Exporter {
    /// Returns an exporter to the collector at `address`, such as `http://127.0.0.1:4318`, and the
    /// future that sends the spans. `service` is the name of the service in the spans. The caller
    /// must poll the future, which completes when all clones of the exporter are dropped.
    ///
    /// # Errors
    ///
    /// [`OtlpError::Address`] if `address` is not an HTTP URL.
    pub fn new(
        address: &str,
        service: &str,
        clock: Arc<dyn Clock>,
    ) -> Result<(Self, impl Future<Output = ()> + use<>), OtlpError> {
        let collector = Collector::parse(address)?;
        let (queue, spans) = mpsc::channel(QUEUE);
        let exporter = Self {
            queue,
            dropped: Arc::default(),
        };
        let dropped = Arc::clone(&exporter.dropped);
        let service = service.to_owned();
        let work = async move {
            let mut sender = SpanSender {
                collector,
                service,
                clock,
                spans,
            };
            while sender.send_next().await {
                let lost = dropped.swap(0, Relaxed);
                if lost > 0 {
                    tracing::warn!(
                        spans = lost,
                        "spans were dropped: the collector is too slow"
                    );
                }
            }
        };
        Ok((exporter, work))
    }
}

struct Collector {
    authority: String,
    path: String,
}

impl Collector {
    fn parse(address: &str) -> Result<Self, OtlpError> {
        let wrong = || OtlpError::Address(address.to_owned());
        let uri: Uri = address.parse().map_err(|_| wrong())?;
        let host = uri
            .host()
            .filter(|_| uri.scheme_str() == Some("http"))
            .ok_or_else(wrong)?;
        let path = match uri.path() {
            "" | "/" => "/v1/traces",
            path => path,
        };
        let authority = format!("{host}:{}", uri.port_u16().unwrap_or(4318));
        Ok(Self {
            authority,
            path: path.to_owned(),
        })
    }

    async fn post(&self, body: Bytes) -> Result<(), OtlpError> {
        let stream = TcpStream::connect(&self.authority)
            .await
            .map_err(OtlpError::Unreachable)?;
        let handshake = http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(|_| OtlpError::Silent)?;
        let request = Request::post(&self.path)
            .header(HOST, &self.authority)
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .map_err(|_| OtlpError::Address(self.path.clone()))?;
        let response = async {
            let response = sender
                .send_request(request)
                .await
                .map_err(|_| OtlpError::Silent)?;
            let status = response.status();
            let _ = response.into_body().collect().await;
            if status.is_success() {
                Ok(())
            } else {
                Err(OtlpError::Refused(status.as_u16()))
            }
        };
        tokio::select! {
            response = response => response,
            _ = connection => Err(OtlpError::Silent),
        }
    }
}

struct SpanSender {
    collector: Collector,
    service: String,
    clock: Arc<dyn Clock>,
    spans: mpsc::Receiver<Span>,
}

impl SpanSender {
    /// Waits for one interval or for a full batch, and sends the spans that have arrived. Returns
    /// `false` if the queue is closed and empty.
    async fn send_next(&mut self) -> bool {
        let mut batch = Vec::new();
        let deadline = tokio::time::Instant::now() + INTERVAL;
        while batch.len() < BATCH {
            match tokio::time::timeout_at(deadline, self.spans.recv()).await {
                Ok(Some(span)) => batch.push(span),
                Ok(None) if batch.is_empty() => return false,
                Ok(None) | Err(_) => break,
            }
        }
        if batch.is_empty() {
            return true;
        }
        let body = encode::encode(&batch, &self.service, self.clock.now());
        let sent = tokio::time::timeout(EXPORT_TIMEOUT, self.collector.post(body)).await;
        if let Err(error) = sent.unwrap_or(Err(OtlpError::Silent)) {
            tracing::warn!(%error, spans = batch.len(), "cannot export spans; dropped");
        }
        true
    }
}
