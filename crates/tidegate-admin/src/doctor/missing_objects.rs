//! Checks whether the databases and roles of tenants exist. After an incomplete restore some are
//! missing.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use SqlPart::{Name, Syntax};

use super::super::role::{self, RoleOrigin};
use super::super::script::{Script, SqlPart, identifier};
use super::super::session::Session;
use super::super::{Result, all_users_role, group, tenant};
use super::connect_privilege::{grant_connect, grantor, is_member, needed, needs_admin_option};
use super::recorded_tenants::{
    ConnectPrivilege, Membership, RecordedTenant, RoleState, TenantRoles, memberships,
    missing_member_groups, roles,
};
use super::{ChangeSource, Finding, public_access};

/// The maximum number of roles that the text of a finding names.
const MAX_NAMES: usize = 5;

/// The number of CONNECT grants on a database above which the doctor reports them. Fewer grants
/// cost no measurable time.
const MAX_GRANTED: usize = 100;

/// Checks whether the tenant's database and roles exist, and whether its users and no others may
/// connect.
pub(super) async fn examine(
    home: &Session,
    tenant: &RecordedTenant,
    feed: ChangeSource<'_>,
) -> Result<Vec<Finding>> {
    let found = tenant::database_exists(home, &tenant.name).await?;
    let roles = roles(home, tenant).await?;
    let mut findings = Vec::new();
    findings.extend(missing_roles(home, (tenant, found), &roles));
    findings.extend(foreign(tenant, &roles));
    let memberships = memberships(home, tenant).await?;
    findings.extend(missing_memberships(home, tenant, &memberships));
    let groups = missing_member_groups(home, tenant).await?;
    findings.extend(groups_without_role(home, tenant, &groups));
    if found {
        findings.extend(roles_without_login(home, tenant, &roles));
        findings.extend(single_connect_grants(tenant, &roles));
        findings.extend(public_access::examine(home, tenant, (&roles, feed)).await?);
    } else {
        findings.push(no_database(tenant));
    }
    if findings.is_empty() {
        let text = format!("the database and the roles of {} exist", tenant.name);
        findings.push(Finding::ok(text));
    }
    Ok(findings)
}

fn no_database(tenant: &RecordedTenant) -> Finding {
    let name = &tenant.name;
    Finding::missing(
        format!("the database {name} does not exist, and {name} is a tenant"),
        format!(
            "-- restore it from a backup when its roles are there, or give the tenant up with\n\
             -- tidegate tenant drop {name}"
        ),
    )
}

/// The finding about missing roles, with the statements that create them.
fn missing_roles(
    home: &Session,
    (tenant, found): (&RecordedTenant, bool),
    roles: &TenantRoles<'_>,
) -> Option<Finding> {
    let mut missing_roles: Vec<_> = roles
        .logins
        .iter()
        .filter(|login| !login.exists())
        .collect();
    let mut script = Script::default();
    let mut inside = Script::default();
    if let Some(of_users) = needed(roles) {
        script.append(group::create(of_users.role));
        grant_admin_option(home, of_users.role, &mut script);
        if found {
            script.append(all_users_role::grant_connect(&tenant.name, of_users.role));
            inside.append(all_users_role::grant_usage(of_users.role));
        }
        missing_roles.insert(0, of_users);
    }
    for login in roles.logins.iter().filter(|login| !login.exists()) {
        script.append(role::create(login.role, None));
        grant_admin_option(home, login.role, &mut script);
        if found || is_member(tenant, login.role) {
            grant_connect(home, tenant, login.role, &mut script);
        }
        if found {
            grant_inside(tenant, login.role, &mut inside);
        }
    }
    if missing_roles.is_empty() {
        return None;
    }
    let mut sql = script.to_string();
    if found {
        let database = identifier(&tenant.name);
        let _ = write!(sql, "\\connect {database}\n{inside}");
        sql.push_str(
            "-- what they owned and their privileges come with a backup, restored after this\n",
        );
    }
    let text = format!(
        "roles of the tenant {} do not exist, so their users cannot log in: {}",
        tenant.name,
        names(missing_roles.iter().map(|login| login.role))
    );
    Some(Finding::missing(text, sql.trim_end().to_owned()))
}

/// Appends the statement that grants the administrator the ADMIN OPTION for a role. Since
/// PostgreSQL 16 the administrator needs this option for a role that a superuser creates.
fn grant_admin_option(home: &Session, role: &str, script: &mut Script) {
    if needs_admin_option(home) {
        script.push(&[
            Syntax("GRANT "),
            Name(role),
            Syntax(" TO "),
            Name(&home.role),
            Syntax(" WITH ADMIN TRUE, INHERIT FALSE, SET FALSE"),
        ]);
    }
}

/// Appends the statements that give a new role its privileges on the schema `public`.
fn grant_inside(tenant: &RecordedTenant, role: &str, script: &mut Script) {
    if role != tenant.owner_role {
        if tenant.users_role.is_none() {
            script.append(all_users_role::grant_usage(role));
        }
    } else if !tenant.adopted {
        script.push(&[Syntax("ALTER SCHEMA public OWNER TO "), Name(role)]);
    }
}

