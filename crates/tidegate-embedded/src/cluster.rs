//! A running cluster and its operations.

use std::fmt;
use std::panic;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::binaries::Lookup;
use crate::configuration::check_extra;
use crate::directory::{Directory, data_of, data_version, is_empty};
use crate::error::{Error, Result};
use crate::postmaster::{Postmaster, Shutdown};
use crate::server::{ADMIN_USER, Server};
use crate::settings::{DataDir, Settings};
use crate::user::ServerUser;
use crate::version::Version;
use crate::watcher::Watcher;
use crate::{orphan, port};

/// How long PostgreSQL may take to stop in one shutdown mode. After that, the next faster mode is
/// used.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);
/// All ASCII characters except the unreserved ones (RFC 3986, section 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A private PostgreSQL that is running.
///
/// Dropping the value stops PostgreSQL and removes the directory of a temporary cluster.
/// [`Cluster::stop`] does the same without blocking the thread. If this process ends without
/// dropping the value, a watcher process does the same.
pub struct Cluster {
    inner: Arc<Inner>,
}

/// The parts of a cluster. They end in this order: first PostgreSQL stops, then a temporary
/// directory is removed, and then the watcher ends.
struct Inner {
    running: Mutex<Option<Postmaster>>,
    server: Server,
    watcher: Mutex<Watcher>,
    port: u16,
    password: String,
}

impl Cluster {
    /// Starts a cluster, which is created first if it does not exist. Returns when PostgreSQL
    /// accepts connections.
    ///
    /// If the future is dropped before it has ended, no process and no temporary directory remains.
    ///
    /// # Errors
    ///
    /// If no binaries are found, if the directory or the port is in use, or if PostgreSQL refuses
    /// settings; see [`Error`].
    pub async fn start(settings: Settings) -> Result<Self> {
        blocking(move || Self::start_blocking(&settings)).await
    }

    /// Does the same as [`Cluster::start`] for callers without an async runtime.
    pub fn start_blocking(settings: &Settings) -> Result<Self> {
        Self::start_from(settings, Server::initialise)
    }

    /// Starts a cluster. First calls `initialise`, which creates the data directory if it is
    /// missing, and returns the administrator's password.
    pub(crate) fn start_from(
        settings: &Settings,
        initialise: impl FnOnce(&Server) -> Result<String>,
    ) -> Result<Self> {
        check_extra(&settings.extra)?;
        let server = Server::open(settings)?;
        let mut watcher = Watcher::spawn(&server.directory)?;
        let password = initialise(&server)?;
        orphan::stop(&server.directory, &server.user)?;
        settings.port.map_or(Ok(()), port::require_free)?;
        let (postmaster, port) = server.launch(settings.port)?;
        watcher.watch(postmaster.pid())?;
        let dir = server.directory.root().display();
        tracing::info!(version = %server.binaries.version, port, %dir, "PostgreSQL runs");
        let (running, watcher) = (Mutex::new(Some(postmaster)), Mutex::new(watcher));
        Ok(Self {
            inner: Arc::new(Inner {
                running,
                server,
                watcher,
                port,
                password,
            }),
        })
    }

    /// Removes a persistent cluster with its data. There is no error if the cluster does not exist.
    ///
    /// # Errors
    ///
    /// [`Error::ForeignDirectory`] if the directory is not a cluster of this crate,
    /// [`Error::Owner`] if it belongs to another user, [`Error::InUse`] while the cluster runs.
    pub async fn remove(settings: Settings) -> Result<()> {
        blocking(move || match &settings.data_dir {
            DataDir::Persistent(path) if !is_empty(path)? => {
                let (directory, user) = open_directory(&settings)?;
                orphan::stop(&directory, &user)?;
                directory.remove()
            }
            _ => Ok(()),
        })
        .await
    }

