//! The tenants that the control database records, and the state of their roles.

use super::super::role::{self, RoleOrigin};
use super::super::session::Session;
use super::super::{Admin, Result, all_users_role, authenticator, group, tenant};

/// A tenant as recorded in the control database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedTenant {
    /// The tenant's database.
    pub name: String,
    /// The role of its owner.
    pub owner_role: String,
    /// Whether the database was adopted.
    pub(super) adopted: bool,
    /// The generation of the key that the tenant's functions of claims use.
    pub(super) claims_generation: i32,
    /// The roles of the tenant's users, the owner's first.
    user_roles: Vec<String>,
    /// The role of all users, see [`all_users_role`]; `None` if the tenant's name is too long to be
    /// part of a role's name.
    pub(super) users_role: Option<String>,
    /// The names of the authenticators, as many as the number of users requires. A backup of the
    /// database contains grants to these roles, so they must exist before it is restored.
    authenticators: Vec<String>,
    /// The roles among `user_roles` that anonymous callers share.
    pub(super) shared: Vec<String>,
    /// For each membership of a user with a role: the user's role, and the name of the group.
    memberships: Vec<(String, String)>,
    /// The names of the groups that have members, who are users without a role.
    member_groups: Vec<String>,
}

impl RecordedTenant {
    /// The roles of the tenant's users, the owner's first.
    pub(super) fn user_roles(&self) -> &[String] {
        &self.user_roles
    }
}

impl Admin {
    /// The tenants that the control database records, ordered by name. Empty if the database does
    /// not exist, is empty or cannot be read. Changes nothing.
    pub async fn recorded_tenants(&self) -> Result<Vec<RecordedTenant>> {
        tenants(self, &self.open_admin_database().await?).await
    }
}

/// Selects the recorded tenants. A tenant has one row for each user with a role, and one row for
/// each group that has members. A tenant without users has one row.
const RECORDED: &str = "\
    SELECT t.name, t.owner_role, t.adopted, u.role, u.user_group, \
           coalesce(u.default_user, false), \
           coalesce((pg_catalog.to_jsonb(t) ->> 'claims_generation')::int4, 1) \
    FROM tidegate.tenants t LEFT JOIN ( \
        SELECT database, role, user_group, default_user FROM tidegate.users \
        WHERE role IS NOT NULL \
        UNION ALL SELECT DISTINCT database, NULL::text, user_group, false \
        FROM tidegate.users WHERE role IS NULL) u ON u.database = t.name \
    ORDER BY t.name COLLATE \"C\", u.role <> t.owner_role, u.role COLLATE \"C\"";

pub(super) async fn tenants(admin: &Admin, home: &Session) -> Result<Vec<RecordedTenant>> {
    let control = admin.config.control_database.as_str();
    if !tenant::database_exists(home, control).await? {
        return Ok(Vec::new());
    }
    // If the database cannot be opened or read, the checks of the control database report that.
    let Ok(session) = admin.open(control).await else {
        return Ok(Vec::new());
    };
    let rows = session.client.query(RECORDED, &[]).await;
    let mut tenants: Vec<RecordedTenant> = Vec::new();
    for row in rows.unwrap_or_default() {
        let name: String = row.get(0);
        if tenants.last().is_none_or(|last| last.name != name) {
            tenants.push(RecordedTenant {
                users_role: all_users_role::name(&name),
                name,
                owner_role: row.get(1),
                adopted: row.get(2),
                claims_generation: row.get(6),
                user_roles: Vec::new(),
                authenticators: Vec::new(),
                shared: Vec::new(),
                memberships: Vec::new(),
                member_groups: Vec::new(),
            });
        }
        let Some(tenant) = tenants.last_mut() else {
            continue;
        };
        let (login, groups): (Option<String>, Option<&str>) = (row.get(3), row.get(4));
        // The store writes groups as a list separated by commas.
        let groups = groups.into_iter().flat_map(|names| names.split(','));
        let groups = groups.map(str::to_owned);
        let Some(login) = login else {
            tenant.member_groups.extend(groups);
            continue;
        };
        let memberships = groups.map(|group| (login.clone(), group));
        tenant.memberships.extend(memberships);
        if row.get(5) {
            tenant.shared.push(login.clone());
        }
        tenant.user_roles.push(login);
    }
    for tenant in &mut tenants {
        if tenant.user_roles.is_empty() {
            tenant.user_roles.push(tenant.owner_role.clone());
        }
        let prefix = authenticator::prefix(&tenant.name);
        let count = tenant.user_roles.len().div_ceil(authenticator::MAX_MEMBERS);
        let names = (1..=count).map(|number| format!("{prefix}{number}"));
        tenant.authenticators = names.collect();
    }
    Ok(tenants)
}

