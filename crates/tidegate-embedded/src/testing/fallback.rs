//! Downloads PostgreSQL, as `tidegate demo` does, for tests on a machine where it is not installed.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tidegate_download::{DEFAULT_URL, Package, Source};

use crate::binaries::Lookup;
use crate::error::Error;
use crate::settings::{Settings, default_cache};

/// The folder with the programs of a downloaded PostgreSQL. `None` if `settings` finds an installed
/// PostgreSQL, or if a download is not possible or not allowed. The first call waits for the
/// download.
#[expect(
    clippy::panic,
    reason = "a test cannot go on, and the message says what is missing"
)]
pub(super) fn programs(settings: &Settings) -> Option<PathBuf> {
    static PROGRAMS: OnceLock<Option<PathBuf>> = OnceLock::new();
    let look = || match Lookup::new(settings, None).find() {
        Err(missing @ Error::NoBinaries { .. }) => Archive::from_variables(variable)?
            .programs()
            .unwrap_or_else(|error| panic!("{error}\n{missing}"))
            .into(),
        _ => None,
    };
    PROGRAMS.get_or_init(look).clone()
}

#[expect(
    clippy::disallowed_methods,
    reason = "tests have no caller who could hand the environment in"
)]
fn variable(name: &str) -> Option<OsString> {
    env::var_os(name)
}

/// The archive to download, and the cache folder.
#[derive(Debug)]
struct Archive {
    url: String,
    sha256: String,
    package: Package<'static>,
    cache: PathBuf,
}

impl Archive {
    /// Reads the settings of `tidegate demo` for the download from environment variables. `None` if
    /// the download is disabled, or if there is no package for this platform.
    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        let text = |name: &str| variable(name)?.into_string().ok();
        if text("TIDEGATE_FETCH_POSTGRESQL").as_deref() == Some("false") {
            return None;
        }
        let package = Package::for_this_platform()?;
        let folder = |name: &str| variable(name).map(PathBuf::from);
        // This process runs programs from the cache folder, so other users must not be able to
        // write to it. Therefore the default is not in a folder such as `/tmp`.
        let of_user = folder("XDG_CACHE_HOME")
            .or_else(|| Some(folder("HOME")?.join(".cache")))
            .unwrap_or_else(|| PathBuf::from("/nonexistent"));
        Some(Self {
            url: text("TIDEGATE_POSTGRESQL_DOWNLOAD_URL").unwrap_or(DEFAULT_URL.to_owned()),
            sha256: text("TIDEGATE_POSTGRESQL_DOWNLOAD_SHA256")
                .unwrap_or(package.sha256.to_owned()),
            package,
            cache: folder("TIDEGATE_CACHE_DIR").or_else(|| default_cache(&of_user).ok())?,
        })
    }

    /// The folder of the programs. Downloads them if they are not in the cache.
    fn programs(&self) -> tidegate_download::Result<PathBuf> {
        let package = Package {
            sha256: &self.sha256,
            ..self.package
        };
        match package.installed(&self.cache) {
            Some(programs) => Ok(programs),
            None => download(&self.url, package, &self.cache),
        }
    }
}

/// Downloads a package. Blocks the thread until the download has ended; may be called in async
/// code.
fn download(url: &str, package: Package<'_>, cache: &Path) -> tidegate_download::Result<PathBuf> {
    let source = Source {
        url,
        package,
        cache,
    };
    std::thread::scope(|scope| {
        let run = || {
            let runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = { runtime }.enable_all().build();
            runtime
                .map_err(|source| tidegate_download::Error::Unpack {
                    folder: cache.to_owned(),
                    source,
                })?
                .block_on(source.download(|_| ()))
        };
        scope.spawn(run).join()
    })
    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_mirror_and_a_cache_are_taken_from_the_environment() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let mut head = [0; 4096];
            let length = client.read(&mut head).unwrap();
            client
                .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                .unwrap();
            String::from_utf8_lossy(&head[..length]).into_owned()
        });
        let Some(wanted) = Archive::from_variables(|name| match name {
            "TIDEGATE_POSTGRESQL_DOWNLOAD_URL" => Some(OsString::from(&url)),
            "TIDEGATE_CACHE_DIR" => Some(OsString::from("/nonexistent")),
            _ => None,
        }) else {
            return;
        };
        let printed = wanted.programs().unwrap_err().to_string();
        let package = wanted.package;
        let path = format!(
            "/{0}/postgresql-{0}-{1}.tar.gz",
            package.version, package.target
        );
        assert!(printed.contains(&format!("{url}{path}: ")), "{printed}");
        let head = server.join().unwrap();
        assert!(head.starts_with(&format!("GET {path} ")), "{head}");
    }

    #[test]
    fn a_download_can_be_forbidden() {
        let forbidden =
            |name: &str| (name == "TIDEGATE_FETCH_POSTGRESQL").then(|| OsString::from("false"));
        assert!(Archive::from_variables(forbidden).is_none());
    }
}
