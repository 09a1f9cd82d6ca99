//! What differs between the versions of PostgreSQL, 13 to 18.

/// PostgreSQL 14, as `server_version_num`.
const V14: u32 = 140_000;
/// PostgreSQL 17.
const V17: u32 = 170_000;

/// Settings that the startup packet may name on this version; an unknown one refuses the
/// connection.
pub(crate) fn startup_settings(version: u32) -> impl Iterator<Item = (&'static str, &'static str)> {
    let since = |introduced, name, value| (version >= introduced).then_some((name, value));
    [
        // A backend whose client is gone aborts by itself, also when this process was killed.
        since(V14, "client_connection_check_interval", "2s"),
        since(V14, "idle_session_timeout", "0"),
        since(V17, "transaction_timeout", "0"),
    ]
    .into_iter()
    .flatten()
}

/// Whether the version has multiranges.
pub(crate) fn has_multiranges(version: u32) -> bool {
    version >= V14
}
