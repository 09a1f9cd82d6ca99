//! Files that only their owner can read.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::cli_error::{FileContext, Result};

/// Replaces a file atomically. Only its owner can read the new file.
pub(crate) fn replace(path: &Path, text: &str) -> Result {
    let fresh = path.with_added_extension("new");
    let _ = std::fs::remove_file(&fresh);
    let mut options = std::fs::OpenOptions::new();
    let file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&fresh);
    file.on("create", &fresh)?
        .write_all(text.as_bytes())
        .on("write", &fresh)?;
    std::fs::rename(&fresh, path).on("write", path)
}
