//! Checksums as settings.

use super::kind::{Kind, TomlType};

/// A SHA-256 in lower-case hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Checksum(pub(crate) String);

impl Kind for Checksum {
    const TOML_TYPE: TomlType = TomlType::Text;
    const EXPECTED: &'static str = "a SHA-256 of 64 hexadecimal digits";

    fn parse(text: &str) -> Option<Self> {
        let valid = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        valid.then(|| Self(text.to_ascii_lowercase()))
    }
}
