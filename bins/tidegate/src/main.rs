//! The Tidegate server and its command line.

mod address;
mod authenticators;
mod builtin_clients;
mod bus;
mod catalog_watch;
mod cli;
mod cli_error;
mod command;
mod connector;
mod demo;
mod feed;
mod graphiql;
mod group_logins;
mod identity;
mod logging;
mod maintenance;
mod master_key;
mod node_share;
mod password_metrics;
mod pool;
mod ports;
mod private_file;
mod prompt;
mod replicas;
mod roles;
mod serve;
mod service;
mod settings;
mod signal;
mod terminal;
mod traces;
mod up;
mod user_folders;
mod worker_threads;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser as _;

use cli::{Cli, Command};
use cli_error::Result;
use service::Service;
use settings::{Layers, Settings};

// mimalloc is faster than the system's allocator for many small allocations on many threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // The cryptography provider of rustls is installed first, so that no library chooses another
    // one.
    let provider = rustls::crypto::ring::default_provider();
    provider
        .install_default()
        .expect("no other provider is installed");
    // `help settings` is handled here, because the `help` command of clap accepts only names of
    // commands.
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    if arguments == ["help", "settings"] {
        return finished(command::settings_help());
    }
    let cli = Cli::parse();
    finished(start(cli))
}

/// Runs the command. Most commands run in a tokio runtime.
fn start(cli: Cli) -> Result {
    match cli.command {
        Command::Completions { shell } => return command::completions(shell),
        Command::Man => return command::manual(),
        _ => {}
    }
    let layers = layers(&cli)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(worker_threads::worker_threads(&cli, &layers))
        .enable_all()
        .build();
    let runtime = runtime.expect("the operating system has threads for the runtime");
    runtime.block_on(run(cli, layers))
}

fn finished(result: Result) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let mut stderr = std::io::stderr().lock();
            let _ = writeln!(stderr, "tidegate: {}", command::printable(&error.text()));
            error.exit_code()
        }
    }
}

async fn run(cli: Cli, mut layers: Layers) -> Result {
    if let Command::Demo(command) = &cli.command {
        return demo::run(command, layers).await;
    }
    if let Command::Up(command) = cli.command {
        return Box::pin(up::run(command, layers)).await;
    }
    if let Command::Settings = cli.command {
        let settings = layers.settings()?;
        // The settings are printed before the master key is parsed: if the key is invalid, the
        // output shows its source.
        command::print(layers.shown())?;
        if settings.master_key.is_some() {
            master_key::read(&settings)?;
        }
        return Ok(());
    }
    if !matches!(cli.command, Command::Serve) {
        layers.prefer("log_level", "warn");
    }
    let settings = layers.settings()?;
    logging::start(&settings);
    dispatch(cli.command, &settings).await
}

async fn dispatch(command: Command, settings: &Settings) -> Result {
    match command {
        Command::Serve => serve::run(settings).await,
        Command::Doctor => command::doctor(settings).await,
        Command::Tenant(tenant) => command::tenant(tenant, settings).await,
        Command::User(user) => command::user(user, &Service::open(settings).await?).await,
        Command::Client(client) => command::client(client, &Service::open(settings).await?).await,
        Command::Issuer(issuer) => command::issuer(issuer, &Service::open(settings).await?).await,
        Command::Token(token) => command::token(token, &Service::open(settings).await?).await,
        Command::Key(key) => command::key(key, settings).await,
        Command::Feed(feed) => command::feed(feed, settings).await,
        Command::Cluster(cluster) => command::cluster(&cluster, settings).await,
        Command::Demo(_)
        | Command::Up(_)
        | Command::Settings
        | Command::Completions { .. }
        | Command::Man => Ok(()),
    }
}

/// Reads the settings with their sources. The path of the settings file comes from the flag
/// `--config`, or else from the variable `TIDEGATE_CONFIG`.
#[expect(
    clippy::disallowed_methods,
    reason = "the binary is where the environment is read"
)]
fn layers(cli: &Cli) -> Result<Layers> {
    let file = cli
        .config
        .clone()
        .or_else(|| std::env::var_os("TIDEGATE_CONFIG").map(PathBuf::from));
    let file = file.filter(|path| !path.as_os_str().is_empty());
    let environment = std::env::vars_os();
    let environment = environment.filter_map(|(name, value)| {
        Some((
            name.into_string().ok()?,
            value.to_string_lossy().into_owned(),
        ))
    });
    Ok(Layers::read(file.as_deref(), environment, &cli.settings)?)
}
