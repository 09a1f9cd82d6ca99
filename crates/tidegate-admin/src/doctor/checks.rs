//! Checks the administrator's privileges, the template of new databases, and the connection to the
//! server.

use tidegate_wire::{Config, TlsMode, version};

use super::super::script::identifier;
use super::super::session::Session;
use super::super::{Result, role};
use super::Finding;

/// Checks the version of PostgreSQL, and that the administrator may create roles and databases, and
/// may see and terminate sessions.
pub(super) async fn rights(session: &Session) -> Result<Vec<Finding>> {
    let row = session
        .client
        .query_one(
            "SELECT rolcreaterole OR rolsuper, rolcreatedb OR rolsuper, \
                    pg_catalog.pg_has_role(current_user, 'pg_signal_backend', 'USAGE'), \
                    pg_catalog.pg_has_role(current_user, 'pg_read_all_stats', 'USAGE') \
             FROM pg_catalog.pg_roles WHERE rolname = current_user",
            &[],
        )
        .await?;
    let admin = identifier(&session.role);
    let mut findings = vec![
        version_of(session),
        Finding::require(
            row.get(0),
            "the administrator may create roles",
            "the administrator may not create roles, and every user is one",
            format!("ALTER ROLE {admin} CREATEROLE;"),
        ),
        Finding::require(
            row.get(1),
            "the administrator may create databases",
            "the administrator may not create databases, which `tenant create` needs",
            format!("ALTER ROLE {admin} CREATEDB;"),
        ),
        Finding::require(
            row.get(2),
            "the administrator may terminate the sessions of users",
            "the administrator may not end sessions: a statement that ignores its cancellation \
             would run on",
            format!("GRANT pg_signal_backend TO {admin};"),
        ),
        Finding::require(
            row.get(3),
            "the administrator sees the sessions of users",
            "the administrator does not see the sessions of users",
            format!("GRANT pg_read_all_stats TO {admin};"),
        ),
    ];
    findings.extend(administered_roles(session).await?);
    Ok(findings)
}

fn version_of(session: &Session) -> Finding {
    let major = session.version / 10_000;
    match major {
        version::OLDEST..=version::NEWEST => Finding::ok(format!("PostgreSQL {major}")),
        0..version::OLDEST => Finding::missing(
            format!("PostgreSQL {major} is older than {}", version::OLDEST),
            None,
        ),
        _ => Finding::advice(
            format!(
                "PostgreSQL {major} is newer than {}, the newest tested",
                version::NEWEST
            ),
            None,
        ),
    }
}

/// Checks that the administrator has the ADMIN OPTION for users' roles. Since PostgreSQL 16, a role
/// with CREATEROLE alone cannot change roles that another role created, for example while restoring
/// a backup.
async fn administered_roles(session: &Session) -> Result<Option<Finding>> {
    if session.superuser || !version::roles_need_admin_option(session.version) {
        return Ok(None);
    }
    let rows = session
        .client
        .query(
            "SELECT r.rolname::text FROM pg_catalog.pg_roles r \
             WHERE pg_catalog.shobj_description(r.oid, 'pg_authid') LIKE ($1::text || '%') \
               AND NOT pg_catalog.pg_has_role(current_user, r.oid, 'USAGE WITH ADMIN OPTION') \
             ORDER BY 1",
            &[&role::MARK],
        )
        .await?;
    let admin = identifier(&session.role);
    let grant = |row: &tokio_postgres::Row| {
        let role = identifier(row.get(0));
        format!("GRANT {role} TO {admin} WITH ADMIN TRUE, INHERIT FALSE, SET FALSE;")
    };
    let sql: Vec<String> = rows.iter().map(grant).collect();
    Ok(Some(Finding::require(
        sql.is_empty(),
        "the administrator administers every user's role",
        "the administrator has no ADMIN OPTION on some users' roles",
        sql.join("\n"),
    )))
}

/// Checks that new databases can have the encoding UTF8, and that the administrator can give their
/// schema `public` to a tenant's owner.
pub(super) async fn template(session: &Session) -> Result<Vec<Finding>> {
    let row = session
        .client
        .query_one(
            "SELECT pg_catalog.pg_encoding_to_char(encoding)::text, \
                    datcollate IN ('C', 'POSIX') AND datctype IN ('C', 'POSIX') \
             FROM pg_catalog.pg_database WHERE datname = 'template0'",
            &[],
        )
        .await?;
    let (encoding, any): (String, bool) = (row.get(0), row.get(1));
    let mut findings = Vec::new();
    // A template can be copied in another encoding only if its locale works with every encoding.
    if encoding != "UTF8" && !any {
        findings.push(Finding::missing(
            format!("template0 has the encoding {encoding}: new databases must have UTF8"),
            "-- create the cluster again with initdb --encoding=UTF8".to_owned(),
        ));
    }
    if !session.superuser && !version::database_owner_owns_public(session.version) {
        findings.push(Finding::advice(
            "on PostgreSQL 13 and 14 an administrator that is no superuser can make tenants only \
             when it owns the schema public of template1",
            format!(
                "\\connect template1\nALTER SCHEMA public OWNER TO {};",
                identifier(&session.role)
            ),
        ));
    }
    Ok(findings)
}

/// Checks that the connection is encrypted with a verified certificate, unless PostgreSQL is on
/// this machine.
pub(super) async fn encryption(session: &Session, config: &Config) -> Result<Finding> {
    let row = session
        .client
        .query_opt(
            "SELECT ssl FROM pg_catalog.pg_stat_ssl WHERE pid = pg_catalog.pg_backend_pid()",
            &[],
        )
        .await?;
    let encrypted = row.is_some_and(|row| row.get(0));
    Ok(match (encrypted, config.tls) {
        _ if config.is_local() => Finding::ok("PostgreSQL is on this machine"),
        (true, TlsMode::VerifyFull) => Finding::ok("the connection to PostgreSQL is encrypted"),
        (true, _) => Finding::advice(
            "the connection to PostgreSQL is encrypted, but its certificate is not checked in full; set \
             sslmode to verify-full",
            None,
        ),
        (false, _) => Finding::missing(
            "the connection to PostgreSQL is not encrypted; set sslmode to verify-full",
            None,
        ),
    })
}
