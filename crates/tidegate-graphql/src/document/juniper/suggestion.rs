//! Suggests the field that the client may have meant by an unknown name.

use crate::definition::Types;

/// The name of an existing field that resembles the unknown field in juniper's message. The two
/// names differ only in upper and lower case, in underscores, or in a prefix `get` of the existing
/// name. `None` if there is no such field, or if the message is about something else.
pub(super) fn suggestion(types: &Types, message: &str) -> Option<String> {
    let names = message
        .strip_prefix("Unknown field \"")?
        .strip_suffix('"')?;
    let (unknown, r#type) = names.split_once("\" on type \"")?;
    let unknown = plain(unknown);
    let mut fields = types.find(r#type)?.fields();
    let meant = fields.find(|field| {
        let known = plain(&field.name);
        known == unknown || known.strip_prefix("get") == Some(&*unknown)
    });
    meant.map(|field| field.name.into_owned())
}

/// A name in lower case and without underscores.
fn plain(name: &str) -> String {
    name.replace('_', "").to_lowercase()
}
