//! Starts a private PostgreSQL, prints how to reach it, and stops it on Ctrl-C.
//!
//! `cargo run -p tidegate-embedded --example start_cluster [-- DIRECTORY]` keeps the data in
//! DIRECTORY. Without DIRECTORY the data is removed at the end.
#![expect(clippy::print_stdout, reason = "an example talks to the terminal")]

use tidegate_embedded::{Cluster, Error, Settings};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut settings = match std::env::args_os().nth(1) {
        Some(directory) => Settings::persistent(directory),
        None => Settings::temporary(),
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the caller, who owns the environment"
    )]
    let search_path = std::env::var_os("PATH");
    settings.search_path = search_path;

    let cluster = Cluster::start(settings).await?;
    println!(
        "PostgreSQL {} in {}",
        cluster.version(),
        cluster.data_dir().display()
    );
    println!("psql {}", cluster.admin_url());
    println!("psql '{}'", cluster.socket_url("postgres"));
    tokio::signal::ctrl_c().await?;
    cluster.stop().await.map_err(Error::into)
}
