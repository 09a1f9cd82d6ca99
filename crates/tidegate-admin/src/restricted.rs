//! Built-in functions that can harm other users and that PUBLIC may call by default.

use SqlPart::{Name, Quoted, Syntax};

use super::Result;
use super::script::{Script, SqlPart, list};
use super::session::Session;

/// Selects functions that are dangerous even if the caller has no privileges on tables, and whether
/// PUBLIC may call each. Large objects and messages in the WAL can fill the disk. Advisory locks
/// can fill the lock table that all databases of the cluster share. Callers who share a role could
/// terminate each other's sessions. Functions that release locks are not included, because they do
/// no harm.
const RESTRICTED: &str = "SELECT p.oid::pg_catalog.regprocedure::text, \
           pg_catalog.has_function_privilege('public', p.oid, 'EXECUTE') \
    FROM pg_catalog.pg_proc p \
    WHERE p.pronamespace = 'pg_catalog'::pg_catalog.regnamespace AND (p.proname IN \
        ('lo_creat', 'lo_create', 'lo_from_bytea', 'pg_logical_emit_message', \
         'pg_cancel_backend', 'pg_terminate_backend') \
        OR p.proname ~ '^pg_(try_)?advisory_(xact_)?lock(_shared)?$') ORDER BY 1";

/// Revokes the functions of [`RESTRICTED`] from PUBLIC, and grants them to `owner` with GRANT
/// OPTION. Does nothing unless the administrator is a superuser.
pub(super) async fn restrict(session: &Session, owner: &str) -> Result<()> {
    if !session.superuser {
        return Ok(());
    }
    let rows = session.client.query(RESTRICTED, &[]).await?;
    let functions: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    script(&functions, Some(owner), &[]).run(session).await
}

/// The functions of [`RESTRICTED`] that PUBLIC may call in the session's database.
pub(super) async fn open_to_all(session: &Session) -> Result<Vec<String>> {
    let rows = session.client.query(RESTRICTED, &[]).await?;
    let open = rows.iter().filter(|row| row.get(1));
    Ok(open.map(|row| row.get(0)).collect())
}

/// Returns the statements that revoke functions from PUBLIC and grant them to the tenant's owner,
/// with GRANT OPTION, and to `service`, the service's own logins. If `owner` is `None`, grants them
/// only to `service`.
pub(super) fn script(functions: &[String], owner: Option<&str>, service: &[&str]) -> Script {
    let mut script = Script::default();
    let on = list(functions.iter().map(|function| Quoted(function)));
    let mut revoke = vec![Syntax("REVOKE EXECUTE ON FUNCTION ")];
    revoke.extend(&on);
    revoke.push(Syntax(" FROM PUBLIC"));
    script.push(&revoke);
    if let Some(role) = owner {
        grant(&mut script, &on, role, " WITH GRANT OPTION");
    }
    for role in service {
        grant(&mut script, &on, role, "");
    }
    script
}

fn grant(script: &mut Script, on: &[SqlPart<'_>], role: &str, option: &'static str) {
    let mut parts = vec![Syntax("GRANT EXECUTE ON FUNCTION ")];
    parts.extend(on);
    parts.extend([Syntax(" TO "), Name(role), Syntax(option)]);
    script.push(&parts);
}
