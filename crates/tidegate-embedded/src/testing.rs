//! One cluster for all tests of a test binary.

#[cfg(feature = "download")]
mod fallback;

use std::sync::OnceLock;

use crate::cluster::Cluster;
use crate::settings::Settings;

/// A temporary cluster for all tests of this process. The first call starts it. The cluster is
/// removed soon after the process has ended.
///
/// Tests that stop or reconfigure PostgreSQL must start a cluster of their own from [`settings`].
/// The shared cluster allows 300 connections, 200 replication slots and 100 WAL senders, which is
/// enough for all tests together. This function may be called in async code, although the first
/// call blocks for about a second.
///
/// # Panics
///
/// If PostgreSQL cannot be started.
#[expect(
    clippy::panic,
    reason = "a test cannot go on, and the message says what is missing"
)]
pub fn cluster() -> &'static Cluster {
    static SHARED: OnceLock<Cluster> = OnceLock::new();
    SHARED.get_or_init(|| {
        let settings = settings()
            .with("max_connections", "300")
            .with("max_replication_slots", "200")
            .with("max_wal_senders", "100");
        Cluster::start_blocking(&settings).unwrap_or_else(|error| panic!("{error}"))
    })
}

/// The settings of a temporary cluster. Its binaries are also searched for on this process's
/// `PATH`.
///
/// With the feature `download`, PostgreSQL is downloaded if it is not installed, unless
/// `TIDEGATE_FETCH_POSTGRESQL` is `false`. The other environment variables of `tidegate demo` for
/// the download apply too. The first call blocks until the download has ended.
///
/// # Panics
///
/// If the download fails.
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
