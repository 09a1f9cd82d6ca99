//! Checks the functions of claims in a tenant's database, and the policies that use them.

use tidegate_service::{ClaimsState, claims_state};

use super::super::script::{identifier, printable};
use super::super::session::Session;
use super::super::{Admin, Result};
use super::Finding;
use super::recorded_tenants::RecordedTenant;

/// Checks whether the functions of claims in a tenant's database are current. If they are, also
/// checks the policies.
pub(super) async fn examine(
    admin: &Admin,
    session: &Session,
    tenant: &RecordedTenant,
) -> Result<Vec<Finding>> {
    let wanted = admin.claims_functions(&tenant.name, tenant.claims_generation);
    let state = claims_state(&session.client, &wanted).await?;
    let functions = functions(session, tenant, &state).await?;
    let mut findings = vec![functions];
    if state == ClaimsState::Current {
        findings.extend(slow_policies(session, tenant).await?);
    }
    Ok(findings)
}

async fn functions(
    session: &Session,
    tenant: &RecordedTenant,
    state: &ClaimsState,
) -> Result<Finding> {
    let name = &tenant.name;
    let connect = format!("\\connect {}", identifier(name));
    Ok(match state {
        ClaimsState::Current => Finding::ok(format!(
            "policies in {name} can call tidegate.user_id(), tidegate.claims() and tidegate.claim()"
        )),
        ClaimsState::Outdated => Finding::advice(
            format!(
                "the functions tidegate.user_id(), tidegate.claims() and tidegate.claim() in \
                 {name} are missing, of another release, or have another key; a node replaces \
                 them at its start, and each node once an hour"
            ),
            None,
        ),
        ClaimsState::NotAllowed => Finding::advice(
            format!(
                "{name} has no functions tidegate.user_id(), tidegate.claims() and \
                 tidegate.claim() for policies, because the administrator may not create schemas \
                 in it"
            ),
            format!(
                "GRANT CREATE ON DATABASE {} TO {};",
                identifier(name),
                identifier(&session.role)
            ),
        ),
        ClaimsState::Foreign(object) => Finding::missing(
            format!(
                "the {} in {name} is not the administrator's, so tidegate.user_id(), tidegate.claims() \
                 and tidegate.claim() are not updated and may return anything: do not trust \
                 policies that call them",
                printable(object)
            ),
            format!(
                "{connect}\n-- once you have read what is in the schemas tidegate and \
                 tidegate_private:\n{}",
                take_over(session).await?
            ),
        ),
    })
}

/// Returns the statements that make the administrator the owner of the schemas `tidegate` and
/// `tidegate_private` and of the objects in them, except those that it already owns. The statements
/// are SQL comments. At most 100 are returned.
async fn take_over(session: &Session) -> Result<String> {
    let query = "SELECT pg_catalog.format('-- ALTER %s OWNER TO %I;', o.name, current_user) \
        FROM pg_catalog.pg_namespace n CROSS JOIN LATERAL ( \
            SELECT pg_catalog.format('SCHEMA %I', n.nspname) AS name, n.nspowner AS owner \
            UNION ALL \
            SELECT pg_catalog.format('%s %I.%I', CASE c.relkind WHEN 'S' THEN 'SEQUENCE' \
                WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END, n.nspname, c.relname), c.relowner \
            FROM pg_catalog.pg_class c \
            WHERE c.relnamespace = n.oid AND c.relkind IN ('r', 'p', 'v', 'S') \
            UNION ALL \
            SELECT pg_catalog.format('ROUTINE %I.%I(%s)', n.nspname, p.proname, \
                pg_catalog.pg_get_function_identity_arguments(p.oid)), p.proowner \
            FROM pg_catalog.pg_proc p WHERE p.pronamespace = n.oid) o \
        WHERE n.nspname IN ('tidegate', 'tidegate_private') \
          AND pg_catalog.pg_get_userbyid(o.owner) <> current_user ORDER BY 1 LIMIT 100";
    let rows = session.client.query(query, &[]).await?;
    let lines: Vec<_> = rows.iter().map(|row| printable(row.get(0))).collect();
    Ok(lines.join("\n"))
}

/// The finding about policies that may call a function of claims for each row. A call in a scalar
/// subquery, such as `(SELECT tidegate.user_id())`, runs only once for each statement.
async fn slow_policies(session: &Session, tenant: &RecordedTenant) -> Result<Option<Finding>> {
    let query = "SELECT pg_catalog.format('%I on %I.%I', p.polname, n.nspname, c.relname) \
        FROM pg_catalog.pg_policy p \
        JOIN pg_catalog.pg_class c ON c.oid = p.polrelid \
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
        WHERE pg_catalog.regexp_replace(pg_catalog.concat( \
                pg_catalog.pg_get_expr(p.polqual, p.polrelid), ' ', \
                pg_catalog.pg_get_expr(p.polwithcheck, p.polrelid)), \
            'SELECT \\(*tidegate\\.(user_id|claims|claim)\\(', '', 'g') \
            ~ '\\mtidegate\\.(user_id|claims|claim)\\(' \
        ORDER BY 1 LIMIT 6";
    let rows = session.client.query(query, &[]).await?;
    let policies: Vec<_> = rows.iter().map(|row| printable(row.get(0))).collect();
    let text = format!(
        "policies in {} call a function of claims for each row; write (SELECT tidegate.user_id()) \
         instead of tidegate.user_id(), so that it is called once for a statement: {}",
        tenant.name,
        policies.join(", ")
    );
    Ok((!policies.is_empty()).then(|| Finding::advice(text, None)))
}
