//! The path prefix under which the service is reached.

/// The path of the issuer's URL, with which all paths of the service begin; empty if the URL has no
/// path. The URL must not end with a slash.
pub fn base_of(issuer: &str) -> &str {
    let after = issuer.split_once("://").map_or("", |(_, rest)| rest);
    after.find('/').map_or("", |at| &after[at..])
}
