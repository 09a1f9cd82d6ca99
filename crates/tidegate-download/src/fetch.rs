//! Downloads an archive and verifies it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::error::{Error, Result};
use crate::package::Package;
use crate::unpack;

/// The largest size of an archive in bytes. Archives have 10 to 25 MB and are held in memory.
const LIMIT: usize = 100 << 20;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest time for which the web server may send nothing during a download.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// The archive to download, its address and the cache folder.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The URL of the releases: [`DEFAULT_URL`](crate::DEFAULT_URL) or a mirror.
    pub url: &'a str,
    /// The package to download.
    pub package: Package<'a>,
    /// The cache folder, which is created if it is missing.
    pub cache: &'a Path,
}

/// The progress of a download.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The number of bytes received.
    pub received: u64,
    /// The size of the archive in bytes; `None` if the web server did not send it.
    pub total: Option<u64>,
}

impl Source<'_> {
    /// The URL of the archive.
    pub fn archive_url(&self) -> String {
        let (base, version) = (self.url.trim_end_matches('/'), self.package.version);
        format!("{base}/{version}/{}.tar.gz", self.package.name())
    }

    /// Downloads the archive, verifies it, unpacks it and runs `postgres --version`. Returns the
    /// folder of the programs.
    ///
    /// Calls `progress` when the response begins, and after each received piece. Follows redirects.
    /// After an error the cache folder has no new files.
    pub async fn download(&self, mut progress: impl FnMut(Progress)) -> Result<PathBuf> {
        let archive = self.receive(&mut progress).await?;
        self.verify(&archive)?;
        let folder = self.package.folder(self.cache);
        let target = folder.clone();
        let unpacked = tokio::task::spawn_blocking(move || unpack::unpack(&archive, &target)).await;
        unpacked.unwrap_or_else(|error| {
            let (folder, source) = (folder.clone(), std::io::Error::other(error));
            Err(Error::Unpack { folder, source })
        })?;
        Ok(folder.join("bin"))
    }

    async fn receive(&self, progress: &mut impl FnMut(Progress)) -> Result<Vec<u8>> {
        let url = self.archive_url();
        let failed = |source: reqwest::Error| Error::Request {
            url: self.archive_url(),
            // The URL is removed from reqwest's error, because the variant already has `url`.
            source: source.without_url(),
        };
        let client = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(READ_TIMEOUT)
            .build()
            .map_err(failed)?;
        let mut response = client.get(&url).send().await.map_err(failed)?;
        let status = response.status();
        if !status.is_success() {
            return Err(Error::Status { url, status });
        }
        let total = response.content_length();
        let mut archive = Vec::new();
        progress(Progress { received: 0, total });
        while let Some(piece) = response.chunk().await.map_err(failed)? {
            archive.extend_from_slice(&piece);
            if archive.len() > LIMIT {
                return Err(Error::TooLarge { url, limit: LIMIT });
            }
            let received = archive.len() as u64;
            progress(Progress { received, total });
        }
        Ok(archive)
    }

    fn verify(&self, archive: &[u8]) -> Result<()> {
        let mut found = String::new();
        for byte in Sha256::digest(archive) {
            let _ = write!(found, "{byte:02x}");
        }
        if found == self.package.sha256 {
            return Ok(());
        }
        Err(Error::Checksum {
            url: self.archive_url(),
            found,
            expected: self.package.sha256.to_owned(),
        })
    }
}
