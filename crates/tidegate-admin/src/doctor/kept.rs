//! The tenants that the control database names, and what is there of their roles.

use super::super::role::{self, Existing};
use super::super::session::Session;
use super::super::{Admin, Result, authenticator, group, tenant, users_role};

/// A tenant as the control database has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptTenant {
    /// The tenant's database.
    pub name: String,
    /// The role of its owner.
    pub owner_role: String,
    /// Whether the database was there before the service.
    pub(super) adopted: bool,
    /// The roles that log in there.
    logins: Vec<String>,
    /// The role of all users, unless the tenant's name leaves no room for it.
    pub(super) users_role: Option<String>,
    /// The authenticators that so many users need: a backup of the database grants them rights.
    authenticators: Vec<String>,
    /// Those of them that anonymous callers share.
    pub(super) shared: Vec<String>,
    /// The roles that are in groups, with a group's name each.
    memberships: Vec<(String, String)>,
}

impl KeptTenant {
    /// The roles of its users, the owner's first.
    pub(super) fn logins(&self) -> &[String] {
        &self.logins
    }
}

impl Admin {
    /// The tenants that the control database names, by name; none when there is no such database
    /// or nothing in it, or it cannot be read. Makes nothing.
    pub async fn kept_tenants(&self) -> Result<Vec<KeptTenant>> {
        tenants(self, &self.open_home().await?).await
    }
}

pub(super) async fn tenants(admin: &Admin, home: &Session) -> Result<Vec<KeptTenant>> {
    let control = admin.config.control_database.as_str();
    if !tenant::database_exists(home, control).await? {
        return Ok(Vec::new());
    }
    // That it cannot be entered or read is told by other checks.
    let Ok(session) = admin.open(control).await else {
        return Ok(Vec::new());
    };
    let rows = session
        .client
        .query(
            "SELECT t.name, t.owner_role, t.adopted, \
                    coalesce(u.role, t.owner_role), u.user_group, \
                    coalesce(u.default_user, false) \
             FROM tidegate.tenants t LEFT JOIN tidegate.users u ON u.database = t.name \
             ORDER BY t.name COLLATE \"C\", u.role <> t.owner_role, u.role COLLATE \"C\"",
            &[],
        )
        .await;
    let mut tenants: Vec<KeptTenant> = Vec::new();
    for row in rows.unwrap_or_default() {
        let name: String = row.get(0);
        if tenants.last().is_none_or(|last| last.name != name) {
            tenants.push(KeptTenant {
                users_role: users_role::name(&name),
                name,
                owner_role: row.get(1),
                adopted: row.get(2),
                logins: Vec::new(),
                authenticators: Vec::new(),
                shared: Vec::new(),
                memberships: Vec::new(),
            });
        }
        let (login, groups): (String, Option<&str>) = (row.get(3), row.get(4));
        if let Some(tenant) = tenants.last_mut() {
            // As the store writes them.
            for group in groups.into_iter().flat_map(|names| names.split(',')) {
                let membership = (login.clone(), group.to_owned());
                tenant.memberships.push(membership);
            }
            if row.get(5) {
                tenant.shared.push(login.clone());
            }
            tenant.logins.push(login);
        }
    }
    for tenant in &mut tenants {
        let prefix = authenticator::prefix(&tenant.name);
        let count = tenant.logins.len().div_ceil(authenticator::MOST_MEMBERS);
        let names = (1..=count).map(|number| format!("{prefix}{number}"));
        tenant.authenticators = names.collect();
    }
    Ok(tenants)
}

/// What is there of a tenant's roles.
pub(super) struct TenantRoles<'a> {
    /// Those that log in.
    pub(super) logins: Vec<Login<'a>>,
    /// The role of all users, unless the tenant's name leaves no room for it.
    pub(super) of_users: Option<Login<'a>>,
}

