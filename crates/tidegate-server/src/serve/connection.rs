//! Serves one connection, from its handshake to its end.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::activity::{ConnectionActivity, CountedIo, Decision, Monitor, Reset};
use super::http1_errors::{self, ErrorRewriter};
use super::request;
use super::tls::Acceptor;
use crate::stack;
use tidegate_http::app::App;
use tidegate_http::forwarded::Peer;
use tidegate_http::limits::{Limits, Timeouts};
use tidegate_socket::{self as socket, Handoff};

/// hyper's buffer for HTTP/1 in bytes. Heads are small; with hyper's default a connection could use
/// 400 KiB.
const HTTP1_BUFFER: usize = 64 * 1024;
/// hyper's limit on the head of an HTTP/2 request in bytes. It is twice the limit of this service.
/// A head between the two limits gets an error response of this service, with a body and a request
/// id. A head above hyper's limit gets hyper's 431 without a body.
const HTTP2_HEADERS: u32 = 2 * stack::HTTP2_HEAD;
/// The maximum number of bytes that an HTTP/2 stream buffers for a client that does not read.
const HTTP2_SEND_BUFFER: usize = 64 * 1024;
/// The number of streams that a client may reset before hyper treats the resets as an attack
/// (CVE-2023-44487).
const HTTP2_RESETS: usize = 64;

/// The state that is passed to the task that serves a connection.
pub(crate) struct ConnectionContext {
    pub app: App,
    pub peer: Peer,
    /// Whether the listener serves only operators.
    pub operations: bool,
}

/// Serves one accepted TCP connection.
pub(crate) async fn serve(
    stream: TcpStream,
    acceptor: Option<Acceptor>,
    context: ConnectionContext,
) {
    // Responses are written in one piece, so Nagle's algorithm would only delay them.
    let _ = stream.set_nodelay(true);
    let Some(acceptor) = acceptor else {
        return drive(stream, context).await;
    };
    let timeout = context.app.limits().timeouts.handshake;
    let handshake = async {
        if speaks_tls(&stream).await? {
            return acceptor.accept(stream).await.map(Some);
        }
        let mut stream = stream;
        stream.write_all(&http1_errors::plain(&context.app)).await?;
        stream.shutdown().await?;
        Ok(None)
    };
    if let Ok(Ok(Some(stream))) = tokio::time::timeout(timeout, handshake).await {
        drive(stream, context).await;
    }
}

/// Whether the client starts a TLS handshake (RFC 8446, section 5.1). A first byte that is an
/// uppercase letter is taken for the method of a plain HTTP request.
async fn speaks_tls(stream: &TcpStream) -> std::io::Result<bool> {
    let mut first = [0];
    stream.peek(&mut first).await?;
    Ok(!first[0].is_ascii_uppercase())
}

/// Serves HTTP, and then the WebSocket if the connection has become one.
async fn drive<I>(io: I, context: ConnectionContext)
where
    I: AsyncRead + AsyncWrite + Reset + Unpin + Send + 'static,
{
    let _counted = ConnectionGauge::new(&context.app);
    let app = context.app.clone();
    let handoff = Handoff::default();
    // The future is boxed, so that an idle WebSocket does not keep the state of HTTP in memory.
    Box::pin(http(io, context, handoff.clone())).await;
    if let Some(opening) = handoff.take() {
        Box::pin(socket::run(app, opening)).await;
    }
}

async fn http<I>(io: I, context: ConnectionContext, handoff: Handoff)
where
    I: AsyncRead + AsyncWrite + Reset + Unpin + Send + 'static,
{
    let ConnectionContext {
        app,
        peer,
        operations,
    } = context;
    let (mut shutdown, mut end) = (app.shutdown(), app.shutdown());
    let timeouts = app.limits().timeouts;
    let activity = Arc::new(ConnectionActivity::default());
    let mut monitor = Monitor::new(Arc::clone(&activity), Instant::now());
    let mut ticks = tokio::time::interval(tick(&timeouts));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);

    let counters = Arc::clone(&activity);
    let io = CountedIo::new(io, Arc::clone(&activity));
    let io = TokioIo::new(ErrorRewriter::new(io, app.clone(), Arc::clone(&activity)));
    let service = request::service((app.clone(), operations), peer, activity, handoff);
    let builder = builder(app.limits());
    let mut connection = pin!(builder.serve_connection_with_upgrades(io, service));
    let (mut announced, mut closing) = (false, false);
    loop {
        tokio::select! {
            biased;
            // The connection has ended. An error is ignored: it means that the client disconnected
            // or did not send HTTP.
            _ = connection.as_mut() => return,
            // If pipelined requests are unread, hyper does not notice that the client has
            // disconnected.
            () = counters.client_disconnected() => return,
            () = end.ending(), if !closing => {
                closing = true;
                connection.as_mut().graceful_shutdown();
            }
            () = shutdown.announced(), if !announced => {
                announced = true;
                ticks.reset_immediately();
            }
            _ = ticks.tick() => match monitor.check(&timeouts, Instant::now()) {
                // The shutdown was announced. Only HTTP/2 needs this call, because over HTTP/1.1
                // the next response has `Connection: close`.
                Decision::Keep if announced && !closing && counters.has_served_http2() => {
                    closing = true;
                    connection.as_mut().graceful_shutdown();
                }
                Decision::Keep => {}
                Decision::Shutdown if !closing => {
                    closing = true;
                    connection.as_mut().graceful_shutdown();
                }
                // Returning drops the connection with its requests, which cancels their statements.
                Decision::Shutdown | Decision::Close => return,
            },
        }
    }
}

/// The interval of checks: a quarter of the shortest timeout, but at least 5 ms.
fn tick(timeouts: &Timeouts) -> Duration {
    let shortest = timeouts.header.min(timeouts.idle).min(timeouts.write);
    (shortest / 4).max(Duration::from_millis(5))
}

fn builder(limits: &Limits) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .max_buf_size(HTTP1_BUFFER);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_secs(20))
        .keep_alive_timeout(Duration::from_secs(20))
        .max_concurrent_streams(limits.streams)
        .max_header_list_size(HTTP2_HEADERS)
        .max_send_buf_size(HTTP2_SEND_BUFFER)
        .max_pending_accept_reset_streams(HTTP2_RESETS)
        .max_local_error_reset_streams(HTTP2_RESETS);
    builder
}

/// Counts a connection in the gauge of open connections until it is dropped.
struct ConnectionGauge(App);

impl ConnectionGauge {
    fn new(app: &App) -> Self {
        app.metrics().connection(1);
        Self(app.clone())
    }
}

impl Drop for ConnectionGauge {
    fn drop(&mut self) {
        self.0.metrics().connection(-1);
    }
}
