//! What can go wrong.

use std::path::PathBuf;

/// The result of a download.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why the programs could not be installed. No files remain.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server cannot be reached, or the connection broke.
    #[error("cannot download {url}: {}", chain(.source))]
    Request {
        /// The archive.
        url: String,
        /// Why.
        source: reqwest::Error,
    },
    /// The server does not have the archive.
    #[error("cannot download {url}: the server answered {status}")]
    Status {
        /// The archive.
        url: String,
        /// The HTTP status.
        status: reqwest::StatusCode,
    },
    /// More bytes than any of the archives has.
    #[error("cannot download {url}: it has more than {limit} bytes")]
    TooLarge {
        /// The archive.
        url: String,
        /// The limit.
        limit: usize,
    },
    /// Another archive than the pinned one.
    #[error(
        "{url} is not the archive that this version of Tidegate knows: its SHA-256 is {found}, and {expected} was expected; nothing was unpacked"
    )]
    Checksum {
        /// The archive.
        url: String,
        /// Its SHA-256.
        found: String,
        /// The pinned one.
        expected: String,
    },
    /// The archive cannot be read, or a file cannot be written.
    #[error("cannot unpack PostgreSQL into {}: {source}", .folder.display())]
    Unpack {
        /// The folder.
        folder: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The programs cannot run, such as without a library that they load.
    #[error("the downloaded PostgreSQL does not run on this machine: {reason}")]
    Unusable {
        /// What `postgres --version` printed, or why it did not start.
        reason: String,
    },
}

/// The error and its causes, of which the last one says what happened.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