/// What is there of a role.
pub(super) struct Login<'a> {
    pub(super) role: &'a str,
    /// Whether a role of the name is there, and whose.
    pub(super) existing: Existing,
    /// Why PostgreSQL turns it away, as the clause that lets it in again.
    pub(super) barred: Option<&'static str>,
    /// Whether it may connect to the database; a database that is not there refuses nobody.
    pub(super) entry: Entry,
}

/// That a login belongs into a group.
pub(super) struct Membership<'a> {
    pub(super) role: &'a str,
    /// The role of the group, and whether it is there.
    pub(super) group: String,
    pub(super) group_there: bool,
    /// Whether the login is in it.
    pub(super) member: bool,
    /// Whether the administrator has the ADMIN OPTION of the group itself.
    pub(super) group_administered: bool,
}

/// How a role may connect to a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// By a grant of its own.
    Granted,
    /// As a member of the role of all users.
    Member,
    /// As everybody may, or by another role.
    Inherited,
    /// Not at all.
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

/// Looks up all roles of a tenant that log in. Authenticators that are not there are among them only
/// where users are not there either: the service makes them otherwise.
pub(super) async fn roles<'a>(home: &Session, tenant: &'a KeptTenant) -> Result<TenantRoles<'a>> {
    let names = tenant.logins.iter().chain(&tenant.authenticators);
    let names: Vec<&'a String> = names.chain(&tenant.users_role).collect();
    let rows = home
        .client
        .query(
            LOGINS,
            &[&names, &tenant.name, &role::MARK, &tenant.users_role],
        )
        .await?;
    let login = |(row, role): (&tokio_postgres::Row, &'a String)| Login {
        role,
        existing: match (row.get(0), row.get(1)) {
            (false, _) => Existing::Nothing,
            (true, true) => Existing::Ours,
            (true, false) => Existing::Foreign,
        },
        barred: match row.get::<_, Option<&str>>(2) {
            None => None,
            Some("LOGIN") => Some("LOGIN"),
            Some(_) => Some("VALID UNTIL 'infinity'"),
        },
        entry: match (row.get(3), row.get(4), row.get(5)) {
            (_, true, _) => Entry::Granted,
            (_, false, true) => Entry::Member,
            (true, false, false) => Entry::Inherited,
            (false, false, false) => Entry::Refused,
        },
    };
    let mut logins: Vec<_> = rows.iter().zip(names).map(login).collect();
    let of_users = tenant.users_role.as_ref().and_then(|_| logins.pop());
    let authenticators = logins.split_off(tenant.logins.len());
    let is_missing = |login: &Login<'_>| login.existing == Existing::Nothing;
    if logins.iter().any(is_missing) {
        logins.extend(authenticators.into_iter().filter(is_missing));
    }
    Ok(TenantRoles { logins, of_users })
}

/// Looks up which logins of a tenant are in their groups.
pub(super) async fn memberships<'a>(
    home: &Session,
    tenant: &'a KeptTenant,
) -> Result<Vec<Membership<'a>>> {
    let kept = || tenant.memberships.iter();
    let roles: Vec<_> = kept().map(|(role, _)| role).collect();
    let groups: Vec<_> = kept()
        .map(|(_, group)| group::role_of(&tenant.name, group))
        .collect();
    let rows = home.client.query(MEMBERSHIPS, &[&roles, &groups]).await?;
    let membership =
        |((row, role), group): ((&tokio_postgres::Row, &&'a String), String)| Membership {
            role,
            group,
            group_there: row.get(0),
            member: row.get(1),
            group_administered: row.get(2),
        };
    let found = rows.iter().zip(&roles).zip(groups);
    Ok(found.map(membership).collect())
}

/// How many tenants are looked into.
const MOST: i64 = 1_000;

/// The databases of tenants that are there: those that the control database names, and those to
/// which a role that Tidegate made was given rights.
pub(super) async fn databases(home: &Session, kept: &[KeptTenant]) -> Result<Vec<String>> {
    let names: Vec<_> = kept.iter().map(|tenant| tenant.name.as_str()).collect();
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
            &[&role::MARK, &MOST, &names],
        )
        .await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}
