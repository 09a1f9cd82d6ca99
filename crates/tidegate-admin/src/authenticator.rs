//! Authenticators: the login roles of the connections that a tenant's users share.
//!
//! An authenticator has no privileges except CONNECT on the database and SELECT on the table of
//! objections to sharing. It is a member of the roles of the tenant's users, except the owner and
//! the default user. A connection for one of these two logs in as the role of that user.

use std::collections::BTreeMap;
use std::time::Duration;

use SqlPart::{Name, Syntax};
use tidegate_wire::version;

use super::role::{self, MARK};
use super::script::{Script, SqlPart, list};
use super::session::{self, AdvisoryLock, Session};
use super::{Admin, Result, RolePasswords};

/// The part of an authenticator's name that follows the tenant's name. User names have no `$`, so
/// no user's role has such a name.
pub(super) const INFIX: &str = "/$authenticator";

/// The maximum number of users of one authenticator. Every change of any role invalidates
/// PostgreSQL's cache of memberships. The next role switch on each connection rebuilds the cache in
/// quadratic time (PostgreSQL 15):
///
/// | users | time |
/// |---|---|
/// | 250 | 0.4 ms |
/// | 500 | 1.2 ms |
/// | 1,000 | 4.2 ms |
pub(super) const MAX_MEMBERS: usize = 500;

/// The attributes of an authenticator, as SQL that follows `ALTER ROLE` and the name of the role.
pub(super) const ATTRIBUTES: &str = " LOGIN NOINHERIT CONNECTION LIMIT -1 VALID UNTIL 'infinity'";

/// The maximum length of a role's name in bytes.
const MAX_NAME_BYTES: usize = 63;

/// The longest wait for the lock under which authenticators are assigned. It equals the
/// `lock_timeout` of the administrator's sessions.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// Says which users of a tenant get an authenticator.
pub(super) struct Users<'a> {
    pub(super) database: &'a str,
    /// The owner's role. A user that is a member of this role gets no authenticator. If `None`,
    /// this is not checked.
    pub(super) owner: Option<&'a str>,
    /// The roles that anonymous callers share. They get no authenticator.
    pub(super) shared: &'a [String],
    /// The only user that gets an authenticator; `None` for all users.
    pub(super) only: Option<&'a str>,
}

/// Selects the users without an authenticator, except users that are members, directly or
/// indirectly, of a role with more privileges than a user. The parameters are the tenant's name,
/// [`MARK`], the [`prefix`] of authenticators, and `shared`, `owner` and `only` of [`Users`].
pub(super) const UNASSIGNED: &str = "WITH RECURSIVE usr AS ( \
        SELECT r.oid, r.rolname FROM pg_catalog.pg_roles r \
        WHERE pg_catalog.starts_with(r.rolname::text, $1 || '/') \
          AND pg_catalog.substr(r.rolname::text, pg_catalog.length($1) + 2) !~ '[/$]' \
          AND pg_catalog.starts_with(pg_catalog.shobj_description(r.oid, 'pg_authid'), $2) \
          AND r.rolname::text <> ALL ($4::text[]) AND coalesce(r.rolname::text = $6, true) \
    ), up (usr, role) AS ( \
        SELECT u.oid, u.oid FROM usr u \
        UNION \
        SELECT up.usr, m.roleid FROM up JOIN pg_catalog.pg_auth_members m ON m.member = up.role \
    ) \
    SELECT u.rolname::text FROM usr u WHERE NOT EXISTS ( \
        SELECT FROM up JOIN pg_catalog.pg_roles r ON r.oid = up.role \
        WHERE up.usr = u.oid AND (r.rolsuper OR r.rolcreaterole OR r.rolcreatedb \
            OR r.rolreplication OR r.rolbypassrls OR r.rolname LIKE 'pg\\_%' \
            OR r.rolname::text = $5 OR r.oid IN (SELECT d.datdba FROM pg_catalog.pg_database d))) \
    AND NOT EXISTS ( \
        SELECT FROM pg_catalog.pg_auth_members m JOIN pg_catalog.pg_roles a ON a.oid = m.member \
        WHERE m.roleid = u.oid AND pg_catalog.starts_with(a.rolname::text, $3)) \
    ORDER BY 1";

/// Selects a tenant's authenticators that Tidegate created: the name, the number of users, and
/// whether attributes, settings and privileges are as the service sets them.
pub(super) const LIST: &str = "SELECT a.rolname::text, pg_catalog.count(DISTINCT m.roleid), \
        a.rolcanlogin AND NOT a.rolinherit AND a.rolconnlimit <> 0 \
        AND coalesce(a.rolvaliduntil, 'infinity') = 'infinity' \
        AND NOT EXISTS (SELECT FROM pg_catalog.pg_db_role_setting s \
            JOIN pg_catalog.pg_database d ON s.setdatabase IN (0, d.oid) \
            WHERE s.setrole = a.oid AND d.datname = pg_catalog.current_database()) \
        AND pg_catalog.has_database_privilege(a.oid, pg_catalog.current_database(), 'CONNECT') \
        AND pg_catalog.has_schema_privilege(a.oid, 'tidegate_catalog', 'USAGE') \
        AND pg_catalog.has_table_privilege(a.oid, 'tidegate_catalog.objections', 'SELECT') \
    FROM pg_catalog.pg_roles a LEFT JOIN pg_catalog.pg_auth_members m ON m.member = a.oid \
    WHERE pg_catalog.starts_with(a.rolname::text, $1) \
      AND pg_catalog.starts_with(pg_catalog.shobj_description(a.oid, 'pg_authid'), $2) \
    GROUP BY a.oid, a.rolname, a.rolcanlogin, a.rolinherit, a.rolconnlimit, a.rolvaliduntil";

