//! The demo's folder, which contains the cluster, the master key and a file with URLs.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::cli_error::{CliError, FileContext, Result};
use crate::settings::Settings;
use crate::{master_key, private_file, user_folders};

/// The name of the cluster's folder in the demo's folder.
const CLUSTER: &str = "postgresql";

pub(super) struct Folder(PathBuf);

impl Folder {
    /// Opens the folder. Creates it if it is missing.
    pub(super) fn open(settings: &Settings) -> Result<Self> {
        let path = match &settings.data_dir {
            Some(path) => path.clone(),
            None => tidegate_embedded::default_directory(&user_folders::data()?)?.join("demo"),
        };
        if path.exists() {
            require_empty_or_demo(&path)?;
        } else {
            std::fs::create_dir_all(&path).on("make the folder", &path)?;
            // If the demo runs as root, PostgreSQL runs as another user, who must be able to enter
            // the folder.
            let mode = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(&path, mode).on("open the folder", &path)?;
        }
        Ok(Self(path.canonicalize().on("find the folder", &path)?))
    }

    /// The path of the folder with PostgreSQL's data.
    pub(super) fn cluster(&self) -> PathBuf {
        self.0.join(CLUSTER)
    }

    /// The path of the file with the master key. Creates the file if it is missing.
    pub(super) fn master_key(&self) -> Result<PathBuf> {
        let path = self.0.join("master.key");
        if !path.exists() {
            master_key::create(&path)?;
        }
        Ok(path)
    }

    /// The path of `demo.env`, the file with the URLs of the service and of the database.
    pub(super) fn environment(&self) -> PathBuf {
        self.0.join("demo.env")
    }

    /// Removes the master key and the file with the URLs. Both are useless once the cluster is
    /// deleted.
    pub(super) fn clear(&self) -> Result {
        for path in [self.0.join("master.key"), self.environment()] {
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(error).on("remove", path);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes the file with the URLs of the service and of the database, and with the settings that
    /// commands of the operator need. Only the owner can read the file, because the URLs contain a
    /// password. The path of the master key is quoted, because a shell reads the file and the path
    /// may contain spaces.
    pub(super) fn write_environment(
        &self,
        url: &str,
        (database_url, admin_url): (&str, &str),
    ) -> Result {
        let master_key = self.master_key()?;
        let text = format!(
            "TIDEGATE_URL={url}\nDATABASE_URL={database_url}\nTIDEGATE_ADMIN_URL={admin_url}\n\
             TIDEGATE_MASTER_KEY_FILE='{}'\n",
            master_key.display()
        );
        private_file::replace(&self.environment(), &text)
    }
}

/// Fails for a folder that contains files but no demo, because clearing the folder could delete a
/// master key that is not the demo's.
fn require_empty_or_demo(path: &Path) -> Result {
    let mut entries = std::fs::read_dir(path).on("look into", path)?;
    if path.join(CLUSTER).exists() || entries.next().is_none() {
        return Ok(());
    }
    Err(CliError::Refused(format!(
        "{} is not empty and holds no demo, so it is left alone; choose an empty or a new folder \
         with --data-dir",
        path.display()
    )))
}
