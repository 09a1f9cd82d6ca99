//! Log output: text or JSON lines on standard error.

use std::io::IsTerminal;

use tracing::Level;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::settings::{LogFormat, LogLevel, Settings};

/// Starts logging. Dependencies log only warnings and errors.
pub(crate) fn start(settings: &Settings) {
    begin(settings, Targets::new());
}

/// Starts logging for `demo` and `up`. At the level `warn`, they also log failed requests.
pub(crate) fn start_demo(settings: &Settings) {
    let requests = match settings.log_level {
        LogLevel::Warn => Targets::new().with_target("tidegate::access", Level::INFO),
        _ => Targets::new(),
    };
    begin(settings, requests);
}

fn begin(settings: &Settings, targets: Targets) {
    let level = match settings.log_level {
        LogLevel::Error => Level::ERROR,
        LogLevel::Warn => Level::WARN,
        LogLevel::Info => Level::INFO,
        LogLevel::Debug => Level::DEBUG,
        LogLevel::Trace => Level::TRACE,
    };
    let others = level.min(Level::WARN);
    let filter = targets.with_default(others).with_target("tidegate", level);
    // `webauthn_rs_core` logs input that it cannot parse. Clients choose this input, so they could
    // fill the log. The audit log records refused passkeys, so no information is lost.
    let filter = filter.with_target("webauthn_rs_core", LevelFilter::OFF);
    let registry = tracing_subscriber::registry().with(filter);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    match settings.log_format {
        LogFormat::Json => registry.with(lines.json().flatten_event(true)).init(),
        LogFormat::Text => {
            registry
                .with(lines.with_ansi(std::io::stderr().is_terminal()))
                .init();
        }
    }
}
