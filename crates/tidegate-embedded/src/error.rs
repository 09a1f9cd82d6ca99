//! Errors of creating, starting and stopping a private PostgreSQL.

use std::io;
use std::path::{Path, PathBuf};

use crate::version::{NEWEST, OLDEST};

/// A result whose error is [`Error`] by default.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why a private PostgreSQL could not be created, started or stopped.
///
/// If the machine or the settings are the cause of an error, its text says what to change.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The machine has no server binaries of a supported version.
    #[error(
        "no PostgreSQL server found (versions {OLDEST} to {NEWEST}; a folder needs initdb, postgres and pg_ctl){}\n  \
         Debian, Ubuntu: apt-get install postgresql\n  \
         Fedora, RHEL:   dnf install postgresql-server\n  \
         macOS:          brew install postgresql@17\n  \
         or name the folder of the binaries in the setting `bin_dir`",
        list(.passed_over)
    )]
    NoBinaries {
        /// The servers of unsuitable versions that were found, as `version in directory`.
        passed_over: Vec<String>,
    },
    /// The folder in the setting `bin_dir` has no usable server.
    #[error("bin_dir {}: {problem}", .dir.display())]
    BinDir {
        /// The folder that the setting names.
        dir: PathBuf,
        /// The reason why the folder is not usable.
        problem: String,
    },
    /// No server was found with the major version that created the persistent cluster.
    #[error(
        "{} was made by PostgreSQL {major}, and no server of that version was found{}; \
         install PostgreSQL {major}, or choose another directory",
        .dir.display(), list(.passed_over)
    )]
    DataVersion {
        /// The cluster's directory.
        dir: PathBuf,
        /// The major version that created the cluster.
        major: u16,
        /// The servers of other versions that were found, as `version in directory`.
        passed_over: Vec<String>,
    },
    /// The directory contains something that this crate did not create.
    #[error(
        "{} is not empty and was not made by Tidegate, so it is left alone; \
         choose an empty or a new directory", .dir.display()
    )]
    ForeignDirectory {
        /// The directory.
        dir: PathBuf,
    },
    /// Another process runs a cluster in this directory.
    #[error(
        "{} is in use by another Tidegate{}; stop it, or choose another directory",
        .dir.display(), .pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
    )]
    InUse {
        /// The cluster's directory.
        dir: PathBuf,
        /// The id of the process that uses the directory, if it can be read.
        pid: Option<u32>,
    },
    /// The cluster belongs to another user.
    #[error(
        "{} belongs to the user with the id {owner}; start as that user, or choose another \
         directory", .dir.display()
    )]
    Owner {
        /// The cluster's directory.
        dir: PathBuf,
        /// The user id of the directory's owner.
        owner: u32,
    },
    /// The process runs as root, and the user that would run PostgreSQL cannot enter the directory.
    #[error(
        "PostgreSQL runs as the user \"{user}\", who may not enter {}, so {} cannot be its \
         directory; choose one below a folder that every user may enter, such as /var/lib",
        .closed.display(), .dir.display()
    )]
    NotEnterable {
        /// The cluster's directory.
        dir: PathBuf,
        /// The parent directory that the user cannot enter.
        closed: PathBuf,
        /// The user that would run PostgreSQL.
        user: String,
    },
    /// The process runs as root, and the system has no other user that could run PostgreSQL.
    #[error(
        "PostgreSQL does not run as root, and there is neither a user \"postgres\" nor a user \
         \"nobody\" in /etc/passwd; add one, or start as an ordinary user"
    )]
    NoServerUser,
    /// The requested port is in use.
    #[error("port {port} on 127.0.0.1 is taken; stop what listens there, or choose another port")]
    PortTaken {
        /// The port in the settings.
        port: u16,
    },
    /// `extra` contains a setting that only this crate may set.
    #[error("extra: \"{name}\" is set by Tidegate itself and cannot be given")]
    ReservedSetting {
        /// The setting's name.
        name: String,
    },
    /// The name of a setting in `extra` is not valid.
    #[error("extra: \"{name}\" is no name of a PostgreSQL setting (letters, digits, _ and .)")]
    SettingName {
        /// The name in `extra`.
        name: String,
    },
    /// A path that must be written into PostgreSQL's configuration is not UTF-8.
    #[error("{} is not valid UTF-8; choose another directory", .path.display())]
    NotUtf8 {
        /// The path.
        path: PathBuf,
    },
    /// The path of the socket is too long, even in the scratch directory.
    #[error(
        "the socket's path {} is longer than {limit} bytes; set scratch_dir to a shorter folder",
        .path.display()
    )]
    SocketPathTooLong {
        /// The path that is too long.
        path: PathBuf,
        /// The longest possible path in bytes.
        limit: usize,
    },
    /// A program of PostgreSQL failed, such as `pg_basebackup`.
    #[error("{} failed: {output}", .program.display())]
    Program {
        /// The path of the program.
        program: PathBuf,
        /// The standard output and standard error of the program.
        output: String,
    },
    /// `initdb` failed.
    #[error("initdb could not make the cluster:\n{output}")]
    Init {
        /// The output of `initdb`.
        output: String,
    },
    /// PostgreSQL ended before it was ready.
    #[error("PostgreSQL did not start ({status}); the end of its log:\n{log}")]
    Start {
        /// How the process ended.
        status: String,
        /// The last lines of the server's log.
        log: String,
    },
    /// PostgreSQL is running, but was not ready in time.
    #[error("PostgreSQL was not ready after {seconds} s; the end of its log:\n{log}")]
    NotReady {
        /// The time limit in seconds.
        seconds: u64,
        /// The last lines of the server's log.
        log: String,
    },
    /// A PostgreSQL that outlived its parent process does not stop.
    #[error("PostgreSQL (process {pid}) still runs in {} and does not stop", .dir.display())]
    Orphan {
        /// The cluster's directory.
        dir: PathBuf,
        /// The process id of the first process of PostgreSQL.
        pid: u32,
    },
    /// The async runtime shut down before the work had ended.
    #[error("the runtime shut down before PostgreSQL was ready")]
    Interrupted,
    /// The operating system refused an operation.
    #[error("could not {action} {}: {source}", .path.display())]
    Io {
        /// The operation, as a verb.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
}

/// Adds the operation and the path to an error of the operating system.
pub(crate) trait IoContext<T> {
    /// `action` is a verb that fits after "could not".
    fn context(self, action: &'static str, path: &Path) -> Result<T>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn context(self, action: &'static str, path: &Path) -> Result<T> {
        self.map_err(|source| Error::Io {
            action,
            path: path.to_owned(),
            source,
        })
    }
}

fn list(found: &[String]) -> String {
    if found.is_empty() {
        String::new()
    } else {
        format!("; passed over: {}", found.join(", "))
    }
}