/// The names of a tenant's authenticators that Tidegate created.
pub(super) async fn of_tenant(session: &Session, database: &str) -> Result<Vec<String>> {
    let rows = session
        .client
        .query(
            "SELECT r.rolname::text FROM pg_catalog.pg_roles r \
             WHERE pg_catalog.starts_with(r.rolname::text, $1) \
               AND pg_catalog.starts_with(pg_catalog.shobj_description(r.oid, 'pg_authid'), $2) \
             ORDER BY 1",
            &[&prefix(database), &MARK],
        )
        .await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// The start of the names of a tenant's authenticators. A number follows it.
pub(super) fn prefix(database: &str) -> String {
    format!("{database}{INFIX}")
}

/// The authenticator that has room for a new user, or the reason why there is none.
pub(super) enum AuthenticatorRoom {
    /// The name of an authenticator with room.
    In(String),
    /// All existing authenticators are full.
    Full,
    /// The tenant has no authenticators, or the administrator cannot assign them.
    None,
}

/// Finds an authenticator with room for a new user. An administrator that is not a superuser
/// assigns no authenticators, and gets [`AuthenticatorRoom::None`].
pub(super) async fn find_room(session: &Session, database: &str) -> Result<AuthenticatorRoom> {
    if !session.superuser {
        return Ok(AuthenticatorRoom::None);
    }
    let prefix = prefix(database);
    // All names that start with `prefix` sort before this name. With the two bounds, PostgreSQL can
    // use the index on names.
    let end = format!("{database}{}", INFIX.replace("tor", "tos"));
    let rows = session
        .client
        .query(FEWEST_MEMBERS, &[&prefix, &end, &MARK])
        .await?;
    let max = i64::try_from(MAX_MEMBERS).unwrap_or(i64::MAX);
    Ok(match rows.first() {
        None => AuthenticatorRoom::None,
        Some(row) if row.get::<_, i64>(1) < max => AuthenticatorRoom::In(row.get(0)),
        Some(_) => AuthenticatorRoom::Full,
    })
}

/// Selects the authenticator with the fewest members among those with names between `$1` and `$2`.
const FEWEST_MEMBERS: &str = "SELECT a.rolname::text, \
        (SELECT pg_catalog.count(*) FROM pg_catalog.pg_auth_members m WHERE m.member = a.oid) \
    FROM pg_catalog.pg_roles a \
    WHERE a.rolname >= $1::text::name AND a.rolname < $2::text::name \
      AND pg_catalog.starts_with(pg_catalog.shobj_description(a.oid, 'pg_authid'), $3) \
    ORDER BY 2 LIMIT 1";

/// Creates the event trigger that records objections to sharing. Creates the authenticators of a
/// tenant, and assigns an authenticator to every user who may have one. Does nothing if the event
/// trigger cannot be created, because without it connections are never shared. `session` is in the
/// tenant's database.
pub(super) async fn provide(admin: &Admin, session: &Session, users: &Users<'_>) -> Result<()> {
    if !session.superuser || !tidegate_service::install_event_trigger(&session.client).await? {
        return Ok(());
    }
    assign_in(admin, session, users).await
}

/// Assigns an authenticator to every user who may have one, and creates authenticators if the
/// existing ones are full. Does nothing if the tenant's users cannot share connections.
pub(super) async fn assign(admin: &Admin, users: &Users<'_>) -> Result<()> {
    let session = admin.open(users.database).await?;
    assign_in(admin, &session, users).await
}

async fn assign_in(admin: &Admin, session: &Session, users: &Users<'_>) -> Result<()> {
    if !session.superuser || !is_prepared(session).await? {
        return Ok(());
    }
    let lock = AdvisoryLock {
        key: &format!("tidegate authenticators of {}", users.database),
        others: "others change authenticators of this tenant",
        timeout: LOCK_TIMEOUT,
    };
    // The lock is taken in the administrator's database. In the tenant's database users could hold
    // the same lock for as long as they like.
    let home = admin.open_admin_database().await?;
    home.lock(&lock).await?;
    session::retry_on_conflict(|| assign_all(session, users, &admin.passwords)).await
}

/// Whether the database has the table of objections. Without this table no connection is shared.
pub(super) async fn is_prepared(session: &Session) -> Result<bool> {
    let query = "SELECT pg_catalog.to_regclass('tidegate_catalog.objections') IS NOT NULL";
    Ok(session.client.query_one(query, &[]).await?.get(0))
}

async fn assign_all(session: &Session, users: &Users<'_>, passwords: &RolePasswords) -> Result<()> {
    let prefix = prefix(users.database);
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 6] = [
        &users.database,
        &MARK,
        &prefix,
        &users.shared,
        &users.owner,
        &users.only,
    ];
    let rows = session.client.query(UNASSIGNED, &values).await?;
    let mut waiting: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let found = session.client.query(LIST, &[&prefix, &MARK]).await?;
    let mut script = provisioning_script();
    let mut authenticators = BTreeMap::new();
    for row in &found {
        let (name, members, is_current): (String, i64, bool) = (row.get(0), row.get(1), row.get(2));
        if !is_current {
            script.append(grant_privileges(users.database, &name));
        }
        authenticators.insert(name, usize::try_from(members).unwrap_or(MAX_MEMBERS));
    }
    let changes = found.iter().any(|row| !row.get::<_, bool>(2));
    if waiting.is_empty() && !authenticators.is_empty() && !changes {
        return Ok(());
    }
    for (name, members) in &authenticators {
        let free = MAX_MEMBERS.saturating_sub(*members).min(waiting.len());
        let rest = waiting.split_off(free);
        script.append(join(session, name, &waiting));
        waiting = rest;
    }
    let mut number = 0;
    while !waiting.is_empty() || authenticators.is_empty() {
        let Some(name) = next(session, &prefix, &mut number).await? else {
            // The database's name is too long to be a part of an authenticator's name.
            break;
        };
        script.append(role::make(session, &name, passwords).await?);
        script.append(grant_privileges(users.database, &name));
        let rest = waiting.split_off(MAX_MEMBERS.min(waiting.len()));
        script.append(join(session, &name, &waiting));
        waiting = rest;
        authenticators.insert(name, 0);
    }
    script.run(session).await
}

