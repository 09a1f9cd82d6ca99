//! The user's folders (XDG Base Directory Specification).

use std::path::PathBuf;

use crate::cli_error::{CliError, Result};

/// The user's data folder: `$XDG_DATA_HOME`, or `~/.local/share`.
pub(crate) fn data() -> Result<PathBuf> {
    named("XDG_DATA_HOME")
        .or_else(|| named("HOME").map(|home| home.join(".local/share")))
        .ok_or_else(|| CliError::Usage("HOME is not set; name a folder with --data-dir".to_owned()))
}

/// The user's cache folder: `$XDG_CACHE_HOME`, or `~/.cache`. `None` if neither variable is set.
pub(crate) fn cache() -> Option<PathBuf> {
    named("XDG_CACHE_HOME").or_else(|| named("HOME").map(|home| home.join(".cache")))
}

/// The path in an environment variable. Relative paths are ignored, as the specification demands.
#[expect(
    clippy::disallowed_methods,
    reason = "the binary is where the environment is read"
)]
fn named(variable: &str) -> Option<PathBuf> {
    let path = std::env::var_os(variable).map(PathBuf::from);
    path.filter(|path| path.is_absolute())
}
