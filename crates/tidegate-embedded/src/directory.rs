//! The directory of a cluster: its files, their owners and their modes.
//!
//! ```text
//! DIR/                   owned by Tidegate's user; 0711 if Tidegate runs as root, otherwise 0700
//!   tidegate-cluster     marks a directory made by Tidegate; locked while a process uses it
//!   password             the administrator's password (0600, owned by the server user)
//!   postgresql.conf      written before every start, like pg_hba.conf
//!   server.log           the log of the last start; server.log.old is the log of the start before
//!   data/                PostgreSQL's data directory (0700, owned by the server user)
//!   socket/              the directory of PostgreSQL's Unix socket, unless the path is too long
//!                        (0700, owned by the server user)
//! ```
//!
//! If Tidegate runs as root, `DIR` belongs to root, so that the server user cannot replace the
//! files beside `data`.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process;

use crate::error::{Error, IoContext, Result};
use crate::random;
use crate::user::ServerUser;

const MARK: &str = "tidegate-cluster";
/// The longest path for `sockaddr_un.sun_path`, in bytes without the final NUL.
const SOCKET_PATH_LIMIT: usize = if cfg!(target_os = "macos") { 103 } else { 107 };

/// A cluster's directory, which this process has locked. Dropping the value removes a temporary
/// directory, or a socket directory outside of the cluster's directory.
#[derive(Debug)]
pub(crate) struct Directory {
    root: PathBuf,
    socket_dir: PathBuf,
    temporary: bool,
    /// The locked file. The operating system releases the lock when the process ends.
    _mark: File,
}

impl Directory {
    /// Creates a directory for a temporary cluster in `scratch`.
    pub(crate) fn temporary(scratch: &Path, user: &ServerUser) -> Result<Self> {
        let scratch = scratch.canonicalize().context("find", scratch)?;
        let root = scratch.join(format!("tidegate-{}", random::hex::<8>()?));
        user.require_entry(&root)?;
        let socket_dir = socket_dir(&root, &scratch)?;
        create_private(&root)?;
        Self::take(root, socket_dir, user, true)
    }

    /// Opens the directory at `path`, and creates it if it is missing.
    pub(crate) fn persistent(path: &Path, scratch: &Path, user: &ServerUser) -> Result<Self> {
        let named = std::path::absolute(path).context("find", path)?;
        user.require_entry(&named)?;
        create_with_parents(&named, user)?;
        let root = path.canonicalize().context("find", path)?;
        user.require_entry(&root)?;
        require_empty_or_cluster(&root, user)?;
        let socket_dir = socket_dir(&root, scratch)?;
        Self::take(root, socket_dir, user, false)
    }

