//! The role of all users of a tenant, `database/$users`. The role has CONNECT on the database and
//! USAGE on the schema `public`, and every user except the owner is a member.
//!
//! PostgreSQL reads an object's list of privileges from the start for every check (`aclmask` in its
//! `acl.c`). If the list had an entry for each of 10,000 users, every request would read the long
//! list. Every sign-up would rewrite the lists of the database and the schema and make all sessions
//! plan their statements again. Memberships have neither effect.
//!
//! The role cannot log in. The service grants it no privileges besides CONNECT and USAGE. If the
//! tenant's owner grants it other privileges, all users get them.

use std::time::Duration;

use SqlPart::{Name, Syntax};
use tidegate_wire::version;

use super::role::{self, MARK, RoleOrigin};
use super::script::{Script, SqlPart, list};
use super::session::{self, AdvisoryLock, Session};
use super::{Admin, Error, Result, authenticator, group};

/// The suffix of the name of the role of all users; the tenant's name precedes it. It has a `$`,
/// which names of users cannot have, so this role never has the name of a user's role.
const SUFFIX: &str = "/$users";

/// The maximum length of a role's name in bytes.
const MAX_NAME_BYTES: usize = 63;

/// The longest wait for the lock that [`provide`] takes. It equals the `lock_timeout` of the
/// administrator's sessions.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// The number of users whose grants one transaction revokes. For each user PostgreSQL reads all
/// dependencies of the database and of the schema `public`, which takes 3 ms with 10,000 users.
/// Other changes of the database's privileges wait for this transaction.
const REVOKE_BATCH: usize = 500;

/// The name of the role of a tenant's users; `None` if the tenant's name is too long. The users of
/// such a tenant have grants of their own.
pub(super) fn name(database: &str) -> Option<String> {
    let name = format!("{database}{SUFFIX}");
    (name.len() <= MAX_NAME_BYTES).then_some(name)
}

/// The name of the role of a tenant's users; `None` if the role does not exist or Tidegate did not
/// create it.
pub(super) async fn of_tenant(session: &Session, database: &str) -> Result<Option<String>> {
    let Some(role) = name(database) else {
        return Ok(None);
    };
    let there = role::origin(session, &role).await? == RoleOrigin::Tidegate;
    Ok(there.then_some(role))
}

/// Returns the statements that create the role of all users, whose name is `role`; an empty script
/// if Tidegate has already created it.
///
/// # Errors
///
/// [`Error::RoleExists`].
pub(super) async fn make(session: &Session, role: &str) -> Result<Script> {
    match role::origin(session, role).await? {
        RoleOrigin::Tidegate => Ok(Script::default()),
        RoleOrigin::Other => Err(Error::RoleExists(role.to_owned())),
        RoleOrigin::Missing => Ok(group::create(role)),
    }
}

pub(super) fn grant_connect(database: &str, role: &str) -> Script {
    let mut script = Script::default();
    script.push(&[
        Syntax("GRANT CONNECT ON DATABASE "),
        Name(database),
        Syntax(" TO "),
        Name(role),
    ]);
    script
}

/// Returns the statement that grants a role USAGE on the schema `public`.
pub(super) fn grant_usage(role: &str) -> Script {
    let mut script = Script::default();
    script.push(&[Syntax("GRANT USAGE ON SCHEMA public TO "), Name(role)]);
    script
}

/// Returns the statement that makes users members of `role`, the role of all users.
pub(super) fn join(session: &Session, role: &str, users: &[&str]) -> Script {
    let mut parts = vec![Syntax("GRANT "), Name(role), Syntax(" TO ")];
    parts.extend(list(users.iter().map(|user| Name(user))));
    parts.push(Syntax(version::group_membership(session.version)));
    let mut script = Script::default();
    script.push(&parts);
    script
}

/// Creates the role of all users, with its privileges, if it is missing. If it exists, its
/// privileges do not change. Older releases granted these privileges to each user. Such users
/// become members of the role, and their own grants are revoked. Users with other privileges do not
/// change, for example a user from whom CONNECT was revoked. Does nothing if the tenant's name is
/// too long for the role. `session` is in the tenant's database.
///
/// # Errors
///
/// [`Error::RoleExists`], [`Error::Busy`].
pub(super) async fn provide(admin: &Admin, session: &Session, database: &str) -> Result<()> {
    let Some(role) = name(database) else {
        return Ok(());
    };
    let lock = AdvisoryLock {
        key: &format!("tidegate users of {database}"),
        others: "others make the role of this tenant's users",
        timeout: LOCK_TIMEOUT,
    };
    // The lock is taken in the administrator's database. In the tenant's database users could hold
    // the same lock for as long as they like.
    let home = admin.open_admin_database().await?;
    home.lock(&lock).await?;
    session::retry_on_conflict(|| provide_once(session, database, &role)).await
}

