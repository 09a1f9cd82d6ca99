//! What the tests share: a temporary directory, a client, and waiting for a condition.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tidegate_embedded::{DataDir, Settings, testing};
use tokio_postgres::{Client, Error, NoTls};

/// The user `nobody` on Linux.
pub(crate) const UNPRIVILEGED_UID: u32 = 65_534;

/// A directory with a short path, which is removed on drop.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = PathBuf::from(format!("/tmp/tg-test-{}-{number}", std::process::id()));
        // The directory may be left from a process that was killed and had the same id.
        drop(fs::remove_dir_all(&path));
        fs::create_dir(&path).unwrap();
        // The user of PostgreSQL must be able to enter the directory, whatever the umask is.
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Settings of a cluster that is kept in this directory.
    pub(crate) fn persistent(&self, name: &str) -> Settings {
        let data_dir = DataDir::Persistent(self.0.join(name));
        Settings {
            data_dir,
            ..testing::settings()
        }
    }

    pub(crate) fn entries(&self) -> Vec<String> {
        entries(&self.0)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// The sorted names in a directory.
pub(crate) fn entries(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

pub(crate) fn is_root(scratch: &Scratch) -> bool {
    fs::metadata(scratch.path()).unwrap().uid() == 0
}

pub(crate) async fn connect(url: &str) -> Result<Client, Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    // The task ends with the client, or with the server, in which case the client reports an error.
    tokio::spawn(connection);
    Ok(client)
}

/// The value of a query with one row and one text column.
pub(crate) async fn text(client: &Client, sql: &str) -> Result<String, Error> {
    client.query_one(sql, &[]).await?.try_get(0)
}

/// Waits until the condition holds. Panics with `what` after 20 s.
#[track_caller]
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "not within 20 s: {what}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The process id of the server's postmaster.
pub(crate) fn postmaster(cluster_dir: &Path) -> u32 {
    let file = fs::read_to_string(cluster_dir.join("data/postmaster.pid")).unwrap();
    file.lines().next().unwrap().trim().parse().unwrap()
}
