//! The archives that this version downloads, one for each platform.

use std::path::{Path, PathBuf};

/// The URL of the releases, unless a mirror is used.
pub const DEFAULT_URL: &str = "https://github.com/theseus-rs/postgresql-binaries/releases/download";

/// The archive of one platform in a release of `theseus-rs/postgresql-binaries`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Package<'a> {
    /// The release: the version of PostgreSQL and the number of the build, such as `17.11.0`.
    pub version: &'a str,
    /// The target triple of the programs.
    pub target: &'a str,
    /// The SHA-256 of the archive in lower-case hexadecimal digits.
    pub sha256: &'a str,
}

/// A platform, with its names in `std::env::consts`.
struct Platform {
    system: &'static str,
    architecture: &'static str,
    /// The dynamic linker of the C library that the programs need.
    linker: &'static str,
    package: Package<'static>,
}

const PLATFORMS: [Platform; 4] = [
    Platform {
        system: "linux",
        architecture: "x86_64",
        linker: "/lib64/ld-linux-x86-64.so.2",
        package: pinned(
            "x86_64-unknown-linux-gnu",
            "b7a1ba6bae6499d8296e3e81b0171eecfd1766ca9aaa0057e41ad3e844e5e2e0",
        ),
    },
    Platform {
        system: "linux",
        architecture: "aarch64",
        linker: "/lib/ld-linux-aarch64.so.1",
        package: pinned(
            "aarch64-unknown-linux-gnu",
            "abffda09209280ec1502b73720dc4d254fb7fff9a072e324926c600a5b16c221",
        ),
    },
    Platform {
        system: "macos",
        architecture: "aarch64",
        linker: "/usr/lib/dyld",
        package: pinned(
            "aarch64-apple-darwin",
            "fd4b62794b160e26973a768a1eef3248aef9d2ff23ebd6d884a4299485e28e57",
        ),
    },
    Platform {
        system: "macos",
        architecture: "x86_64",
        linker: "/usr/lib/dyld",
        package: pinned(
            "x86_64-apple-darwin",
            "e43a81b15e1cfe7f9d8fd79c6d4d0366e9001a5f690e322224dca704656602f7",
        ),
    },
];

const fn pinned(target: &'static str, sha256: &'static str) -> Package<'static> {
    Package {
        version: "17.11.0",
        target,
        sha256,
    }
}

impl Package<'static> {
    /// The package for the machine of this process. `None` if there is no package for it, for
    /// example on Linux without the GNU C library.
    pub fn for_this_platform() -> Option<Self> {
        let found = PLATFORMS.iter().find(|platform| {
            platform.system == std::env::consts::OS
                && platform.architecture == std::env::consts::ARCH
                && Path::new(platform.linker).exists()
        });
        found.map(|platform| platform.package)
    }
}

impl Package<'_> {
    /// The version of PostgreSQL, such as `17.11`.
    pub fn postgresql(&self) -> &str {
        let version = self.version.rsplit_once('.');
        version.map_or(self.version, |(postgresql, _)| postgresql)
    }

    /// The name of the top folder in the archive. The archive has the same name with `.tar.gz`.
    pub(crate) fn name(&self) -> String {
        format!("postgresql-{}-{}", self.version, self.target)
    }

    /// The folder into which the archive is unpacked. The checksum is a part of the name, so that
    /// another archive of the same name gets another folder.
    pub(crate) fn folder(&self, cache: &Path) -> PathBuf {
        let short = self.sha256.get(..12).unwrap_or(self.sha256);
        cache.join(format!("{}-{short}", self.name()))
    }

    /// The folder of the programs, if an earlier download unpacked them in `cache`; otherwise
    /// `None`.
    pub fn installed(&self, cache: &Path) -> Option<PathBuf> {
        let programs = self.folder(cache).join("bin");
        programs.join("postgres").is_file().then_some(programs)
    }
}
