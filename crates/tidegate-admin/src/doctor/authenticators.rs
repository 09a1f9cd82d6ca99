//! Checks whether the users of a tenant share connections, and what prevents it.

use super::super::authenticator::{ATTRIBUTES, LIST, MAX_MEMBERS, UNASSIGNED, is_prepared, prefix};
use super::super::script::{identifier, printable};
use super::super::session::Session;
use super::super::{Result, role};
use super::Finding;
use super::recorded_tenants::RecordedTenant;

/// Checks a tenant's database. Returns no findings if the administrator is not a superuser, because
/// connections are then never shared.
pub(super) async fn examine(session: &Session, tenant: &RecordedTenant) -> Result<Vec<Finding>> {
    if !session.superuser {
        return Ok(Vec::new());
    }
    let prefix = prefix(&tenant.name);
    if !is_prepared(session).await? {
        return Ok(vec![advice(
            tenant,
            "it has no authenticator; `tidegate user repair`, with --all, creates it, as does a node \
             at its start",
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
    findings.extend(dynamic_sql(session, tenant).await?);
    Ok(findings)
}

/// Selects trigger functions that concatenate SQL without a quoting function, and then run it.
const DYNAMIC_SQL: &str = "SELECT DISTINCT p.oid::pg_catalog.regprocedure::text \
    FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid \
    JOIN pg_catalog.pg_language l ON l.oid = p.prolang \
    WHERE NOT t.tgisinternal AND NOT p.prosecdef AND l.lanname = 'plpgsql' \
      AND p.prosrc ~* '[[:<:]]execute[[:>:]]' AND p.prosrc ~* '[|][|]|[[:<:]]concat' \
      AND p.prosrc !~* '[[:<:]](format|quote_ident|quote_literal|quote_nullable)[[:>:]]' \
    ORDER BY 1 LIMIT 5";

/// The finding about trigger functions that are open to SQL injection by a user. On a shared
/// connection the injected SQL could switch to the role of another user.
async fn dynamic_sql(session: &Session, tenant: &RecordedTenant) -> Result<Option<Finding>> {
    let rows = session.client.query(DYNAMIC_SQL, &[]).await?;
    if rows.is_empty() {
        return Ok(None);
    }
    let functions: Vec<&str> = rows.iter().map(|row| row.get(0)).collect();
    let text = format!(
        "functions of triggers of the tenant {} run SQL that they put together without format() or \
         quote_literal(), so that a user whose values get into it may become another user: {}",
        tenant.name,
        functions.join(", ")
    );
    Ok(Some(Finding::advice(text, None)))
}

/// The finding about users without an authenticator, or about a tenant without any authenticator.
async fn unassigned(
    session: &Session,
    tenant: &RecordedTenant,
    (prefix, authenticators): (&str, usize),
) -> Result<Option<Finding>> {
    let only: Option<&str> = None;
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 6] = [
        &tenant.name,
        &role::MARK,
        &prefix,
        &tenant.shared,
        &tenant.owner_role,
        &only,
    ];
    let waiting = session.client.query(UNASSIGNED, &values).await?.len();
    if waiting == 0 && authenticators > 0 {
        return Ok(None);
    }
    let text = format!(
        "{authenticators} authenticator(s) with at most {MAX_MEMBERS} users each are there, and \
         {waiting} user(s) have none; `tidegate user repair {} --all` makes them, as does each node \
         when it starts and once an hour",
        tenant.name
    );
    Ok(Some(advice(tenant, &text, None)))
}

fn advice(tenant: &RecordedTenant, reason: &str, sql: Option<&str>) -> Finding {
    let text = format!(
        "users of the tenant {} do not all share connections, so that each logs in on its own, \
         which is slow with many users: {reason}",
        tenant.name
    );
    // The database has quoted the names in this SQL, but has not escaped unprintable characters.
    Finding::advice(text, sql.map(printable))
}
