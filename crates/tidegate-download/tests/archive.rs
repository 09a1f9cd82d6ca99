//! Builds archives like those of the releases.

use std::fmt::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};

/// An entry of an archive: a file with its mode and text, or a link.
#[derive(Clone, Copy)]
pub(crate) enum Entry<'a> {
    File(u32, &'a str),
    Link(&'a str),
}

/// An archive with these entries.
pub(crate) fn archive(entries: &[(&str, Entry<'_>)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (path, entry) in entries {
        let mut header = tar::Header::new_gnu();
        let (mode, text) = match entry {
            Entry::File(mode, text) => (*mode, *text),
            Entry::Link(target) => {
                header.set_entry_type(tar::EntryType::Symlink);
                header.set_link_name(target).unwrap();
                (0o777, "")
            }
        };
        // `set_path` would refuse a path that leads out of the archive's folder.
        header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_size(text.len() as u64);
        header.set_mode(mode);
        header.set_cksum();
        tar.append(&header, text.as_bytes()).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

/// The checksum of an archive, as the releases write it.
pub(crate) fn sha256(archive: &[u8]) -> String {
    let mut text = String::new();
    for byte in Sha256::digest(archive) {
        write!(text, "{byte:02x}").unwrap();
    }
    text
}
