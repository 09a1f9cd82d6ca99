//! Who reads an outbox: sessions that say so in their `application_name`. A user can choose that name
//! as well, so it counts only in sessions of roles that have the rights of the schema's owner.

/// Marks the session as one that reads.
pub(super) const MARK: &str =
    "SELECT pg_catalog.set_config('application_name', 'tidegate outbox reader', false)";

/// The sessions that read the outbox of the current database: `pid` and `client_addr`.
macro_rules! readers {
    () => {
        "SELECT a.pid, a.client_addr FROM pg_catalog.pg_stat_activity a \
         JOIN pg_catalog.pg_namespace n ON n.nspname = 'tidegate_outbox' \
         WHERE a.datname = pg_catalog.current_database() \
         AND a.application_name = 'tidegate outbox reader' \
         AND pg_catalog.pg_has_role(a.usesysid, n.nspowner, 'USAGE')"
    };
}
pub(super) use readers;

/// How many of them there are.
pub(super) const COUNT: &str = concat!("SELECT pg_catalog.count(*) FROM (", readers!(), ") r");
