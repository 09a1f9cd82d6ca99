//! Random bytes from `/dev/urandom`.
//!
//! The bytes are used for names of directories and for the administrator's password. Tests need not
//! reproduce these bytes, so the functions take no source of random numbers as a parameter.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::error::{IoContext, Result};

/// `N` unpredictable bytes.
pub(crate) fn bytes<const N: usize>() -> Result<[u8; N]> {
    let source = Path::new("/dev/urandom");
    let mut bytes = [0; N];
    File::open(source)
        .and_then(|mut file| file.read_exact(&mut bytes))
        .context("read", source)?;
    Ok(bytes)
}

/// `2 * N` unpredictable hexadecimal digits.
pub(crate) fn hex<const N: usize>() -> Result<String> {
    let nibbles = bytes::<N>()?
        .into_iter()
        .flat_map(|byte| [byte >> 4, byte & 0xf]);
    Ok(nibbles
        .filter_map(|nibble| char::from_digit(nibble.into(), 16))
        .collect())
}
