//! Serves one connection, from its handshake to its end. Detects clients that disconnect while they
//! wait for a response.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Context;
use std::time::{Duration, Instant};

use http::header::UPGRADE;
use http::{Request, Response, Version};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::Sleep;
use tower::Service;

use super::activity::{ConnectionActivity, CountedIo, Decision, InFlight, Monitor, Reset};
use super::http1_errors::{self, ErrorRewriter};
use super::stall::StallGuard;
use super::tls::Acceptor;
use super::unread_body;
use crate::endpoint::OperatorListener;
use crate::stack;
use tidegate_http::app::App;
use tidegate_http::body::{Body, Watcher};
use tidegate_http::forwarded::Peer;
use tidegate_http::limits::{Limits, Timeouts};
use tidegate_socket::{self as socket, Handoff};

/// hyper's buffer for HTTP/1 in bytes. Heads are small; with hyper's default a connection could use
/// 400 KiB.
const HTTP1_BUFFER: usize = 64 * 1024;
/// hyper's limit on the head of an HTTP/2 request in bytes. It is twice the limit of this service.
/// A head between the two limits gets an error response of this service, with a body and a request
/// id. Only larger heads get hyper's 431 without a body.
const HTTP2_HEADERS: u32 = 2 * stack::HTTP2_HEAD;
/// How many bytes one HTTP/2 stream may buffer for a client that does not read.
const HTTP2_SEND_BUFFER: usize = 64 * 1024;
/// How many streams a client may reset before hyper treats it as an attack (CVE-2023-44487).
const HTTP2_RESETS: usize = 64;
/// The interval at which the connection is checked while a client waits for a response. hyper
/// notices the end of a connection only after it has read all bytes before the end. But hyper does
/// not read the bytes that follow a request until the response has been sent.
const CHECK_INTERVAL: Duration = Duration::from_millis(400);

/// The parameters of a connection's task.
pub(crate) struct ConnectionContext {
    pub app: App,
    pub peer: Peer,
    /// Whether the listener serves only operators.
    pub operations: bool,
    /// Changes when the service shuts down.
    pub stopped: watch::Receiver<bool>,
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
    let (app, stopped) = (context.app.clone(), context.stopped.clone());
    let handoff = Handoff::default();
    // The future is boxed, so that an idle WebSocket does not keep the state of HTTP in memory.
    Box::pin(http(io, context, handoff.clone())).await;
    if let Some(opening) = handoff.take() {
        Box::pin(socket::run(app, opening, stopped)).await;
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
        mut stopped,
    } = context;
    let timeouts = app.limits().timeouts;
    let activity = Arc::new(ConnectionActivity::default());
    let mut monitor = Monitor::new(Arc::clone(&activity), Instant::now());
    let mut ticks = tokio::time::interval(tick(&timeouts));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);

    let client_closed = Arc::clone(&activity);
    let io = CountedIo::new(io, Arc::clone(&activity));
    let io = TokioIo::new(ErrorRewriter::new(io, app.clone(), Arc::clone(&activity)));
    let service = hyper_service((app.clone(), operations), peer, activity, handoff);
    let builder = builder(app.limits());
    let mut connection = pin!(builder.serve_connection_with_upgrades(io, service));
    let mut closing = false;
    loop {
        tokio::select! {
            biased;
            // The connection has ended. An error means that the client disconnected or did not send
            // HTTP.
            _ = connection.as_mut() => return,
            // If pipelined requests are unread, hyper does not notice that the client has
            // disconnected.
            () = client_closed.client_disconnected() => return,
            _ = stopped.changed(), if !closing => {
                closing = true;
                connection.as_mut().graceful_shutdown();
            }
            _ = ticks.tick() => match monitor.check(&timeouts, Instant::now()) {
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

/// The stack of layers as a hyper service. Marks each request as in progress until its response has
/// been sent.
fn hyper_service(
    (app, operations): (App, bool),
    peer: Peer,
    activity: Arc<ConnectionActivity>,
    handoff: Handoff,
) -> impl hyper::service::Service<
    Request<Incoming>,
    Response = Response<Body>,
    Error = Infallible,
    Future: Send + 'static,
> {
    let stack = stack::service::<unread_body::TrackedBody<Incoming>>(app, peer);
    hyper::service::service_fn(move |mut request: Request<Incoming>| {
        if request.headers().contains_key(UPGRADE) {
            request.extensions_mut().insert(handoff.clone());
        }
        if operations {
            request.extensions_mut().insert(OperatorListener);
        }
        let in_flight = InFlight::begin(&activity);
        let old = request.version() == Version::HTTP_10;
        let (request, unread_body) = unread_body::split(request);
        let answer = stack.clone().call(request);
        let activity = Arc::clone(&activity);
        async move {
            let mut response = watch_client(answer, &activity).await?;
            if let Some(unread_body) = unread_body {
                unread_body.discard_or_close(&mut response).await;
            }
            if old && response.body().exact_size().is_none() {
                in_flight.close_after();
            }
            keep_in_progress(response.body_mut(), in_flight);
            Ok(response)
        }
    })
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

/// Waits for a response. Until it is ready, requests periodic checks of the connection to the
/// client.
async fn watch_client<T>(answer: impl Future<Output = T>, activity: &ConnectionActivity) -> T {
    let mut answer = pin!(answer);
    loop {
        tokio::select! {
            biased;
            done = &mut answer => return done,
            () = tokio::time::sleep(CHECK_INTERVAL) => activity.request_check(),
        }
    }
}

/// Keeps the request marked as in progress until its response has been sent.
fn keep_in_progress(body: &mut Body, in_flight: InFlight) {
    // A connection with one response at a time needs no guard, because the monitor notices a stall
    // by the counters of the connection.
    if in_flight.is_multiplexed() && body.exact_size() != Some(0) {
        let content = body.content_mut();
        *content = StallGuard::guard(content.take(), in_flight);
        return;
    }
    let timer = body.content().is_statement().then(|| Timer(None));
    body.watch(Box::new(ResponseInProgress { in_flight, timer }));
}

/// A response that is being sent.
struct ResponseInProgress {
    in_flight: InFlight,
    /// The timer for a response whose statement may produce no rows for some time.
    timer: Option<Timer>,
}

impl Watcher for ResponseInProgress {
    fn pending(&mut self, cx: &mut Context<'_>) {
        if let Some(timer) = &mut self.timer {
            timer.wait(&self.in_flight, cx);
        }
    }

    fn complete(&mut self) {
        self.in_flight.finish();
    }
}

/// Checks the connection while the response waits for rows.
struct Timer(Option<Pin<Box<Sleep>>>);

impl Timer {
    /// Called when there are no bytes to send. Requests a check if a check is due, and registers
    /// the task of the connection to be woken for the next check.
    fn wait(&mut self, in_flight: &InFlight, cx: &mut Context<'_>) {
        let timer = self
            .0
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(CHECK_INTERVAL)));
        if timer.as_mut().poll(cx).is_ready() {
            in_flight.request_check();
            timer
                .as_mut()
                .reset(tokio::time::Instant::now() + CHECK_INTERVAL);
            // This poll registers the waker for the next check, whose time cannot have come yet.
            let _ = timer.as_mut().poll(cx);
        }
    }
}
