//! The number of threads that serve requests.

use std::thread::available_parallelism;

use tidegate_wire::Config;

use crate::cli::{Cli, Command};
use crate::settings::{DatabaseUrl, Layers};

/// The number of worker threads of the tokio runtime. The setting `worker_threads` determines it.
/// The default is half of the processors if PostgreSQL runs on this machine, and all processors
/// otherwise.
///
/// PostgreSQL needs the other half of the processors. Fewer threads also mean fewer wakeups: each
/// thread is busier, and a busy thread need not be woken for each request. Invalid settings are
/// ignored here, because the command reports them.
pub(crate) fn worker_threads(cli: &Cli, layers: &Layers) -> usize {
    let processors = available_parallelism().map_or(1, usize::from);
    let settings = layers.settings().ok();
    let chosen = settings
        .as_ref()
        .and_then(|settings| settings.worker_threads)
        .and_then(|threads| usize::try_from(threads).ok());
    let url = match &cli.command {
        // The demo starts a PostgreSQL server on this machine.
        Command::Demo(_) => None,
        Command::Up(up) => up.url.as_ref(),
        _ => settings
            .as_ref()
            .and_then(|settings| settings.admin_url.as_ref()),
    };
    chosen.unwrap_or_else(|| {
        if url.is_none_or(is_local) {
            (processors / 2).max(1)
        } else {
            processors
        }
    })
}

/// Whether a URL names a PostgreSQL server on this machine.
fn is_local(url: &DatabaseUrl) -> bool {
    Config::from_url(&url.0).is_ok_and(|config| config.is_local())
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    fn threads(arguments: &[&str]) -> usize {
        let program = std::iter::once("tidegate");
        let cli = Cli::try_parse_from(program.chain(arguments.iter().copied())).unwrap();
        let layers = Layers::read(None, std::iter::empty(), &cli.settings).unwrap();
        worker_threads(&cli, &layers)
    }

    #[test]
    fn a_postgresql_server_on_this_machine_gets_half_the_processors() {
        let processors = available_parallelism().unwrap().get();
        let half = (processors / 2).max(1);
        for (arguments, expected) in [
            (&["demo"] as &[&str], half),
            (&["up"], half),
            (&["up", "postgresql://me@localhost/shop"], half),
            (&["up", "postgresql://me@db.example/shop"], processors),
            (
                &[
                    "serve",
                    "--admin-url",
                    "postgresql://me@/postgres?host=/run",
                ],
                half,
            ),
            (
                &["serve", "--admin-url", "postgresql://me@[::1]/postgres"],
                half,
            ),
            (
                &["serve", "--admin-url", "postgresql://me@10.0.0.7/postgres"],
                processors,
            ),
            (&["demo", "--worker-threads", "7"], 7),
        ] {
            assert_eq!(threads(arguments), expected, "{arguments:?}");
        }
    }
}