/// The finding about roles of the tenant that Tidegate did not create. Tidegate neither changes nor
/// repairs such roles.
fn foreign(tenant: &RecordedTenant, roles: &TenantRoles<'_>) -> Option<Finding> {
    let all = roles.logins.iter().chain(&roles.of_users);
    let foreign = all.filter(|login| login.origin == RoleOrigin::Other);
    let foreign: Vec<_> = foreign.map(|login| login.role).collect();
    let mut script = Script::default();
    for role in &foreign {
        script.append(role::mark(role));
    }
    let text = format!(
        "roles of the tenant {} lack the comment `{}`, and such roles are neither repaired nor \
         dropped; set it if they are the tenant's, as after a backup without comments: {}",
        tenant.name,
        role::MARK,
        names(foreign.iter().copied())
    );
    let sql = script.to_string().trim_end().to_owned();
    (!foreign.is_empty()).then(|| Finding::missing(text, sql))
}

/// The finding about users whose roles are not members of the roles of their groups.
fn missing_memberships(
    home: &Session,
    tenant: &RecordedTenant,
    memberships: &[Membership<'_>],
) -> Option<Finding> {
    let mut made = BTreeSet::new();
    let mut script = Script::default();
    let mut outside = Vec::new();
    for login in memberships.iter().filter(|login| !login.member) {
        let group = &login.group;
        if made.insert(group) {
            if !login.group_exists {
                script.append(group::create(group));
            }
            if !login.group_administered {
                grant_admin_option(home, group, &mut script);
            }
        }
        script.append(group::join(home, (login.role, group), grantor(home)));
        outside.push(login.role);
    }
    let text = format!(
        "users of the tenant {} are not in the roles of their groups, and have none of their \
         rights: {}",
        tenant.name,
        names(outside.iter().copied())
    );
    let sql = script.to_string().trim_end().to_owned();
    (!outside.is_empty()).then(|| Finding::missing(text, sql))
}

/// The finding about missing roles of groups that have members. A node creates these roles when it
/// starts. If a backup of the database is restored before that, the grants to these roles fail.
fn groups_without_role(
    home: &Session,
    tenant: &RecordedTenant,
    groups: &[String],
) -> Option<Finding> {
    let mut script = Script::default();
    for group in groups {
        script.append(group::create(group));
        grant_admin_option(home, group, &mut script);
    }
    let text = format!(
        "groups of members of the tenant {} have no role: {}",
        tenant.name,
        names(groups.iter().map(String::as_str))
    );
    let sql = script.to_string().trim_end().to_owned();
    (!groups.is_empty()).then(|| Finding::missing(text, sql))
}

/// The finding about roles that cannot log in because of an attribute or a missing CONNECT
/// privilege. An operator may have locked out a role on purpose, so the SQL is commented out.
fn roles_without_login(
    home: &Session,
    tenant: &RecordedTenant,
    found: &TenantRoles<'_>,
) -> Option<Finding> {
    let (mut roles, mut sql) = (Vec::new(), Vec::new());
    let of_users = found.of_users.as_ref();
    if let Some(closed) =
        of_users.filter(|role| role.exists() && role.connect == ConnectPrivilege::Refused)
    {
        sql.push(commented(&all_users_role::grant_connect(
            &tenant.name,
            closed.role,
        )));
        roles.push(closed.role);
    }
    for login in found.logins.iter().filter(|login| login.exists()) {
        let role = identifier(login.role);
        if let Some(clause) = login.locked_out {
            sql.push(format!("-- ALTER ROLE {role} {clause};"));
        }
        if login.connect == ConnectPrivilege::Refused {
            let mut script = Script::default();
            grant_connect(home, tenant, login.role, &mut script);
            sql.push(commented(&script));
        }
        if login.locked_out.is_some() || login.connect == ConnectPrivilege::Refused {
            roles.push(login.role);
        }
    }
    let text = format!(
        "roles of the tenant {} are kept out by PostgreSQL (NOLOGIN, VALID UNTIL, no CONNECT); \
         these let them in, if that is not meant: {}",
        tenant.name,
        names(roles.iter().copied())
    );
    (!roles.is_empty()).then(|| Finding::advice(text, sql.join("\n")))
}

/// The statement as a comment, so that it does not run before an operator has read it.
fn commented(script: &Script) -> String {
    format!("-- {}", script.to_string().trim_end())
}

/// The finding about users with CONNECT grants of their own, which an older release made. With
/// thousands of such grants, every request reads a long list of the database's privileges.
fn single_connect_grants(tenant: &RecordedTenant, roles: &TenantRoles<'_>) -> Option<Finding> {
    let of_users = tenant.users_role.as_ref()?;
    let granted = |login: &&RoleState<'_>| {
        login.connect == ConnectPrivilege::Granted && is_member(tenant, login.role)
    };
    let count = roles.logins.iter().filter(granted).count();
    let text = format!(
        "{count} users of the tenant {} have CONNECT by grants of their own, which slows every \
         request; a node that starts, and each node once an hour, makes them members of {of_users} \
         instead",
        tenant.name
    );
    (count > MAX_GRANTED).then(|| Finding::advice(text, None))
}

/// Text with the first [`MAX_NAMES`] of `names`, and the number of the remaining names.
pub(super) fn names<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = names.len().saturating_sub(MAX_NAMES);
    let mut text = names.take(MAX_NAMES).collect::<Vec<_>>().join(", ");
    if more > 0 {
        let _ = write!(text, " and {more} more");
    }
    text
}
