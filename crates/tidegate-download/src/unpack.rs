//! Unpacks an archive that was verified.

use std::fs::{self, Permissions};
use std::io::{self, Read as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use flate2::read::GzDecoder;
use serde::Deserialize;

/// Where the server is in the archive.
const SERVER: &str = "package/native";
/// The symbolic links, which archives of the registry cannot have: a JSON array in the archive.
const LINKS: &str = "package/native/pg-symlinks.json";
/// What only builds of extensions need.
const UNUSED: [&str; 2] = ["lib/postgresql/pgxs", "lib/pkgconfig"];

#[derive(Deserialize)]
struct Link {
    source: String,
    target: String,
}

/// Unpacks into `folder`, which appears when it is complete. What another process unpacked there
/// meanwhile stays.
pub(crate) fn unpack(archive: &[u8], folder: &Path) -> io::Result<()> {
    let fresh = folder.with_extension(format!("new-{}", std::process::id()));
    let _ = fs::remove_dir_all(&fresh);
    let done = unpack_into(archive, &fresh).and_then(|()| match fs::rename(&fresh, folder) {
        Err(_) if folder.join("bin/postgres").is_file() => Ok(()),
        renamed => renamed,
    });
    if fresh.exists() {
        let _ = fs::remove_dir_all(&fresh);
    }
    done
}

fn unpack_into(archive: &[u8], folder: &Path) -> io::Result<()> {
    create(folder)?;
    let mut links = Vec::new();
    for entry in tar::Archive::new(GzDecoder::new(archive)).entries()? {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        if path == Path::new(LINKS) {
            let mut text = String::new();
            entry.read_to_string(&mut text)?;
            links = serde_json::from_str::<Vec<Link>>(&text)?;
        } else if let Some(path) = wanted(&path)
            && entry.header().entry_type().is_file()
        {
            let path = folder.join(path);
            create(path.parent().unwrap_or(folder))?;
            entry.unpack(path)?;
        }
    }
    links.iter().try_for_each(|link| make_link(link, folder))
}

/// The path in the folder, of what a running server needs.
fn wanted(path: &Path) -> Option<PathBuf> {
    let inside = path.strip_prefix(SERVER).ok()?;
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    let is_static = inside.extension().is_some_and(|it| it == "a");
    let is_unused = is_static || UNUSED.iter().any(|unused| inside.starts_with(unused));
    (inside.components().all(plain) && !is_unused).then(|| inside.to_owned())
}

/// Links a file to one in the same folder.
fn make_link(link: &Link, folder: &Path) -> io::Result<()> {
    // The file's paths begin in the package.
    let inside = |path: &str| wanted(&Path::new("package").join(path));
    let (Some(source), Some(target)) = (inside(&link.source), inside(&link.target)) else {
        return Ok(());
    };
    match source.file_name() {
        Some(name) if source.parent() == target.parent() => symlink(name, folder.join(target)),
        _ => Err(io::Error::other("a link leads to another folder")),
    }
}

/// Creates folders that another user can enter, whatever the umask is: as root PostgreSQL runs as
/// another user.
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
