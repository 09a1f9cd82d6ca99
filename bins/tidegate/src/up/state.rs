//! The files that `tidegate up` writes on this machine: the master key, and a settings file for
//! each database.

use std::path::PathBuf;

use tidegate_identity::MasterKey;

use super::address::Address;
use crate::cli_error::{CliError, FileContext, Result};
use crate::settings::{Layers, Settings};
use crate::{master_key, private_file, user_folders};

/// The settings that are written to the settings file.
const WRITTEN_SETTINGS: [&str; 7] = [
    "admin_url",
    "control_database",
    "master_key_file",
    "feed_source",
    "replication_url",
    "sslmode",
    "sslrootcert",
];

/// The folder in which `tidegate up` keeps the master key and the settings files.
pub(super) struct State {
    folder: PathBuf,
    /// Whether the settings contain a master key or name its file.
    key_is_given: bool,
}

impl State {
    /// Determines the folder of the files, but creates nothing.
    pub(super) fn open(settings: &Settings) -> Result<Self> {
        let folder = match &settings.data_dir {
            Some(folder) => std::path::absolute(folder).on("find the folder", folder)?,
            None => tidegate_embedded::default_directory(&user_folders::data()?)?,
        };
        if folder.join("postgresql").exists() {
            return Err(CliError::Usage(format!(
                "{} holds the database of `tidegate demo`, which deletes its master key with \
                 --fresh; give another --data-dir",
                folder.display()
            )));
        }
        let key_is_given = settings.master_key.is_some() || settings.master_key_file.is_some();
        Ok(Self {
            folder,
            key_is_given,
        })
    }

    fn key_file(&self) -> PathBuf {
        self.folder.join("master.key")
    }

    /// The path of the settings file of a database, which other commands can use.
    pub(super) fn settings_file(&self, database: &str) -> PathBuf {
        let is_safe = |c: char| c.is_alphanumeric() || c == '-';
        let safe = |c: char| if is_safe(c) { c } else { '_' };
        let name: String = database.chars().map(safe).collect();
        self.folder.join(format!("{name}.toml"))
    }

    /// The master key from the settings, or else from the file that an earlier run wrote. If there
    /// is neither, generates a key, but does not write it yet.
    pub(super) fn master_key(&self, settings: &Settings) -> Result<MasterKey> {
        if self.key_is_given {
            return master_key::read(settings);
        }
        let path = self.key_file();
        if path.exists() {
            return master_key::from_file(&path);
        }
        master_key::generate()
    }

    /// Sets `master_key_file` to the path of the key file, unless the settings have a key.
    pub(super) fn decide(&self, layers: &mut Layers) {
        if !self.key_is_given {
            let path = self.key_file().to_string_lossy().into_owned();
            layers.decide(&[("master_key_file", Some(path))]);
        }
    }

    /// Writes the settings file. Also writes the key file, unless the settings have a key or the
    /// key file exists.
    pub(super) fn write(&self, key: &MasterKey, layers: &Layers, address: &Address) -> Result {
        std::fs::create_dir_all(&self.folder).on("create the folder", &self.folder)?;
        if !self.key_is_given && !self.key_file().exists() {
            master_key::write(key, &self.key_file())?;
        }
        let path = self.settings_file(address.database());
        let first = format!("# {}", address.name());
        let present = std::fs::read_to_string(&path).unwrap_or_default();
        if present.lines().next().is_some_and(|line| line != first) {
            return Err(CliError::Usage(format!(
                "{} has the settings of another database or server; give another --data-dir",
                path.display()
            )));
        }
        let text = format!("{first}\n{}", layers.to_toml(&WRITTEN_SETTINGS));
        private_file::replace(&path, &text)
    }
}
