//! The login roles of users: looks them up, creates them, and checks what they own.

use SqlPart::{Name, Secret, Syntax, Value};

use super::script::{Script, SqlPart};
use super::session::Session;
use super::{Error, Result, RolePasswords};

pub(super) use tidegate_service::ROLE_MARK as MARK;

/// Whether a role exists, and who created it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RoleOrigin {
    /// The role does not exist.
    Missing,
    /// Tidegate created it.
    Tidegate,
    /// Tidegate did not create it.
    Other,
}

/// Looks up whether a role exists, and who created it.
pub(super) async fn origin(session: &Session, role: &str) -> Result<RoleOrigin> {
    let found = origins(session, &[role]).await?;
    Ok(found.first().copied().unwrap_or(RoleOrigin::Missing))
}

/// Looks up the origins of several roles. The results are in the order of `roles`.
pub(super) async fn origins(session: &Session, roles: &[&str]) -> Result<Vec<RoleOrigin>> {
    let rows = session
        .client
        .query(
            "SELECT r.oid IS NOT NULL, coalesce(pg_catalog.starts_with( \
                 pg_catalog.shobj_description(r.oid, 'pg_authid'), $2), false) \
             FROM pg_catalog.unnest($1::text[]) WITH ORDINALITY AS k (name, place) \
             LEFT JOIN pg_catalog.pg_roles r ON r.rolname = k.name ORDER BY k.place",
            &[&roles, &MARK],
        )
        .await?;
    let origin = |row: &tokio_postgres::Row| match (row.get(0), row.get(1)) {
        (false, _) => RoleOrigin::Missing,
        (true, true) => RoleOrigin::Tidegate,
        (true, false) => RoleOrigin::Other,
    };
    Ok(rows.iter().map(origin).collect())
}

/// Returns the statements that create a login role. If Tidegate has already created the role, for
/// example in an attempt that failed, returns the statement that sets its password. Fails with
/// [`Error::RoleExists`] if Tidegate did not create the role.
pub(super) async fn make(
    session: &Session,
    role: &str,
    passwords: &RolePasswords,
) -> Result<Script> {
    let mut script = Script::default();
    let verifier = passwords.verifier(role);
    match origin(session, role).await? {
        RoleOrigin::Other => return Err(Error::RoleExists(role.to_owned())),
        RoleOrigin::Tidegate => script.append(password(role, &verifier)),
        RoleOrigin::Missing => script.append(create(role, Some(&verifier))),
    }
    Ok(script)
}

/// Returns the statements that create a login role. Without a verifier the role has no password
/// until `tidegate user repair` sets it.
pub(super) fn create(role: &str, verifier: Option<&str>) -> Script {
    let mut parts = vec![
        Syntax("CREATE ROLE "),
        Name(role),
        Syntax(" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS"),
    ];
    if let Some(verifier) = verifier {
        parts.extend([Syntax(" PASSWORD "), Secret(verifier)]);
    }
    let mut script = Script::default();
    script.push(&parts);
    script.append(mark(role));
    script
}

/// Returns the statement that marks a role as created by Tidegate.
pub(super) fn mark(role: &str) -> Script {
    let mut script = Script::default();
    script.push(&[
        Syntax("COMMENT ON ROLE "),
        Name(role),
        Syntax(" IS "),
        Value(MARK),
    ]);
    script
}

/// Returns the statement that sets a role's password, given as its verifier.
pub(super) fn password(role: &str, verifier: &str) -> Script {
    let mut script = Script::default();
    script.push(&[
        Syntax("ALTER ROLE "),
        Name(role),
        Syntax(" PASSWORD "),
        Secret(verifier),
    ]);
    script
}

