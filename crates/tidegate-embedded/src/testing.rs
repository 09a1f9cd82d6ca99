//! One cluster for all tests of a test binary.

#[cfg(feature = "download")]
mod fallback;

use std::sync::OnceLock;

use crate::cluster::Cluster;
use crate::settings::Settings;

/// A temporary cluster, started by the first caller and shared by all tests of this process;
/// it is gone soon after the process is.
///
/// Tests that stop or reconfigure PostgreSQL start one of their own from [`settings`]. It allows
/// 300 connections and 100 replication slots, so that tests side by side do not starve each other.
/// May be called in async
/// code: the first call blocks for about a second.
///
/// # Panics
/// When PostgreSQL cannot be started: a test has nothing to do without it.
#[expect(
    clippy::panic,
    reason = "a test cannot go on, and the message says what is missing"
)]
pub fn cluster() -> &'static Cluster {
    static SHARED: OnceLock<Cluster> = OnceLock::new();
    SHARED.get_or_init(|| {
        let settings = settings()
            .with("max_connections", "300")
            .with("max_replication_slots", "100")
            .with("max_wal_senders", "100");
        Cluster::start_blocking(&settings).unwrap_or_else(|error| panic!("{error}"))
    })
}

/// Settings of a temporary cluster that finds the binaries on this process's `PATH` too.
///
/// With the feature `download`, PostgreSQL is downloaded if none is installed, unless
/// `TIDEGATE_FETCH_POSTGRESQL` is `false`; the other variables of `tidegate demo` for the download
/// count as well. The first call blocks until it is there.
///
/// # Panics
/// When the download fails.
#[expect(
    clippy::disallowed_methods,
    reason = "tests have no caller who could hand PATH in"
)]
pub fn settings() -> Settings {
    let settings = Settings {
        search_path: std::env::var_os("PATH"),
        ..Settings::temporary()
    };
    #[cfg(feature = "download")]
    let settings = Settings {
        fallback_dir: fallback::programs(&settings),
        ..settings
    };
    settings
}