    fn take(
        root: PathBuf,
        socket_dir: PathBuf,
        user: &ServerUser,
        temporary: bool,
    ) -> Result<Self> {
        let mark = lock(&root)?;
        let mode = if user.is_other_user() { 0o711 } else { 0o700 };
        set_mode(&root, mode)?;
        let directory = Self {
            root,
            socket_dir,
            temporary,
            _mark: mark,
        };
        if !directory.socket_dir.is_dir() {
            create_private(&directory.socket_dir)?;
        }
        user.own(&directory.socket_dir)?;
        Ok(directory)
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn socket_dir(&self) -> &Path {
        &self.socket_dir
    }

    pub(crate) fn is_temporary(&self) -> bool {
        self.temporary
    }

    pub(crate) fn data(&self) -> PathBuf {
        data_of(&self.root)
    }

    /// The directory to remove when the cluster has stopped; `None` if there is nothing to remove.
    pub(crate) fn to_remove(&self) -> Option<&Path> {
        let socket_is_outside = !self.socket_dir.starts_with(&self.root);
        if self.temporary {
            Some(&self.root)
        } else {
            socket_is_outside.then_some(&*self.socket_dir)
        }
    }

    /// Reads the administrator's password, which was stored when the cluster was created.
    pub(crate) fn read_password(&self) -> Result<String> {
        let path = self.password_file();
        Ok(fs::read_to_string(&path)
            .context("read", &path)?
            .trim_end()
            .to_owned())
    }

    pub(crate) fn write_password(&self, password: &str, user: &ServerUser) -> Result<()> {
        let path = self.password_file();
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).context("remove", &path);
            }
            _ => {}
        }
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(&path);
        file.and_then(|mut file| writeln!(file, "{password}"))
            .context("write", &path)?;
        user.own(&path)
    }

    pub(crate) fn password_file(&self) -> PathBuf {
        self.root.join("password")
    }

    /// Creates an empty directory for `initdb`. The directory belongs to the server user. Removes
    /// the files of an `initdb` that was killed.
    pub(crate) fn fresh_data(&self, user: &ServerUser) -> Result<PathBuf> {
        let path = self.root.join("data.new");
        if path.exists() {
            fs::remove_dir_all(&path).context("remove", &path)?;
        }
        create_private(&path)?;
        user.own(&path)?;
        Ok(path)
    }

    /// Removes the cluster with its data. The cluster must not be running.
    pub(crate) fn remove(self) -> Result<()> {
        fs::remove_dir_all(&self.root).context("remove", &self.root)
    }

    /// Writes a file that the server user may read.
    pub(crate) fn write_readable(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.root.join(name);
        fs::write(&path, text).context("write", &path)?;
        set_mode(&path, 0o644)?;
        Ok(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let Some(path) = self.to_remove() else { return };
        // The last processes of a killed server may still write files for a moment, so the removal
        // is retried.
        for _ in 0..100 {
            if fs::remove_dir_all(path).is_ok() || !path.exists() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        tracing::warn!(path = %path.display(), "a temporary folder could not be removed");
    }
}

/// The data folder of a cluster's directory.
pub(crate) fn data_of(root: &Path) -> PathBuf {
    root.join("data")
}

/// The major version of PostgreSQL that created the cluster at `root`; `None` if there is no
/// cluster yet.
pub(crate) fn data_version(root: &Path) -> Option<u16> {
    fs::read_to_string(data_of(root).join("PG_VERSION"))
        .ok()?
        .trim()
        .parse()
        .ok()
}

/// Checks that a directory is empty or a cluster of this crate, and that it belongs to the current
/// user. If the current user is root, an empty directory of another user becomes root's.
fn require_empty_or_cluster(root: &Path, user: &ServerUser) -> Result<()> {
    let owner = fs::metadata(root).context("read", root)?.uid();
    let is_empty = is_empty(root)?;
    let dir = root.to_owned();
    if !is_empty && !root.join(MARK).is_file() {
        return Err(Error::ForeignDirectory { dir });
    }
    if owner == user.own_uid() {
        return Ok(());
    }
    if is_empty && user.is_other_user() {
        return chown(root, Some(0), Some(0)).context("change the owner of", root);
    }
    Err(Error::Owner { dir, owner })
}

/// Whether `root` does not exist or is empty. In both cases it has no data that could be lost.
pub(crate) fn is_empty(root: &Path) -> Result<bool> {
    Ok(!root.exists() || fs::read_dir(root).context("read", root)?.next().is_none())
}

fn lock(root: &Path) -> Result<File> {
    let path = root.join(MARK);
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o644);
    let mut file = options.open(&path).context("open", &path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(Error::InUse {
                dir: root.to_owned(),
                pid: lock_holder(&path),
            });
        }
        Err(TryLockError::Error(error)) => return Err(error).context("lock", &path),
    }
    let text = format!(
        "A PostgreSQL cluster made by Tidegate, in use by process\n{}\n",
        process::id()
    );
    file.set_len(0)
        .and_then(|()| file.write_all(text.as_bytes()))
        .context("write", &path)?;
    Ok(file)
}

fn lock_holder(mark: &Path) -> Option<u32> {
    fs::read_to_string(mark).ok()?.lines().nth(1)?.parse().ok()
}

/// The directory of the Unix socket: inside the cluster's directory if the path is short enough,
/// and otherwise in `scratch`.
fn socket_dir(root: &Path, scratch: &Path) -> Result<PathBuf> {
    let inside = root.join("socket");
    if fits(&inside) {
        return Ok(inside);
    }
    let outside = scratch.join(format!("tidegate-{}", random::hex::<8>()?));
    if fits(&outside) {
        return Ok(outside);
    }
    Err(Error::SocketPathTooLong {
        path: socket(&outside),
        limit: SOCKET_PATH_LIMIT,
    })
}

fn fits(socket_dir: &Path) -> bool {
    socket(socket_dir).as_os_str().len() <= SOCKET_PATH_LIMIT
}

/// The longest path of a socket that PostgreSQL may create in the directory.
fn socket(socket_dir: &Path) -> PathBuf {
    socket_dir.join(".s.PGSQL.65535")
}

fn create_private(path: &Path) -> Result<()> {
    DirBuilder::new()
        .mode(0o700)
        .create(path)
        .context("create", path)
}

/// Creates a directory and its missing parents. If the current user is root, the server user may
/// enter the created directories, whatever the umask is.
fn create_with_parents(path: &Path, user: &ServerUser) -> Result<()> {
    let missing: Vec<_> = path
        .ancestors()
        .take_while(|it| !it.as_os_str().is_empty() && !it.exists())
        .collect();
    for folder in missing.into_iter().rev() {
        match create_private(folder) {
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {
                continue;
            }
            made => made?,
        }
        if user.is_other_user() {
            set_mode(folder, 0o755)?;
        }
    }
    Ok(())
}

fn set_mode(path: &Path, mode: u32) -> Result<()> {
    fs::set_permissions(path, Permissions::from_mode(mode)).context("change the mode of", path)
}
