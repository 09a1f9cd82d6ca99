//! Roles that anonymous callers share: the default users of tenants.

use SqlPart::{Name, Syntax, Value};
use tidegate_wire::version;

use super::Result;
use super::script::{Script, SqlPart};
use super::session::Session;

/// The limit on the temporary files of one session of a shared role. It is enough to sort about ten
/// million rows. All connections of the role together cannot fill a disk of usual size.
pub(super) const TEMP_FILE_LIMIT: &str = "1GB";

/// Selects a role's own limit on temporary files, if it has one, and whether the server has such a
/// limit.
const BOUND: &str = "SELECT ( \
        SELECT pg_catalog.split_part(c.setting, '=', 2) \
        FROM pg_catalog.pg_db_role_setting s \
        JOIN pg_catalog.pg_roles r ON r.oid = s.setrole \
        CROSS JOIN LATERAL pg_catalog.unnest(s.setconfig) AS c (setting) \
        WHERE r.rolname = $1 AND s.setdatabase = 0 \
          AND pg_catalog.starts_with(c.setting, 'temp_file_limit=')), \
    EXISTS (SELECT FROM pg_catalog.pg_settings \
            WHERE name = 'temp_file_limit' AND setting <> '-1')";

/// Sets [`TEMP_FILE_LIMIT`] if anonymous callers share the role (`shared` is `true`), and removes
/// it otherwise. Does nothing if the administrator may not change the limit, or if an operator has
/// set another limit.
pub(super) async fn limit(session: &Session, role: &str, shared: bool) -> Result<()> {
    if !may_limit(session).await? {
        return Ok(());
    }
    let row = session.client.query_one(BOUND, &[&role]).await?;
    let (own, server): (Option<String>, bool) = (row.get(0), row.get(1));
    match own.as_deref() {
        None if shared && !server => set(role).run(session).await,
        Some(TEMP_FILE_LIMIT) if !shared => {
            let mut script = Script::default();
            script.push(&[
                Syntax("ALTER ROLE "),
                Name(role),
                Syntax(" RESET temp_file_limit"),
            ]);
            script.run(session).await
        }
        _ => Ok(()),
    }
}

/// Returns the statement that sets [`TEMP_FILE_LIMIT`] for a role.
pub(super) fn set(role: &str) -> Script {
    let mut script = Script::default();
    script.push(&[
        Syntax("ALTER ROLE "),
        Name(role),
        Syntax(" SET temp_file_limit = "),
        Value(TEMP_FILE_LIMIT),
    ]);
    script
}

/// Whether the administrator may set `temp_file_limit` for roles. Superusers may set it, and since
/// PostgreSQL 15 also roles with SET on the parameter ("Resource Consumption").
async fn may_limit(session: &Session) -> Result<bool> {
    if session.superuser || !version::has_parameter_privileges(session.version) {
        return Ok(session.superuser);
    }
    let may = "SELECT pg_catalog.has_parameter_privilege('temp_file_limit', 'SET')";
    Ok(session.client.query_one(may, &[]).await?.get(0))
}
