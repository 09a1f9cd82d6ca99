//! Errors of downloads.

use std::path::PathBuf;

/// A result whose error is [`Error`] by default.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why PostgreSQL could not be installed. After an error no new files remain.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request failed, for example because the web server cannot be reached.
    #[error("cannot download {url}: {}", chain(.source))]
    Request {
        /// The address of the archive.
        url: String,
        /// The reason.
        source: reqwest::Error,
    },
    /// The web server does not have the archive.
    #[error("cannot download {url}: the server answered {status}")]
    Status {
        /// The address of the archive.
        url: String,
        /// The HTTP status.
        status: reqwest::StatusCode,
    },
    /// The response has more bytes than the limit.
    #[error("cannot download {url}: it has more than {limit} bytes")]
    TooLarge {
        /// The address of the archive.
        url: String,
        /// The limit in bytes.
        limit: usize,
    },
    /// The checksum of the archive is not the expected one.
    #[error(
        "{url} is not the archive that this version of Tidegate knows: its SHA-256 is {found}, and {expected} was expected; nothing was unpacked"
    )]
    Checksum {
        /// The address of the archive.
        url: String,
        /// The SHA-256 of the received archive.
        found: String,
        /// The SHA-256 that the package or the setting requires.
        expected: String,
    },
    /// The archive cannot be read, or a file cannot be written.
    #[error("cannot unpack PostgreSQL into {}: {source}", .folder.display())]
    Unpack {
        /// The folder into which the archive was unpacked.
        folder: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The programs cannot run, for example because a library is missing.
    #[error("the downloaded PostgreSQL does not run on this machine: {reason}")]
    Unusable {
        /// The output of `postgres --version` on standard error, or the reason why it did not
        /// start.
        reason: String,
    },
}

/// The error and all its causes in one line. All causes are needed, because often only the
/// innermost says what happened.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
