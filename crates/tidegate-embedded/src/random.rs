//! The one place where this crate draws random bytes: from `/dev/urandom`.
//!
//! They name folders in the scratch folder and make the administrator's password; nothing that
//! a test would want to repeat hangs on them, so they are not an argument.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::error::{IoContext, Result};

/// `N` bytes that nobody can guess.
pub(crate) fn bytes<const N: usize>() -> Result<[u8; N]> {
    let source = Path::new("/dev/urandom");
    let mut bytes = [0; N];
    File::open(source)
        .and_then(|mut file| file.read_exact(&mut bytes))
        .context("read", source)?;
    Ok(bytes)
}

/// `2 * N` hexadecimal digits that nobody can guess.
pub(crate) fn hex<const N: usize>() -> Result<String> {
    let nibbles = bytes::<N>()?
        .into_iter()
        .flat_map(|byte| [byte >> 4, byte & 0xf]);
    Ok(nibbles
        .filter_map(|nibble| char::from_digit(nibble.into(), 16))
        .collect())
}
