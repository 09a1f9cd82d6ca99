//! The readers of an outbox: sessions with a certain `application_name`. A user can give its
//! session such a name, so only sessions of roles with the privileges of the schema's owner count.

/// Marks the session as a reader. `$1` is its name ([`name`]).
pub(super) const MARK: &str = "SELECT pg_catalog.set_config('application_name', $1::text, false)";

/// The `application_name` of a reader of the node with this id.
pub(super) fn name(node: Option<u32>) -> String {
    match node {
        Some(node) => format!("tidegate outbox reader {node:08x}"),
        None => "tidegate outbox reader".to_owned(),
    }
}

/// Selects the sessions that read the outbox of the current database: `pid` and `client_addr`.
macro_rules! readers {
    () => {
        "SELECT a.pid, a.client_addr FROM pg_catalog.pg_stat_activity a \
         JOIN pg_catalog.pg_namespace n ON n.nspname = 'tidegate_outbox' \
         WHERE a.datname = pg_catalog.current_database() \
         AND pg_catalog.starts_with(a.application_name, 'tidegate outbox reader') \
         AND pg_catalog.pg_has_role(a.usesysid, n.nspowner, 'USAGE')"
    };
}
pub(super) use readers;

/// Selects the number of sessions that read the outbox of the current database.
pub(super) const COUNT: &str = concat!("SELECT pg_catalog.count(*) FROM (", readers!(), ") r");
