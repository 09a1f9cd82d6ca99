//! Downloads PostgreSQL into a folder: `download_postgresql FOLDER [URL]`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::path::PathBuf;

use tidegate_download::{DEFAULT_URL, Package, Source};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cache = std::env::args_os().nth(1).map(PathBuf::from);
    let cache = cache.ok_or("name a folder")?;
    let mirror = std::env::args().nth(2);
    let package = Package::for_this_platform().ok_or("there is no package for this platform")?;
    rustls::crypto::ring::default_provider()
        .install_default()
        .map_err(|_| "a provider is installed already")?;
    let source = Source {
        url: mirror.as_deref().unwrap_or(DEFAULT_URL),
        package,
        cache: &cache,
    };
    println!("downloading {}", source.archive_url());
    println!("{}", source.download(|_| ()).await?.display());
    Ok(())
}
