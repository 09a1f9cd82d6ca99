//! Checks whether the users of a tenant share connections, and what prevents it.

use super::super::authenticator::{ATTRIBUTES, LIST, MAX_MEMBERS, UNASSIGNED, prefix};
use super::super::script::{identifier, printable};
use super::super::session::Session;
use super::super::{Result, role};
use super::Finding;
use super::recorded_tenants::RecordedTenant;

/// Checks a tenant's database. Returns nothing if there is no event trigger, because connections
/// are then never shared.
pub(super) async fn examine(session: &Session, tenant: &RecordedTenant) -> Result<Vec<Finding>> {
    if !session.superuser {
        return Ok(Vec::new());
    }
    let prefix = prefix(&tenant.name);
    let there = "SELECT pg_catalog.to_regclass('tidegate_catalog.objections') IS NOT NULL";
    if !session
        .client
        .query_one(there, &[])
        .await?
        .get::<_, bool>(0)
    {
        return Ok(vec![advice(
            tenant,
            "it has no authenticator; a node creates it at its start",
            None,
        )]);
    }
    let mut findings = Vec::new();
    let decide = tidegate_service::DECIDE_SQL
        .replace(":owner::", "$1::")
        .replace(":source::", "$2::");
    let rows = session
        .client
        .query(
            &decide,
            &[
                &tenant.owner_role,
                &tidegate_service::event_trigger_source(),
            ],
        )
        .await?;
    let connect = format!("\\connect {}\n", identifier(&tenant.name));
    for row in &rows {
        let remedy: Option<&str> = row.get(1);
        let sql = remedy.map(|remedy| format!("{connect}{remedy}"));
        findings.push(advice(tenant, row.get(0), sql.as_deref()));
    }
    let found = session.client.query(LIST, &[&prefix, &role::MARK]).await?;
    for row in found.iter().filter(|row| !row.get::<_, bool>(2)) {
        let name: &str = row.get(0);
        let text = format!(
            "the authenticator {name} is locked or limited, inherits, has settings of its own, or \
             lacks CONNECT or the right to read tidegate_catalog.objections"
        );
        let (quoted, database) = (identifier(name), identifier(&tenant.name));
        let sql = format!(
            "{connect}ALTER ROLE {quoted}{ATTRIBUTES};\n\
             ALTER ROLE {quoted} RESET ALL;\n\
             ALTER ROLE {quoted} IN DATABASE {database} RESET ALL;\n\
             GRANT CONNECT ON DATABASE {database} TO {quoted};\n\
             GRANT USAGE ON SCHEMA tidegate_catalog TO {quoted};\n\
             GRANT SELECT ON tidegate_catalog.objections TO {quoted};"
        );
        findings.push(advice(tenant, &text, Some(&sql)));
    }
    findings.extend(unassigned(session, tenant, (&prefix, found.len())).await?);
    Ok(findings)
}

/// The finding about users without an authenticator, or about a tenant without any authenticator.
async fn unassigned(
    session: &Session,
    tenant: &RecordedTenant,
    (prefix, authenticators): (&str, usize),
) -> Result<Option<Finding>> {
    let nobody: Option<&str> = None;
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 6] = [
        &tenant.name,
        &role::MARK,
        &prefix,
        &tenant.shared,
        &tenant.owner_role,
        &nobody,
    ];
    let waiting = session.client.query(UNASSIGNED, &values).await?.len();
    if waiting == 0 && authenticators > 0 {
        return Ok(None);
    }
    let text = format!(
        "{authenticators} authenticator(s) with at most {MAX_MEMBERS} users each are there, and \
         {waiting} user(s) have none; a node that starts, and each node once an hour, makes them"
    );
    Ok(Some(advice(tenant, &text, None)))
}

fn advice(tenant: &RecordedTenant, reason: &str, sql: Option<&str>) -> Finding {
    let text = format!(
        "users of the tenant {} do not all share connections, so that each logs in on its own, \
         which is slow with many users: {reason}",
        tenant.name
    );
    // The database has quoted the names in this SQL.
    Finding::advice(text, sql.map(printable))
}
