//! Groups of users: roles with users as their members. If a group has members without a role of
//! their own, the group's role logs in for them (`group_login`). The roles of other groups cannot
//! log in.

use std::time::Duration;

use SqlPart::{Name, Syntax};
use tidegate_wire::version;

use super::role::{self, MARK, RoleOrigin};
use super::script::{Script, SqlPart};
use super::session::{AdvisoryLock, Session};
use super::{Error, Result};

/// The part of a group role's name that follows the tenant's name. User names have no slash, so no
/// user's role has such a name.
const INFIX: &str = "/group/";

/// The text before the tenant's name in the key of the lock for changes of groups.
const LOCK_KEY: &str = "tidegate groups of ";

/// The longest wait for the lock of a tenant's groups. It equals the `lock_timeout` of the
/// administrator's sessions. It must be short, because a client waits for the response.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// Takes the lock of a tenant's groups. The session holds the lock until it releases the lock or
/// ends.
pub(super) async fn lock(session: &Session, database: &str) -> Result<()> {
    let lock = AdvisoryLock {
        key: &format!("{LOCK_KEY}{database}"),
        others: "others change groups of this tenant",
        timeout: LOCK_TIMEOUT,
    };
    session.lock(&lock).await
}

/// Makes `role` a member of `groups` (names of group roles) and of no other group of the tenant.
/// Missing groups are created. Memberships of groups in other groups do not change.
///
/// # Errors
///
/// [`Error::RoleExists`] if Tidegate did not create one of `groups`. [`Error::StaysMember`] if
/// another role granted a membership that must end. Nothing changes after an error.
pub(super) async fn set(
    session: &Session,
    (database, role): (&str, &str),
    groups: &[&str],
) -> Result<()> {
    let mut script = Script::default();
    for other in others(session, (database, role), groups).await? {
        if other.revocable {
            script.append(other.revoke(role));
        }
    }
    for group in groups {
        make(session, group, &mut script).await?;
        script.append(join(session, (role, group), None));
    }
    session.begin().await?;
    let mut done = script.run_each(session).await;
    if done.is_ok() {
        // If REVOKE finds no membership with the grantor that it names, PostgreSQL only warns. So
        // the remaining memberships are checked.
        done = require_left(session, (database, role), groups).await;
    }
    session.end(done).await
}

/// Fails with [`Error::StaysMember`] if a role is in a group of the tenant other than `groups`.
async fn require_left(
    session: &Session,
    (database, role): (&str, &str),
    groups: &[&str],
) -> Result<()> {
    let left = others(session, (database, role), groups).await?;
    let Some(first) = left.first() else {
        return Ok(());
    };
    Err(Error::StaysMember {
        role: role.to_owned(),
        group: first.group.clone(),
        sql: left
            .iter()
            .map(|other| other.revoke(role).to_string().trim_end().to_owned())
            .collect(),
    })
}

/// If a group's role does not exist, appends to `script` the statements that create it.
pub(super) async fn make(session: &Session, group: &str, script: &mut Script) -> Result<()> {
    match role::origin(session, group).await? {
        RoleOrigin::Tidegate => {}
        RoleOrigin::Other => return Err(Error::RoleExists(group.to_owned())),
        RoleOrigin::Missing => script.append(create(group)),
    }
    Ok(())
}

/// The name of a group's role.
pub(super) fn role_of(database: &str, group: &str) -> String {
    format!("{database}{INFIX}{group}")
}

/// Returns the statements that create a group's role.
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

/// Returns the statement that makes a role a member of a group. If `grantor` is `None`, PostgreSQL
/// chooses the grantor.
pub(super) fn join(
    session: &Session,
    (role, group): (&str, &str),
    grantor: Option<&str>,
) -> Script {
    let mut parts = vec![
        Syntax("GRANT "),
        Name(group),
        Syntax(" TO "),
        Name(role),
        Syntax(version::group_membership(session.version)),
    ];
    if let Some(grantor) = grantor {
        parts.extend([Syntax(" GRANTED BY "), Name(grantor)]);
    }
    let mut script = Script::default();
    script.push(&parts);
    script
}

