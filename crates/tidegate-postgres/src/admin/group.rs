//! Groups of users: roles that nobody logs in as, with users as their members.

use super::role::{self, Existing, MARK};
use super::script::{Part, Script};
use super::session::Session;
use super::{Error, Result};
use Part::{Name, Syntax};

/// What follows the tenant's name in the name of a group's role. No user's role has it, because
/// no user's name has a slash.
const INFIX: &str = "/group/";

/// What changes of groups take turns by, with the tenant's name behind it.
const TURN: &str = "tidegate groups of ";

/// Takes the lock of a tenant's groups; it is held as long as the session.
pub(super) async fn wait_for_turn(session: &Session, database: &str) -> Result<()> {
    session.wait_for_turn(&format!("{TURN}{database}")).await
}

/// Makes `role` a member of `group` and of no other group of the tenant. `group` is the name of a
/// group's role, which is made if it is not there.
pub(super) async fn set(
    session: &Session,
    database: &str,
    role: &str,
    group: Option<&str>,
) -> Result<()> {
    let mut script = Script::default();
    for other in of_member(session, database, role).await? {
        if Some(other.as_str()) != group {
            script.push(&[
                Syntax("REVOKE "),
                Name(&other),
                Syntax(" FROM "),
                Name(role),
            ]);
        }
    }
    if let Some(group) = group {
        make(session, group, &mut script).await?;
        script.append(join(session, role, group));
    }
    script.run(session).await
}

async fn make(session: &Session, group: &str, script: &mut Script) -> Result<()> {
    match role::existing(session, group).await? {
        Existing::Ours => {}
        Existing::Foreign => return Err(Error::ForeignRole(group.to_owned())),
        Existing::Nothing => script.append(create(group)),
    }
    Ok(())
}

/// The name of a group's role.
pub(super) fn role_of(database: &str, group: &str) -> String {
    format!("{database}{INFIX}{group}")
}

/// Writes the statements that make a group's role.
pub(super) fn create(group: &str) -> Script {
    let mut script = Script::default();
    script.push(&[
        Syntax("CREATE ROLE "),
        Name(group),
        Syntax(" NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS"),
    ]);
    script.append(role::mark(group));
    script
}

/// Writes the statement that makes a role a member of a group.
pub(super) fn join(session: &Session, role: &str, group: &str) -> Script {
    let mut script = Script::default();
    script.push(&[
        Syntax("GRANT "),
        Name(group),
        Syntax(" TO "),
        Name(role),
        Syntax(crate::version::group_membership(session.version)),
    ]);
    script
}

/// The roles of a tenant's groups.
pub(super) async fn of_tenant(session: &Session, database: &str) -> Result<Vec<String>> {
    let rows = session
        .client
        .query(
            "SELECT r.rolname::text FROM pg_catalog.pg_roles r \
             WHERE pg_catalog.starts_with(r.rolname::text, $1) \
               AND pg_catalog.shobj_description(r.oid, 'pg_authid') LIKE ($2::text || '%') \
             ORDER BY 1",
            &[&format!("{database}{INFIX}"), &MARK],
        )
        .await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

async fn of_member(session: &Session, database: &str, role: &str) -> Result<Vec<String>> {
    let rows = session
        .client
        .query(
            "SELECT g.rolname::text FROM pg_catalog.pg_auth_members m \
             JOIN pg_catalog.pg_roles g ON g.oid = m.roleid \
             JOIN pg_catalog.pg_roles r ON r.oid = m.member \
             WHERE r.rolname = $1 AND pg_catalog.starts_with(g.rolname::text, $2) ORDER BY 1",
            &[&role, &format!("{database}{INFIX}")],
        )
        .await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}
