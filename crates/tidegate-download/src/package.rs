//! The pinned packages, one for each platform.

use std::path::{Path, PathBuf};

/// A pinned package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Package<'a> {
    /// The name in the registry, without the scope.
    pub name: &'a str,
    /// The version in the registry.
    pub version: &'a str,
    /// The version of PostgreSQL.
    pub postgresql: &'a str,
    /// The SHA-512 of the archive in base64, as in `dist.integrity` of the registry.
    pub sha512: &'a str,
}

const VERSION: &str = "17.10.0-beta.17";
const POSTGRESQL: &str = "17.10";

/// All packages, with operating system and architecture as in `std::env::consts`.
const PACKAGES: [(&str, &str, Package<'static>); 4] = [
    (
        "linux",
        "x86_64",
        pinned(
            "linux-x64",
            "hU4Sgna19ixDP/l3P/zkHhQ9B0JDV39qA97RNz55QcngeRjFC5/1G36LZjODVJ84kVJHUTQMmly7nzWO8js8kg==",
        ),
    ),
    (
        "linux",
        "aarch64",
        pinned(
            "linux-arm64",
            "mC+bQvaBEf0WDD0nPWW3eGUXDUVzoyCzMtgl+Fw6Jy9DkQFK+jcPtzkzqhhrS/fGzn5telNpKInl8xPqDh71Ig==",
        ),
    ),
    (
        "macos",
        "aarch64",
        pinned(
            "darwin-arm64",
            "E2dxhSllrcyAJBHuvgTrBTx2BaPlX2vvjXClPKHxfwBezk+nTZ01uAEraKiRJMpzHSCyN8J1dTjKh4q/uTsBLQ==",
        ),
    ),
    (
        "macos",
        "x86_64",
        pinned(
            "darwin-x64",
            "gXk65MIyttD/PWo6NDSmu/n4vzPcqZQmxVWjEKuecwlyGmWO984AZ3Ljb7F0bwPvXhqcovH4FGN4ydr0fGeJxg==",
        ),
    ),
];

const fn pinned(name: &'static str, sha512: &'static str) -> Package<'static> {
    Package {
        name,
        version: VERSION,
        postgresql: POSTGRESQL,
        sha512,
    }
}

impl Package<'static> {
    /// The package for the platform of this process.
    pub fn for_this_platform() -> Option<Self> {
        let (system, architecture) = (std::env::consts::OS, std::env::consts::ARCH);
        let found = PACKAGES
            .iter()
            .find(|package| package.0 == system && package.1 == architecture);
        found.map(|package| package.2)
    }
}

impl Package<'_> {
    /// Where it is unpacked.
    pub(crate) fn folder(&self, cache: &Path) -> PathBuf {
        cache.join(format!("postgresql-{}", self.postgresql))
    }

    /// The folder of its programs, if a former download unpacked it in `cache`.
    pub fn installed(&self, cache: &Path) -> Option<PathBuf> {
        let programs = self.folder(cache).join("bin");
        programs.join("postgres").is_file().then_some(programs)
    }
}