/// The roles of a tenant's groups that Tidegate created.
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

/// A membership of a role in a group of the tenant.
struct Membership {
    group: String,
    /// The role that granted the membership. `None` before PostgreSQL 16, because REVOKE need not
    /// name the grantor in these versions.
    grantor: Option<String>,
    /// Whether the administrator can end the membership.
    revocable: bool,
}

impl Membership {
    /// Returns the statement that ends the membership.
    fn revoke(&self, role: &str) -> Script {
        let mut parts = vec![
            Syntax("REVOKE "),
            Name(&self.group),
            Syntax(" FROM "),
            Name(role),
        ];
        if let Some(grantor) = &self.grantor {
            parts.extend([Syntax(" GRANTED BY "), Name(grantor)]);
        }
        let mut script = Script::default();
        script.push(&parts);
        script
    }
}

/// Returns the statements that end the memberships of `roles` in other roles, and of other roles in
/// `roles`. Leaves out memberships that the administrator cannot end, and memberships of the
/// administrator itself.
pub(super) async fn leave_all(session: &Session, roles: &[&str]) -> Result<Script> {
    let by_grantor = version::roles_need_admin_option(session.version);
    let rows = session
        .client
        .query(
            "SELECT g.rolname::text, r.rolname::text, b.rolname::text \
             FROM pg_catalog.pg_auth_members m \
             JOIN pg_catalog.pg_roles g ON g.oid = m.roleid \
             JOIN pg_catalog.pg_roles r ON r.oid = m.member \
             LEFT JOIN pg_catalog.pg_roles b ON b.oid = m.grantor \
             WHERE (g.rolname = ANY ($1::text[]) OR r.rolname = ANY ($1::text[])) \
               AND r.rolname NOT IN (current_user, session_user) \
               AND ($2 OR NOT g.rolsuper) \
               AND (NOT $3 OR pg_catalog.pg_has_role(g.oid, 'USAGE WITH ADMIN OPTION') \
                    AND pg_catalog.pg_has_role(m.grantor, 'USAGE')) \
             ORDER BY 1, 2, 3",
            &[&roles, &session.superuser, &by_grantor],
        )
        .await?;
    let mut script = Script::default();
    for row in &rows {
        let grantor: Option<&str> = row.get(2);
        let (group, member) = (row.get(0), row.get(1));
        let mut parts = vec![
            Syntax("REVOKE "),
            Name(group),
            Syntax(" FROM "),
            Name(member),
        ];
        if let Some(grantor) = grantor.filter(|_| by_grantor) {
            parts.extend([Syntax(" GRANTED BY "), Name(grantor)]);
        }
        parts.push(Syntax(" CASCADE"));
        script.push(&parts);
    }
    Ok(script)
}

/// The memberships of a role in groups of the tenant other than `groups`.
async fn others(
    session: &Session,
    (database, role): (&str, &str),
    groups: &[&str],
) -> Result<Vec<Membership>> {
    let by_grantor = version::roles_need_admin_option(session.version);
    let rows = session
        .client
        .query(
            "SELECT g.rolname::text, b.rolname::text, \
                    pg_catalog.pg_has_role(g.oid, 'USAGE WITH ADMIN OPTION') \
                    AND pg_catalog.pg_has_role(m.grantor, 'USAGE') \
             FROM pg_catalog.pg_auth_members m \
             JOIN pg_catalog.pg_roles g ON g.oid = m.roleid \
             JOIN pg_catalog.pg_roles r ON r.oid = m.member \
             LEFT JOIN pg_catalog.pg_roles b ON b.oid = m.grantor \
             WHERE r.rolname = $1 AND pg_catalog.starts_with(g.rolname::text, $2) \
               AND g.rolname::text <> ALL ($3::text[]) ORDER BY 1, 2",
            &[&role, &format!("{database}{INFIX}"), &groups],
        )
        .await?;
    let membership = |row: &tokio_postgres::Row| Membership {
        group: row.get(0),
        grantor: by_grantor.then(|| row.get(1)).flatten(),
        revocable: !by_grantor || row.get(2),
    };
    Ok(rows.iter().map(membership).collect())
}