/// Terminates the sessions of a role in all databases. `home` is in the administrator's own
/// database, because a tenant's database may allow only the owner to call `pg_terminate_backend`.
pub(super) async fn end_sessions(home: &Session, role: &str) -> Result<()> {
    let ended = home
        .client
        .execute(
            "SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity \
             WHERE usename = $1",
            &[&role],
        )
        .await?;
    if ended > 0 {
        tracing::debug!(role, ended, "ended the role's sessions");
    }
    Ok(())
}

/// Fails if a role owns something in the session's database.
pub(super) async fn require_nothing_owned(session: &Session, role: &str) -> Result<()> {
    match owned(session, role).await? {
        None => Ok(()),
        Some((count, example)) => Err(Error::OwnsObjects {
            role: role.to_owned(),
            count,
            example,
        }),
    }
}

/// The privileges and objects outside of a tenant's database that prevent dropping a role.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OutsideDatabase {
    /// Privileges and objects in other databases, and shared objects that the role owns, such as
    /// databases.
    InDatabases,
    /// The same as `InDatabases`, and also privileges on shared objects. Used where `DROP OWNED`,
    /// which would revoke such privileges, does not run.
    Shared,
}

/// Fails with [`Error::UsedElsewhere`] if one of `roles` has privileges or objects outside of
/// `database`. Roles that Tidegate did not create are not checked. `elsewhere` selects the
/// privileges and objects that count.
pub(super) async fn require_nothing_outside(
    session: &Session,
    roles: &[&str],
    database: &str,
    elsewhere: OutsideDatabase,
) -> Result<()> {
    let shared = elsewhere == OutsideDatabase::Shared;
    let found = session
        .client
        .query_opt(
            "SELECT r.rolname::text, pg_catalog.array_agg(DISTINCT coalesce(b.datname::text, \
                 pg_catalog.pg_describe_object(d.classid, d.objid, d.objsubid))) \
             FROM pg_catalog.pg_shdepend d \
             JOIN pg_catalog.pg_roles r ON d.refobjid = r.oid \
             LEFT JOIN pg_catalog.pg_database b ON b.oid = CASE \
                 WHEN d.dbid <> 0 THEN d.dbid \
                 WHEN d.classid = 'pg_catalog.pg_database'::pg_catalog.regclass THEN d.objid END \
             WHERE d.refclassid = 'pg_catalog.pg_authid'::pg_catalog.regclass \
               AND r.rolname = ANY ($1) AND b.datname IS DISTINCT FROM $2 \
               AND d.classid <> 'pg_catalog.pg_auth_members'::pg_catalog.regclass \
               AND (d.dbid <> 0 OR d.deptype = 'o' OR $4) \
               AND pg_catalog.starts_with( \
                   pg_catalog.shobj_description(r.oid, 'pg_authid'), $3) \
             GROUP BY r.rolname ORDER BY r.rolname LIMIT 1",
            &[&roles, &database, &MARK, &shared],
        )
        .await?;
    match found {
        None => Ok(()),
        Some(row) => Err(Error::UsedElsewhere {
            role: row.get(0),
            places: row.get(1),
        }),
    }
}

/// The number of objects that a role owns in the session's database, and the description of one of
/// them; `None` if the role owns none.
async fn owned(session: &Session, role: &str) -> Result<Option<(i64, String)>> {
    let row = session
        .client
        .query_one(
            "SELECT pg_catalog.count(*), \
                    pg_catalog.min(pg_catalog.pg_describe_object(d.classid, d.objid, d.objsubid)) \
             FROM pg_catalog.pg_shdepend d \
             JOIN pg_catalog.pg_roles r ON d.refobjid = r.oid \
             JOIN pg_catalog.pg_database b ON b.oid = d.dbid \
             WHERE d.deptype = 'o' AND d.refclassid = 'pg_catalog.pg_authid'::pg_catalog.regclass \
               AND r.rolname = $1 AND b.datname = pg_catalog.current_database()",
            &[&role],
        )
        .await?;
    let example: Option<String> = row.get(1);
    Ok(example.map(|example| (row.get(0), example)))
}
