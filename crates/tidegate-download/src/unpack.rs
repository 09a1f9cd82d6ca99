//! Unpacks a verified archive.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

use flate2::read::GzDecoder;
use tar::{Entry, EntryType};

use crate::error::{Error, Result};

/// Folders of the archive that are only needed to build extensions, or that contain documentation.
const SKIPPED_FOLDERS: [&str; 5] = [
    "include",
    "lib/pgxs",
    "lib/pkgconfig",
    "share/doc",
    "share/man",
];

/// Unpacks an archive into a new folder beside `folder`. Renames the new folder to `folder` only
/// after all files are unpacked and the unpacked server runs. If another process has created
/// `folder` first, that folder remains and is used.
pub(crate) fn unpack(archive: &[u8], folder: &Path) -> Result<()> {
    let mut fresh = folder.as_os_str().to_owned();
    fresh.push(format!(".new-{}", std::process::id()));
    let fresh = PathBuf::from(fresh);
    let _ = fs::remove_dir_all(&fresh);
    let failed = |source| Error::Unpack {
        folder: folder.to_owned(),
        source,
    };
    let done = unpack_into(archive, &fresh)
        .map_err(failed)
        .and_then(|()| run(&fresh.join("bin/postgres")))
        .and_then(|()| match fs::rename(&fresh, folder) {
            Err(_) if folder.join("bin/postgres").is_file() => Ok(()),
            renamed => renamed.map_err(failed),
        });
    if fresh.exists() {
        let _ = fs::remove_dir_all(&fresh);
    }
    done
}

fn unpack_into(archive: &[u8], folder: &Path) -> io::Result<()> {
    create(folder)?;
    for entry in tar::Archive::new(GzDecoder::new(archive)).entries()? {
        let mut entry = entry?;
        let Some(path) = path_to_unpack(&entry.path()?).map(|path| folder.join(path)) else {
            continue;
        };
        create(path.parent().unwrap_or(folder))?;
        match entry.header().entry_type() {
            EntryType::Regular => {
                entry.unpack(path)?;
            }
            EntryType::Symlink => link(&entry, &path)?,
            _ => {}
        }
    }
    Ok(())
}

/// The path of an archive entry below the archive's top folder. `None` if the server does not need
/// the file to run, or if the path would lead out of the folder.
fn path_to_unpack(path: &Path) -> Option<PathBuf> {
    let mut parts = path.components();
    parts.next();
    let inside = parts.as_path();
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    let is_static = inside.extension().is_some_and(|it| it == "a");
    let is_unused = is_static
        || SKIPPED_FOLDERS
            .iter()
            .any(|unused| inside.starts_with(unused));
    (path.components().all(plain) && inside.parent().is_some() && !is_unused)
        .then(|| inside.to_owned())
}

/// Creates a symbolic link to a file in the same folder, such as the link `libpq.so.5` to the
/// library with the full version in its name. Other links are skipped, because they are not needed.
fn link(entry: &Entry<'_, impl io::Read>, path: &Path) -> io::Result<()> {
    match entry.link_name()? {
        Some(target) if target.file_name() == Some(target.as_os_str()) => symlink(target, path),
        _ => Ok(()),
    }
}

/// Runs `postgres --version`, which fails if a library is missing.
fn run(server: &Path) -> Result<()> {
    let unusable = |reason: String| Error::Unusable { reason };
    let mut command = Command::new(server);
    command.arg("--version").stdin(Stdio::null());
    let output = command.output().map_err(|it| unusable(it.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let printed = String::from_utf8_lossy(&output.stderr);
    // The path is cut from the message, because the folder will be removed.
    let printed = printed
        .trim()
        .replace(&server.display().to_string(), "postgres");
    Err(unusable(format!("{printed} ({})", output.status)))
}

/// Creates a folder and its missing parents. Whatever the umask is, other users can enter these
/// folders, because PostgreSQL runs as another user if the current user is root.
fn create(folder: &Path) -> io::Result<()> {
    let missing: Vec<_> = folder
        .ancestors()
        .take_while(|folder| !folder.exists())
        .collect();
    for folder in missing.into_iter().rev() {
        fs::create_dir(folder)?;
        fs::set_permissions(folder, Permissions::from_mode(0o755))?;
    }
    Ok(())
}