/// The state of a tenant's roles in PostgreSQL.
pub(super) struct TenantRoles<'a> {
    /// The roles of the users and, if a user's role is missing, the missing authenticators.
    pub(super) logins: Vec<RoleState<'a>>,
    /// The role of all users, see [`all_users_role`]; `None` if the tenant's name is too long to be
    /// part of a role's name.
    pub(super) of_users: Option<RoleState<'a>>,
}

/// The state of a role in PostgreSQL, and its access to the tenant's database.
pub(super) struct RoleState<'a> {
    pub(super) role: &'a str,
    /// Whether the role exists, and whether Tidegate created it.
    pub(super) origin: RoleOrigin,
    /// The clause of `ALTER ROLE` that allows the role to log in again; `None` if PostgreSQL
    /// accepts its login.
    pub(super) locked_out: Option<&'static str>,
    /// By which privilege the role may connect to the database. Never `Refused` if the database
    /// does not exist.
    pub(super) connect: ConnectPrivilege,
}

/// The membership of a user's role in a group, as the control database records it.
pub(super) struct Membership<'a> {
    pub(super) role: &'a str,
    /// The name of the group's role.
    pub(super) group: String,
    pub(super) group_exists: bool,
    /// Whether the membership exists in PostgreSQL.
    pub(super) member: bool,
    /// Whether the administrator has the ADMIN OPTION for the group.
    pub(super) group_administered: bool,
}

/// By which privilege a role may connect to a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectPrivilege {
    /// A grant to the role itself.
    Granted,
    /// The role's membership in the role of all users.
    Member,
    /// A grant to PUBLIC, or to a role of which this role is a member.
    Inherited,
    /// None, so the role may not connect.
    Refused,
}

const LOGINS: &str = "WITH granted AS MATERIALIZED ( \
        SELECT DISTINCT a.grantee FROM pg_catalog.pg_database h, \
        pg_catalog.aclexplode(h.datacl || '{}') a \
        WHERE h.datname = $2 AND h.datacl IS NOT NULL AND a.privilege_type = 'CONNECT') \
    SELECT r.oid IS NOT NULL, \
        coalesce(pg_catalog.shobj_description(r.oid, 'pg_authid') LIKE ($3::text || '%'), false), \
        CASE WHEN NOT r.rolcanlogin THEN 'LOGIN' \
             WHEN r.rolvaliduntil < pg_catalog.now() THEN 'VALID UNTIL ''infinity''' END, \
        coalesce(pg_catalog.has_database_privilege(r.oid, d.oid, 'CONNECT'), true), \
        coalesce(r.oid IN (SELECT a.grantee FROM granted a), false), \
        coalesce(r.oid IN (SELECT m.member FROM pg_catalog.pg_auth_members m \
                           JOIN pg_catalog.pg_roles s ON s.oid = m.roleid \
                           JOIN granted a ON a.grantee = s.oid \
                           WHERE s.rolname::text = $4), false) \
    FROM pg_catalog.unnest($1::text[]) WITH ORDINALITY AS k (login, place) \
    LEFT JOIN pg_catalog.pg_roles r ON r.rolname = k.login \
    LEFT JOIN pg_catalog.pg_database d ON d.datname = $2 ORDER BY k.place";

const MEMBERSHIPS: &str = "SELECT g.oid IS NOT NULL, \
        EXISTS (SELECT FROM pg_catalog.pg_auth_members m \
                JOIN pg_catalog.pg_roles r ON r.oid = m.member \
                WHERE m.roleid = g.oid AND r.rolname = k.login), \
        EXISTS (SELECT FROM pg_catalog.pg_auth_members m \
                JOIN pg_catalog.pg_roles a ON a.oid = m.member \
                WHERE m.roleid = g.oid AND m.admin_option AND a.rolname = current_user) \
    FROM ROWS FROM (pg_catalog.unnest($1::text[]), pg_catalog.unnest($2::text[])) \
             WITH ORDINALITY AS k (login, in_group, place) \
    LEFT JOIN pg_catalog.pg_roles g ON g.rolname = k.in_group ORDER BY k.place";