async fn provide_once(session: &Session, database: &str, role: &str) -> Result<()> {
    let public = session.owner_of_public().await?;
    let new = make(session, role).await?;
    if !new.is_empty() {
        let mut script = authenticator::provisioning_script();
        script.append(new);
        script.append(grant_connect(database, role));
        if let Some(public) = &public {
            script.append(
                session
                    .with_privileges_of(public, grant_usage(role))
                    .await?,
            );
        }
        script.run(session).await?;
    }
    let rows = session
        .client
        .query(WITH_OWN_GRANTS, &[&database, &MARK, &role])
        .await?;
    if rows.is_empty() {
        return Ok(());
    }
    let users: Vec<&str> = rows.iter().map(|row| row.get(0)).collect();
    for users in users.chunks(REVOKE_BATCH) {
        let mut script = authenticator::provisioning_script();
        script.append(join(session, role, users));
        script.append(revoke_own(session, (database, public.as_deref()), users).await?);
        script.run(session).await?;
    }
    tracing::info!(
        database,
        role,
        users = users.len(),
        "users connect as members of one role; their own grants of CONNECT and USAGE are revoked"
    );
    Ok(())
}

/// Returns the statements that revoke CONNECT on the database and USAGE on the schema `public` from
/// each of `users`.
async fn revoke_own(
    session: &Session,
    (database, owner_of_public): (&str, Option<&str>),
    users: &[&str],
) -> Result<Script> {
    let names = list(users.iter().map(|user| Name(user)));
    let mut connect = vec![
        Syntax("REVOKE CONNECT ON DATABASE "),
        Name(database),
        Syntax(" FROM "),
    ];
    connect.extend(&names);
    let mut script = Script::default();
    script.push(&connect);
    if let Some(owner) = owner_of_public {
        let mut usage = vec![Syntax("REVOKE USAGE ON SCHEMA public FROM ")];
        usage.extend(&names);
        let mut inner = Script::default();
        inner.push(&usage);
        script.append(session.with_privileges_of(owner, inner).await?);
    }
    Ok(script)
}

/// Selects the users of the tenant `$1` whose own grants equal the privileges of the role `$3`:
/// CONNECT on the database, and USAGE on the schema `public` if and only if the role `$3` has it.
/// Grants with GRANT OPTION do not count, because the service does not make such grants. `$2` is
/// the comment that marks Tidegate's roles. Before PostgreSQL 16, roles with NOINHERIT are left
/// out, because they would get no privileges from a membership. Without `IS TRUE` PostgreSQL would
/// plan a join, and the statement would take minutes with 10,000 users.
pub(super) const WITH_OWN_GRANTS: &str = "WITH connect AS MATERIALIZED ( \
        SELECT DISTINCT a.grantee FROM pg_catalog.pg_database d \
        CROSS JOIN LATERAL pg_catalog.aclexplode( \
            coalesce(d.datacl, pg_catalog.acldefault('d', d.datdba)) || '{}') a \
        WHERE d.datname = $1 AND a.privilege_type = 'CONNECT' AND NOT a.is_grantable \
    ), usage AS MATERIALIZED ( \
        SELECT DISTINCT a.grantee FROM pg_catalog.pg_namespace n \
        CROSS JOIN LATERAL pg_catalog.aclexplode( \
            coalesce(n.nspacl, pg_catalog.acldefault('n', n.nspowner)) || '{}') a \
        WHERE n.nspname = 'public' AND a.privilege_type = 'USAGE' AND NOT a.is_grantable \
    ), given AS ( \
        SELECT r.oid IN (SELECT u.grantee FROM usage u) AS uses FROM pg_catalog.pg_roles r \
        WHERE r.rolname = $3::text::name AND r.oid IN (SELECT c.grantee FROM connect c) \
    ) \
    SELECT r.rolname::text FROM pg_catalog.pg_roles r CROSS JOIN given g \
    WHERE pg_catalog.starts_with(r.rolname::text, $1 || '/') \
      AND pg_catalog.substr(r.rolname::text, pg_catalog.length($1) + 2) !~ '[/$]' \
      AND (r.oid IN (SELECT c.grantee FROM connect c)) IS TRUE \
      AND (r.oid IN (SELECT u.grantee FROM usage u)) = g.uses \
      AND (r.rolinherit OR pg_catalog.current_setting('server_version_num')::int >= 160000) \
      AND pg_catalog.starts_with(pg_catalog.shobj_description(r.oid, 'pg_authid'), $2) \
    ORDER BY 1";
