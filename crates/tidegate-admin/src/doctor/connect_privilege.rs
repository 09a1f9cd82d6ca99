//! The privilege that lets a role connect to the database of a tenant.

use tidegate_wire::version;

use super::super::role::RoleOrigin;
use super::super::script::Script;
use super::super::session::Session;
use super::super::{all_users_role, authenticator, group, tenant};
use super::recorded_tenants::{ConnectPrivilege, RecordedTenant, RoleState, TenantRoles};

impl RoleState<'_> {
    pub(super) fn exists(&self) -> bool {
        self.origin != RoleOrigin::Missing
    }
}

/// The role of all users, if this role is missing and a user needs it to connect; otherwise `None`.
/// Users that an older release created do not need it: they have grants of their own until a node
/// creates the role.
pub(super) fn needed<'a, 'b>(roles: &'b TenantRoles<'a>) -> Option<&'b RoleState<'a>> {
    let of_users = roles.of_users.as_ref().filter(|login| !login.exists())?;
    let mut logins = roles.logins.iter();
    let needs = logins.any(|login| !login.exists() || login.connect == ConnectPrivilege::Refused);
    needs.then_some(of_users)
}

/// Whether the administrator can manage a role only with the ADMIN OPTION for it. Since
/// PostgreSQL 16 this is so, unless the administrator is a superuser.
pub(super) fn needs_admin_option(home: &Session) -> bool {
    !home.superuser && version::roles_need_admin_option(home.version)
}

/// Appends the SQL that lets a role connect to the tenant's database. The SQL grants what the
/// creation of the role grants: the privileges of the owner, membership in the role of all users,
/// or CONNECT for the role itself.
pub(super) fn grant_connect(
    home: &Session,
    tenant: &RecordedTenant,
    role: &str,
    script: &mut Script,
) {
    if role == tenant.owner_role {
        return script.append(tenant::owner_rights(&tenant.name, role));
    }
    script.append(match &tenant.users_role {
        Some(of_users) if is_member(tenant, role) => {
            group::join(home, (role, of_users), grantor(home))
        }
        _ => all_users_role::grant_connect(&tenant.name, role),
    });
}

/// Whether a role connects as a member of the role of all users. The owner and authenticators have
/// grants of their own.
pub(super) fn is_member(tenant: &RecordedTenant, role: &str) -> bool {
    tenant
        .users_role
        .as_deref()
        .is_some_and(|name| name != role)
        && role != tenant.owner_role
        && !role.starts_with(&authenticator::prefix(&tenant.name))
}

/// The role for the `GRANTED BY` clause of a grant that a superuser will run. It is the
/// administrator's role: without the clause, the administrator could not revoke the grant. `None`
/// if the administrator is a superuser, and before PostgreSQL 16.
pub(super) fn grantor(home: &Session) -> Option<&str> {
    needs_admin_option(home).then_some(home.role.as_str())
}