    /// The port of PostgreSQL on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.inner.port
    }

    /// The folder of the Unix socket. Only root and the user that runs PostgreSQL may enter it.
    pub fn socket_dir(&self) -> &Path {
        self.inner.server.directory.socket_dir()
    }

    /// The cluster's directory, as an absolute path.
    pub fn data_dir(&self) -> &Path {
        self.inner.server.directory.root()
    }

    /// The version of the server.
    pub fn version(&self) -> Version {
        self.inner.server.binaries.version
    }

    /// The folder of the server's programs, such as `pg_dump`.
    pub fn bin_dir(&self) -> &Path {
        &self.inner.server.binaries.dir
    }

    /// The name of the superuser.
    pub fn admin_user(&self) -> &str {
        ADMIN_USER
    }

    /// The superuser's password, which is a secret.
    pub fn admin_password(&self) -> &str {
        &self.inner.password
    }

    /// The URL with which the superuser connects to the database `postgres` over TCP. It contains
    /// the password.
    pub fn admin_url(&self) -> String {
        self.url("postgres")
    }

    /// The URL with which the superuser connects to `database` over TCP. It contains the password.
    pub fn url(&self, database: &str) -> String {
        self.url_at("127.0.0.1", database)
    }

    /// The URL with which the superuser connects to `database` over the Unix socket. It contains
    /// the password.
    pub fn socket_url(&self, database: &str) -> String {
        self.url_at(
            &percent_encoded(&self.socket_dir().to_string_lossy()),
            database,
        )
    }

    pub(crate) fn server(&self) -> &Server {
        &self.inner.server
    }

    /// A handle that keeps the cluster running, for work on another thread.
    pub(crate) fn handle(&self) -> Self {
        let inner = Arc::clone(&self.inner);
        Self { inner }
    }

    fn url_at(&self, host: &str, database: &str) -> String {
        let (password, port) = (self.admin_password(), self.port());
        let database = percent_encoded(database);
        format!("postgresql://{ADMIN_USER}:{password}@{host}:{port}/{database}")
    }

    /// Stops PostgreSQL and removes the directory of a temporary cluster.
    pub async fn stop(self) -> Result<()> {
        blocking(move || {
            self.inner.halt(self.inner.default_shutdown());
            Ok(())
        })
        .await
    }

    /// Stops PostgreSQL without removing the cluster, for tests of outages. [`Cluster::resume`]
    /// starts it again on the same port.
    pub async fn halt(&self, mode: Shutdown) -> Result<()> {
        let inner = Arc::clone(&self.inner);
        blocking(move || {
            inner.halt(mode);
            Ok(())
        })
        .await
    }

    /// Whether PostgreSQL is running. It is not running after [`Cluster::halt`], or if it ended by
    /// itself.
    pub fn is_running(&self) -> bool {
        let mut running = self.inner.running();
        running.as_mut().is_some_and(Postmaster::is_running)
    }

    /// Starts PostgreSQL again after [`Cluster::halt`] or after it ended by itself.
    pub async fn resume(&self) -> Result<()> {
        let inner = Arc::clone(&self.inner);
        blocking(move || inner.resume()).await
    }

    /// Stops PostgreSQL like [`Cluster::halt`] and starts it like [`Cluster::resume`].
    pub async fn restart(&self, mode: Shutdown) -> Result<()> {
        let inner = Arc::clone(&self.inner);
        blocking(move || {
            inner.halt(mode);
            inner.resume()
        })
        .await
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("version", &self.version())
            .field("port", &self.port())
            .field("data_dir", &self.data_dir())
            .finish_non_exhaustive()
    }
}

impl Server {
    /// Finds the binaries and locks the directory, but does not start PostgreSQL.
    fn open(settings: &Settings) -> Result<Self> {
        let existing = match &settings.data_dir {
            DataDir::Temporary => None,
            DataDir::Persistent(path) => data_version(path).map(|major| (path.as_path(), major)),
        };
        let binaries = Lookup::new(settings, existing).find()?;
        let (directory, user) = open_directory(settings)?;
        let extra = settings.extra.clone();
        Ok(Self {
            binaries,
            user,
            directory,
            extra,
        })
    }
}

/// Locks the directory, and determines the user that runs the server.
fn open_directory(settings: &Settings) -> Result<(Directory, ServerUser)> {
    let scratch = &settings.scratch_dir;
    match &settings.data_dir {
        DataDir::Temporary => {
            let user = ServerUser::choose(scratch, None)?;
            Ok((Directory::temporary(scratch, &user)?, user))
        }
        DataDir::Persistent(path) => {
            let user = ServerUser::choose(scratch, Some(&data_of(path)))?;
            Ok((Directory::persistent(path, scratch, &user)?, user))
        }
    }
}

impl Inner {
    /// The mode of a normal shutdown. A temporary cluster is shut down immediately, because its
    /// data need not be written to disk.
    fn default_shutdown(&self) -> Shutdown {
        if self.server.directory.is_temporary() {
            Shutdown::Immediate
        } else {
            Shutdown::Fast
        }
    }

    fn running(&self) -> MutexGuard<'_, Option<Postmaster>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn halt(&self, mode: Shutdown) {
        if let Some(mut postmaster) = self.running().take() {
            postmaster.shut_down(&self.server.user, mode, STOP_TIMEOUT);
        }
    }

    fn resume(&self) -> Result<()> {
        let mut running = self.running();
        if running.as_mut().is_some_and(Postmaster::is_running) {
            return Ok(());
        }
        let (postmaster, _) = self.server.launch(Some(self.port))?;
        let pid = postmaster.pid();
        *running = Some(postmaster);
        self.watch(pid)
    }

    /// Sends the process id of the running PostgreSQL to the watcher. Restarts the watcher first if
    /// it was killed.
    fn watch(&self, pid: u32) -> Result<()> {
        let mut watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        watcher.watch(pid).or_else(|_gone| {
            *watcher = Watcher::spawn(&self.server.directory)?;
            watcher.watch(pid)
        })
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.halt(self.default_shutdown());
    }
}

/// Runs blocking work on another thread. If the future is dropped, the work continues, and its
/// result is ignored.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) if error.is_panic() => panic::resume_unwind(error.into_panic()),
        Err(_) => Err(Error::Interrupted),
    }
}

/// Percent-encodes all characters except the unreserved ones.
fn percent_encoded(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

#[cfg(test)]
mod tests {
    use super::percent_encoded;

    #[test]
    fn a_name_cannot_change_the_rest_of_the_url() {
        assert_eq!(
            percent_encoded("a b/ü?x=1&@:%"),
            "a%20b%2F%C3%BC%3Fx%3D1%26%40%3A%25"
        );
        assert_eq!(percent_encoded("plain-name_1.~"), "plain-name_1.~");
    }
}
