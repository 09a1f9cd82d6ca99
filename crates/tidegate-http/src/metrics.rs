//! Metrics in Prometheus' text format (version 0.0.4).
//!
//! The counters of requests are atomics in arrays, so counting a request needs no lock, no
//! allocation and no look-up.

mod errors;
mod process;
pub mod text_format;

use std::fmt::{self, Write as _};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::report::Errors;

use errors::ErrorCounts;
use text_format::{begin_family, write_metric};

/// The upper bounds of the latency histogram in seconds, up to the default deadline of statements.
/// No bound is more than 2.5 times the bound before it, so that quantiles are about equally precise
/// everywhere.
const BOUNDS: [f64; 16] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0,
    60.0,
];

/// The largest number of routes that can be counted.
pub const ROUTES: usize = 80;
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// A part of the service that has metrics of its own.
pub trait MetricsSource: Send + Sync {
    /// Appends the metrics to `text` in the text format, each family with its `# HELP` and `# TYPE`
    /// lines.
    fn write(&self, text: &mut String) -> fmt::Result;
}

impl<F: Fn(&mut String) -> fmt::Result + Send + Sync> MetricsSource for F {
    fn write(&self, text: &mut String) -> fmt::Result {
        self(text)
    }
}

/// The counters of the HTTP server.
#[derive(Debug)]
pub struct Metrics {
    /// The counters of each route, by the route's index. The last element is for requests without a
    /// route.
    routes: [PerRoute; ROUTES + 1],
    in_flight: AtomicI64,
    connections: AtomicI64,
    sockets: AtomicI64,
    aborted: AtomicU64,
    errors: ErrorCounts,
}

#[derive(Debug, Default)]
struct PerRoute {
    classes: [AtomicU64; CLASSES.len()],
    /// The number of requests for each of [`BOUNDS`]. A request counts only for the lowest bound
    /// that it did not exceed. The last element is for requests that exceeded all bounds.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    microseconds: AtomicU64,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            routes: std::array::from_fn(|_| PerRoute::default()),
            in_flight: AtomicI64::default(),
            connections: AtomicI64::default(),
            sockets: AtomicI64::default(),
            aborted: AtomicU64::default(),
            errors: ErrorCounts::default(),
        }
    }
}

impl Metrics {
    /// Counts the start of a request.
    pub fn begin(&self) {
        self.in_flight.fetch_add(1, Relaxed);
    }

    /// Adds `change` to the number of open connections.
    pub fn connection(&self, change: i64) {
        self.connections.fetch_add(change, Relaxed);
    }

    /// Adds `change` to the number of open WebSocket connections (RFC 6455).
    pub fn socket(&self, change: i64) {
        self.sockets.fetch_add(change, Relaxed);
    }

    /// Counts the errors of a response.
    pub fn errors(&self, errors: &Errors) {
        self.errors.count(errors);
    }

    /// Counts the end of a request. `route` is the index of its route, if it has one. If `complete`
    /// is false, the response was aborted.
    pub fn end(&self, route: Option<usize>, status: u16, took: Duration, complete: bool) {
        self.in_flight.fetch_sub(1, Relaxed);
        if !complete {
            self.aborted.fetch_add(1, Relaxed);
        }
        let Some(route) = self.routes.get(route.unwrap_or(ROUTES)) else {
            return;
        };
        let class = usize::from(status / 100).clamp(1, CLASSES.len()) - 1;
        route.classes[class].fetch_add(1, Relaxed);
        let seconds = took.as_secs_f64();
        let bucket = BOUNDS
            .iter()
            .position(|bound| seconds <= *bound)
            .unwrap_or(BOUNDS.len());
        route.buckets[bucket].fetch_add(1, Relaxed);
        let microseconds = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        route.microseconds.fetch_add(microseconds, Relaxed);
    }

    /// All metrics in the text format: first the metrics of the HTTP server and the process, then
    /// the metrics of `sources`. `paths` are the paths of the routes, which become labels.
    pub fn text<'a>(
        &self,
        paths: &[&'static str],
        sources: impl Iterator<Item = &'a dyn MetricsSource>,
    ) -> Result<String, fmt::Error> {
        let mut text = String::with_capacity(8 * 1024);
        self.requests(paths, &mut text)?;
        self.durations(paths, &mut text)?;
        self.errors.write(&mut text)?;
        for (name, help, value) in [
            (
                "tidegate_http_requests_in_flight",
                "HTTP requests in progress.",
                &self.in_flight,
            ),
            (
                "tidegate_http_connections",
                "Open HTTP connections, those of WebSockets included.",
                &self.connections,
            ),
            ("tidegate_websockets", "Open WebSockets.", &self.sockets),
        ] {
            write_metric(&mut text, (name, "gauge"), help, value.load(Relaxed))?;
        }
        let aborted = ("tidegate_http_aborted_total", "counter");
        let help = "HTTP responses that broke off before their end.";
        write_metric(&mut text, aborted, help, self.aborted.load(Relaxed))?;
        process::write(&mut text)?;
        for source in sources {
            source.write(&mut text)?;
        }
        Ok(text)
    }

    fn requests(&self, paths: &[&str], text: &mut String) -> fmt::Result {
        const NAME: &str = "tidegate_http_requests_total";
        let help = "HTTP requests that are over, by route and status class.";
        begin_family(text, NAME, "counter", help)?;
        for (name, route) in self.named(paths) {
            for (class, count) in CLASSES.iter().zip(&route.classes) {
                let count = count.load(Relaxed);
                if count > 0 {
                    writeln!(
                        text,
                        "{NAME}{{route=\"{name}\",status=\"{class}\"}} {count}"
                    )?;
                }
            }
        }
        Ok(())
    }

    fn durations(&self, paths: &[&str], text: &mut String) -> fmt::Result {
        const NAME: &str = "tidegate_http_request_duration_seconds";
        let help = "Seconds from the head of an HTTP request to the end of its response, by route.";
        begin_family(text, NAME, "histogram", help)?;
        for (name, route) in self.named(paths) {
            let mut sum = 0;
            let counts: Vec<u64> = route
                .buckets
                .iter()
                .map(|count| count.load(Relaxed))
                .collect();
            if counts.iter().all(|count| *count == 0) {
                continue;
            }
            for (count, bound) in counts.iter().zip(BOUNDS) {
                sum += count;
                writeln!(
                    text,
                    "{NAME}_bucket{{route=\"{name}\",le=\"{bound}\"}} {sum}"
                )?;
            }
            sum += counts[BOUNDS.len()];
            writeln!(text, "{NAME}_bucket{{route=\"{name}\",le=\"+Inf\"}} {sum}")?;
            let seconds = Duration::from_micros(route.microseconds.load(Relaxed)).as_secs_f64();
            writeln!(text, "{NAME}_sum{{route=\"{name}\"}} {seconds}")?;
            writeln!(text, "{NAME}_count{{route=\"{name}\"}} {sum}")?;
        }
        Ok(())
    }

    fn named<'a>(&'a self, paths: &'a [&str]) -> impl Iterator<Item = (&'a str, &'a PerRoute)> {
        let routes = paths.iter().copied().zip(&self.routes);
        routes.chain(std::iter::once(("none", &self.routes[ROUTES])))
    }
}