/// Increments `number` until no role has the name `prefix` followed by `number`, and returns that
/// name; `None` if the name becomes too long.
async fn next(session: &Session, prefix: &str, number: &mut u32) -> Result<Option<String>> {
    loop {
        *number += 1;
        let name = format!("{prefix}{number}");
        if name.len() > MAX_NAME_BYTES {
            return Ok(None);
        }
        if role::origin(session, &name).await? == role::RoleOrigin::Missing {
            return Ok(Some(name));
        }
    }
}

/// Returns a script that sets `tidegate.provisioning`. With this setting, the event trigger records
/// no objections to sharing for the grants that follow. The event trigger accepts the setting from
/// superusers only.
pub(super) fn provisioning_script() -> Script {
    let mut script = Script::default();
    script.push(&[Syntax("SET LOCAL tidegate.provisioning = 'on'")]);
    script
}

/// Returns the statements that set an authenticator's attributes, remove its settings, and grant
/// its privileges.
fn grant_privileges(database: &str, name: &str) -> Script {
    let mut script = Script::default();
    for what in [ATTRIBUTES, " RESET ALL"] {
        script.push(&[Syntax("ALTER ROLE "), Name(name), Syntax(what)]);
    }
    script.push(&[
        Syntax("ALTER ROLE "),
        Name(name),
        Syntax(" IN DATABASE "),
        Name(database),
        Syntax(" RESET ALL"),
    ]);
    for (what, on) in [
        ("GRANT CONNECT ON DATABASE ", Some(database)),
        ("GRANT USAGE ON SCHEMA tidegate_catalog", None),
        ("GRANT SELECT ON TABLE tidegate_catalog.objections", None),
    ] {
        let mut parts = vec![Syntax(what)];
        parts.extend(on.map(Name));
        parts.extend([Syntax(" TO "), Name(name)]);
        script.push(&parts);
    }
    script
}

/// Returns the statement that makes an authenticator a member of the users' roles; an empty script
/// if `users` is empty.
pub(super) fn join(session: &Session, authenticator: &str, users: &[String]) -> Script {
    let mut script = Script::default();
    if users.is_empty() {
        return script;
    }
    let mut parts = vec![Syntax("GRANT ")];
    parts.extend(list(users.iter().map(|user| Name(user))));
    parts.extend([Syntax(" TO "), Name(authenticator)]);
    parts.push(Syntax(version::switch_membership(session.version)));
    script.push(&parts);
    script
}

/// Ends the memberships of a tenant's authenticators in the role of a user, so that they can no
/// longer switch to this role.
pub(super) async fn unassign(session: &Session, (database, role): (&str, &str)) -> Result<()> {
    let rows = session
        .client
        .query(
            "SELECT DISTINCT a.rolname::text FROM pg_catalog.pg_auth_members m \
             JOIN pg_catalog.pg_roles a ON a.oid = m.member \
             JOIN pg_catalog.pg_roles u ON u.oid = m.roleid \
             WHERE u.rolname = $1 AND pg_catalog.starts_with(a.rolname::text, $2)",
            &[&role, &prefix(database)],
        )
        .await?;
    let mut script = Script::default();
    for row in &rows {
        let parts = [
            Syntax("REVOKE "),
            Name(role),
            Syntax(" FROM "),
            Name(row.get(0)),
        ];
        script.push(&parts);
    }
    script.run(session).await
}
