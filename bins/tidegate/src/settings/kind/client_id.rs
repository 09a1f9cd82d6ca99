//! Ids of OAuth clients as settings.

use super::{Element, Kind, TomlType};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientId(pub(crate) String);

kind!(
    ClientId,
    Text,
    "a client id: 1 to 64 characters of A-Z a-z 0-9 _ . -",
    |text| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        let valid = (1..=64).contains(&text.len()) && text.bytes().all(allowed);
        valid.then(|| Self(text.to_owned()))
    }
);

impl Element for ClientId {
    const EXPECTED_LIST: &'static str =
        "a list of client ids of 1 to 64 characters of A-Z a-z 0-9 _ . -";
}
