//! Checks whether PUBLIC may connect to databases of tenants, as after a restore without
//! privileges.

use SqlPart::{Name, Syntax};

use super::super::script::{Script, SqlPart};
use super::super::session::Session;
use super::super::{Result, all_users_role, group};
use super::recorded_tenants::{ConnectPrivilege, RecordedTenant, TenantRoles};
use super::{ChangeSource, Finding, connect_privilege};

/// Reports that a database lets PUBLIC connect, with the SQL that lets only the tenant and the
/// service connect.
pub(super) async fn examine(
    home: &Session,
    tenant: &RecordedTenant,
    (roles, feed): (&TenantRoles<'_>, ChangeSource<'_>),
) -> Result<Option<Finding>> {
    let row = home
        .client
        .query_opt(
            "SELECT FROM pg_catalog.pg_database d CROSS JOIN LATERAL pg_catalog.aclexplode( \
                 coalesce(d.datacl, pg_catalog.acldefault('d', d.datdba)) || '{}') a \
             WHERE d.datname = $1 AND a.grantee = 0 AND a.privilege_type = 'CONNECT'",
            &[&tenant.name],
        )
        .await?;
    if row.is_none() {
        return Ok(None);
    }
    let mut script = service_grants(home, tenant, feed).await?;
    if let Some(of_users) = roles.of_users.as_ref()
        && of_users.connect != ConnectPrivilege::Granted
    {
        // If a user needs the missing role of all users, the SQL of another finding creates that
        // role.
        if !of_users.exists() && connect_privilege::needed(roles).is_none() {
            script.append(group::create(of_users.role));
        }
        script.append(all_users_role::grant_connect(&tenant.name, of_users.role));
    }
    let closed = |connect| {
        !matches!(
            connect,
            ConnectPrivilege::Granted | ConnectPrivilege::Member
        )
    };
    for login in roles
        .logins
        .iter()
        .filter(|login| login.exists() && closed(login.connect))
    {
        connect_privilege::grant_connect(home, tenant, login.role, &mut script);
    }
    script.push(&[
        Syntax("REVOKE CONNECT, TEMPORARY ON DATABASE "),
        Name(&tenant.name),
        Syntax(" FROM PUBLIC"),
    ]);
    let text = format!(
        "everybody may connect to the database {}, users of other tenants too; grant CONNECT to \
         those roles of your own that need it before this",
        tenant.name
    );
    let sql = script.to_string().trim_end().to_owned();
    Ok(Some(Finding::advice(text, sql)))
}

/// Returns the grants that the service's own logins need once PUBLIC may no longer connect. These
/// logins are the administrator, which creates the users and the captures, and the role that reads
/// the change log.
async fn service_grants(
    home: &Session,
    tenant: &RecordedTenant,
    feed: ChangeSource<'_>,
) -> Result<Script> {
    let database = tenant.name.as_str();
    let mut script = Script::default();
    if !administers(home, database).await? {
        script.push(&[
            Syntax("GRANT CONNECT, CREATE ON DATABASE "),
            Name(database),
            Syntax(" TO "),
            Name(&home.role),
            Syntax(" WITH GRANT OPTION"),
        ]);
    }
    if let Some(reader) = feed.reader() {
        let reader = reader.admin_role.as_str();
        if reader != home.role && locked_out(home, database, reader).await? {
            script.push(&[
                Syntax("GRANT CONNECT ON DATABASE "),
                Name(database),
                Syntax(" TO "),
                Name(reader),
            ]);
        }
    }
    Ok(script)
}

async fn administers(home: &Session, database: &str) -> Result<bool> {
    let row = home
        .client
        .query_one(
            "SELECT pg_catalog.has_database_privilege($1, 'CONNECT WITH GRANT OPTION') \
                    AND pg_catalog.has_database_privilege($1, 'CREATE WITH GRANT OPTION')",
            &[&database],
        )
        .await?;
    Ok(row.get(0))
}

/// Whether a role has CONNECT only through PUBLIC, and would be locked out without that grant.
async fn locked_out(home: &Session, database: &str, role: &str) -> Result<bool> {
    let row = home
        .client
        .query_opt(
            "SELECT NOT r.rolsuper AND NOT EXISTS ( \
                 SELECT FROM pg_catalog.aclexplode( \
                     coalesce(d.datacl, pg_catalog.acldefault('d', d.datdba)) || '{}') a \
                 WHERE a.grantee <> 0 AND a.privilege_type = 'CONNECT' \
                   AND pg_catalog.pg_has_role(r.oid, a.grantee, 'USAGE')) \
             FROM pg_catalog.pg_roles r, pg_catalog.pg_database d \
             WHERE r.rolname = $1 AND d.datname = $2",
            &[&role, &database],
        )
        .await?;
    Ok(row.is_some_and(|row| row.get(0)))
}
