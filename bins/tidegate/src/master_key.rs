//! Reads and writes the master key.

use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use tidegate_identity::MasterKey;

use crate::cli_error::{CliError, FileContext, Result};
use crate::ports;
use crate::settings::Settings;

/// Reads the master key from the settings, or from the file that the settings name.
pub(crate) fn read(settings: &Settings) -> Result<MasterKey> {
    match (&settings.master_key, &settings.master_key_file) {
        (Some(_), Some(_)) => Err(CliError::Usage(
            "both TIDEGATE_MASTER_KEY and master_key_file are given; keep one of them".to_owned(),
        )),
        (Some(text), None) => MasterKey::parse(&text.0).map_err(|_| {
            CliError::Usage("TIDEGATE_MASTER_KEY is not 32 bytes in base64url".to_owned())
        }),
        (None, Some(path)) => from_file(path),
        (None, None) => Err(CliError::Usage(
            "there is no master key; make one with `tidegate key init FILE` and name the file in \
             master_key_file"
                .to_owned(),
        )),
    }
}

pub(crate) fn from_file(path: &Path) -> Result<MasterKey> {
    let text = std::fs::read_to_string(path).on("read the master key from", path)?;
    let mode = std::fs::metadata(path)
        .on("read", path)?
        .permissions()
        .mode();
    if mode & 0o077 != 0 {
        tracing::warn!(path = %path.display(), "the master key file is readable by other users; run chmod 600");
    }
    MasterKey::parse(&text).map_err(|_| {
        CliError::Usage(format!(
            "{} contains no master key: expected 32 bytes in base64url",
            path.display()
        ))
    })
}

/// Generates a key and writes it to a new file that only its owner can read.
pub(crate) fn create(path: &Path) -> Result {
    write(&generate()?, path)
}

pub(crate) fn generate() -> Result<MasterKey> {
    Ok(MasterKey::generate(&*ports::random())?)
}

/// Writes a key to a new file that only its owner can read.
pub(crate) fn write(key: &MasterKey, path: &Path) -> Result {
    let mut options = std::fs::OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(path);
    let mut file = match file {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            return Err(CliError::Refused(format!(
                "{} exists already; a key that is in use must not be lost, so choose another \
                 file",
                path.display()
            )));
        }
        other => other.on("create", path)?,
    };
    writeln!(file, "{}", *key.to_base64url()).on("write", path)?;
    file.sync_all().on("write", path)
}