/// Looks up all login roles of a tenant. If a user's role is missing, the result also contains the
/// missing authenticators. Otherwise it contains no authenticators, because each node creates
/// missing authenticators when it starts.
pub(super) async fn roles<'a>(
    home: &Session,
    tenant: &'a RecordedTenant,
) -> Result<TenantRoles<'a>> {
    let names = tenant.user_roles.iter().chain(&tenant.authenticators);
    let names: Vec<&'a String> = names.chain(&tenant.users_role).collect();
    let rows = home
        .client
        .query(
            LOGINS,
            &[&names, &tenant.name, &role::MARK, &tenant.users_role],
        )
        .await?;
    let login = |(row, role): (&tokio_postgres::Row, &'a String)| RoleState {
        role,
        origin: match (row.get(0), row.get(1)) {
            (false, _) => RoleOrigin::Missing,
            (true, true) => RoleOrigin::Tidegate,
            (true, false) => RoleOrigin::Other,
        },
        locked_out: match row.get::<_, Option<&str>>(2) {
            None => None,
            Some("LOGIN") => Some("LOGIN"),
            Some(_) => Some("VALID UNTIL 'infinity'"),
        },
        connect: match (row.get(3), row.get(4), row.get(5)) {
            (_, true, _) => ConnectPrivilege::Granted,
            (_, false, true) => ConnectPrivilege::Member,
            (true, false, false) => ConnectPrivilege::Inherited,
            (false, false, false) => ConnectPrivilege::Refused,
        },
    };
    let mut logins: Vec<_> = rows.iter().zip(names).map(login).collect();
    let of_users = tenant.users_role.as_ref().and_then(|_| logins.pop());
    let authenticators = logins.split_off(tenant.user_roles.len());
    let is_missing = |login: &RoleState<'_>| login.origin == RoleOrigin::Missing;
    if logins.iter().any(is_missing) {
        logins.extend(authenticators.into_iter().filter(is_missing));
    }
    Ok(TenantRoles { logins, of_users })
}

/// Looks up which of a tenant's recorded memberships in groups exist in PostgreSQL.
pub(super) async fn memberships<'a>(
    home: &Session,
    tenant: &'a RecordedTenant,
) -> Result<Vec<Membership<'a>>> {
    let memberships = || tenant.memberships.iter();
    let roles: Vec<_> = memberships().map(|(role, _)| role).collect();
    let groups: Vec<_> = memberships()
        .map(|(_, group)| group::role_of(&tenant.name, group))
        .collect();
    let rows = home.client.query(MEMBERSHIPS, &[&roles, &groups]).await?;
    let membership =
        |((row, role), group): ((&tokio_postgres::Row, &&'a String), String)| Membership {
            role,
            group,
            group_exists: row.get(0),
            member: row.get(1),
            group_administered: row.get(2),
        };
    let found = rows.iter().zip(&roles).zip(groups);
    Ok(found.map(membership).collect())
}

/// The missing roles of those groups that have only users without a role. [`memberships`] covers
/// the groups that have users with a role.
pub(super) async fn missing_member_groups(
    home: &Session,
    tenant: &RecordedTenant,
) -> Result<Vec<String>> {
    let joined = |name: &String| tenant.memberships.iter().any(|(_, group)| group == name);
    let groups = tenant.member_groups.iter().filter(|name| !joined(name));
    let groups: Vec<_> = groups
        .map(|group| group::role_of(&tenant.name, group))
        .collect();
    let missing = "SELECT k.role FROM pg_catalog.unnest($1::text[]) k (role) \
                   WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.rolname = k.role)";
    let rows = home.client.query(missing, &[&groups]).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// The maximum number of databases that [`databases`] returns.
const MAX_TENANTS: i64 = 1_000;

/// The existing databases of tenants: the databases that the control database records, and every
/// database that grants privileges to a role created by Tidegate.
pub(super) async fn databases(home: &Session, tenants: &[RecordedTenant]) -> Result<Vec<String>> {
    let names: Vec<_> = tenants.iter().map(|tenant| tenant.name.as_str()).collect();
    let rows = home
        .client
        .query(
            "SELECT d.datname::text FROM pg_catalog.pg_database d \
             WHERE d.datallowconn AND (d.datname = ANY ($3) OR EXISTS ( \
                 SELECT FROM pg_catalog.aclexplode(d.datacl) a \
                 JOIN pg_catalog.pg_roles r ON r.oid = a.grantee \
                 WHERE pg_catalog.shobj_description(r.oid, 'pg_authid') \
                       LIKE ($1::text || '%'))) \
             ORDER BY 1 LIMIT $2",
            &[&role::MARK, &MAX_TENANTS, &names],
        )
        .await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}
