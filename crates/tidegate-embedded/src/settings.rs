//! The settings of a cluster.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::user;

/// The location of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataDir {
    /// A new directory in `scratch_dir`. It is removed when the process ends, even if the process
    /// is killed.
    ///
    /// Such a cluster is fast but not durable, because nothing is flushed to disk.
    Temporary,
    /// The directory at this path, which is created if it is missing. Its data remains after the
    /// process has ended.
    ///
    /// The directory must be empty or contain a cluster; a directory with other content is refused.
    Persistent(PathBuf),
}

/// The settings of a cluster. Start from [`Settings::temporary`] or [`Settings::persistent`].
#[derive(Debug, Clone)]
pub struct Settings {
    /// The location of the cluster.
    pub data_dir: DataDir,
    /// The port on 127.0.0.1; `None` for any free port.
    pub port: Option<u16>,
    /// The directory of `postgres`, `initdb` and `pg_ctl`; `None` to search for one.
    pub bin_dir: Option<PathBuf>,
    /// The directory of the server to use if no installed server is found, such as a downloaded
    /// server.
    pub fallback_dir: Option<PathBuf>,
    /// The directories that are searched for `pg_config` and the binaries, in the form of `PATH`;
    /// with `None`, only the usual directories of packages and `fallback_dir` are searched.
    pub search_path: Option<OsString>,
    /// A directory with a short path, in which temporary clusters and sockets are created; `/tmp`
    /// by default.
    pub scratch_dir: PathBuf,
    /// Further settings for `postgresql.conf`, such as `("max_connections", "200")`.
    pub extra: Vec<(String, String)>,
}

impl Settings {
    /// The settings of a cluster that is removed when the process ends.
    pub fn temporary() -> Self {
        Self {
            data_dir: DataDir::Temporary,
            port: None,
            bin_dir: None,
            fallback_dir: None,
            search_path: None,
            scratch_dir: PathBuf::from("/tmp"),
            extra: Vec::new(),
        }
    }

    /// The settings of a cluster whose data stays in `directory`.
    pub fn persistent(directory: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: DataDir::Persistent(directory.into()),
            ..Self::temporary()
        }
    }

    /// Adds a setting for `postgresql.conf`.
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.extra.push((name.into(), value.into()));
        self
    }
}

/// The default parent directory of clusters.
///
/// `user_data` is the user's data directory (`$XDG_DATA_HOME`, otherwise `~/.local/share`). For
/// root the result is `/var/lib/tidegate` instead, because PostgreSQL then runs as another user,
/// who cannot enter root's home.
pub fn default_directory(user_data: &Path) -> Result<PathBuf> {
    for_user(user_data, "/var/lib/tidegate")
}

/// The directory for downloaded programs.
///
/// `user_cache` is the user's cache directory (`$XDG_CACHE_HOME`, otherwise `~/.cache`). For root
/// the result is `/var/cache/tidegate` instead, for the same reason as in [`default_directory`].
pub fn default_cache(user_cache: &Path) -> Result<PathBuf> {
    for_user(user_cache, "/var/cache/tidegate")
}

fn for_user(folder: &Path, as_root: &str) -> Result<PathBuf> {
    let is_root = user::effective_uid(Path::new("/tmp"))? == 0;
    Ok(if is_root {
        PathBuf::from(as_root)
    } else {
        folder.join("tidegate")
    })
}
