//! Chooses the programs of the demo's PostgreSQL, which are installed or downloaded.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use tidegate_download::{Package, Progress, Source};
use tidegate_embedded::{Cluster, Error as ClusterError, Settings as ClusterSettings};

use crate::cli_error::{CliError, Result};
use crate::command::print;
use crate::settings::Settings;
use crate::user_folders;

/// Starts the cluster with an installed PostgreSQL. If none is suitable, uses the PostgreSQL of an
/// earlier download, or downloads it if the settings allow that.
pub(super) async fn start(mut cluster: ClusterSettings, settings: &Settings) -> Result<Cluster> {
    let (Some(package), Some(cache)) = (package(settings), cache(settings)?) else {
        return Ok(Cluster::start(cluster).await?);
    };
    cluster.fallback_dir = package.installed(&cache);
    let may_download = settings.fetch_postgresql && cluster.fallback_dir.is_none();
    let missing = match Cluster::start(cluster.clone()).await {
        Err(error) if may_download && is_missing(&error, package) => error,
        started => return Ok(started?),
    };
    let source = Source {
        url: &settings.postgresql_download_url.0,
        package,
        cache: &cache,
    };
    match Box::pin(download(&source)).await {
        Ok(programs) => cluster.fallback_dir = Some(programs),
        Err(download) => {
            return Err(CliError::Download {
                download: Box::new(download),
                missing: Box::new(missing),
            });
        }
    }
    Ok(Cluster::start(cluster).await?)
}

/// The package of PostgreSQL for this machine, with the checksum in the settings if there is one.
/// `None` if there is no package for this machine.
fn package(settings: &Settings) -> Option<Package<'_>> {
    let mut package: Package<'_> = Package::for_this_platform()?;
    if let Some(sha256) = &settings.postgresql_download_sha256 {
        package.sha256 = &sha256.0;
    }
    Some(package)
}

/// The cache folder for downloads: the folder in the settings, or else the user's cache folder.
/// Root always has a cache folder. For other users, the result is `None` if neither the settings
/// nor the environment name a folder.
fn cache(settings: &Settings) -> Result<Option<PathBuf>> {
    if let Some(folder) = &settings.cache_dir {
        return Ok(Some(folder.clone()));
    }
    let of_user = user_folders::cache();
    // If the user has no cache folder, `/nonexistent` is passed in its place and recognised below.
    // For root, `default_cache` returns a folder that does not depend on its argument.
    let of_user = of_user.as_deref().unwrap_or(Path::new("/nonexistent"));
    let cache = tidegate_embedded::default_cache(of_user)?;
    Ok((!cache.starts_with("/nonexistent")).then_some(cache))
}

/// Whether a download of `package` can resolve the error: no suitable PostgreSQL is installed, and
/// the version of `package` is suitable for the cluster's data, if there is any.
fn is_missing(error: &ClusterError, package: Package<'_>) -> bool {
    match error {
        ClusterError::NoBinaries { .. } => true,
        ClusterError::DataVersion { major, .. } => {
            package.postgresql().starts_with(&format!("{major}."))
        }
        _ => false,
    }
}

/// Downloads the package, and shows the progress on a terminal.
async fn download(source: &Source<'_>) -> std::result::Result<PathBuf, tidegate_download::Error> {
    let version = source.package.postgresql();
    let (url, cache) = (source.archive_url(), source.cache.display());
    let on_terminal = std::io::stderr().is_terminal();
    let mut shown = None;
    let programs = source
        .download(|Progress { received, total }| {
            let size =
                total.map_or_else(String::new, |total| format!(" ({} MB)", megabytes(total)));
            if shown.is_none() {
                let _ = print(format_args!(
                    "PostgreSQL is not installed; downloading version {version}{size} from {url} \
                     into {cache}\n"
                ));
            }
            let now = megabytes(received);
            if on_terminal && shown != Some(now) {
                let _ = write!(std::io::stderr(), "\r{now} MB");
            }
            shown = Some(now);
        })
        .await;
    if on_terminal && shown.is_some() {
        let _ = write!(std::io::stderr(), "\r\u{1b}[K");
    }
    programs
}

fn megabytes(bytes: u64) -> u64 {
    bytes.div_ceil(1_000_000)
}
