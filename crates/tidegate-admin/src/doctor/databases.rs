//! Checks inside of databases: the control database, and the databases of tenants.

use super::super::script::identifier;
use super::super::session::Session;
use super::super::{Admin, Error, Result, restricted, tenant};
use super::recorded_tenants;
use super::{
    ChangeSource, Finding, Severity, authenticators, claims, logins, missing_objects, shared,
};

impl Admin {
    /// Checks the tenants that the control database records: whether their databases and roles
    /// exist, what PUBLIC may do in the databases, and whether change events can come from them.
    /// Connects to each database.
    ///
    /// # Errors
    ///
    /// Only if the list of databases cannot be read.
    pub async fn examine_tenants(&self, feed: ChangeSource<'_>) -> Result<Vec<Finding>> {
        let home = self.open_admin_database().await?;
        let tenants = recorded_tenants::tenants(self, &home).await?;
        let mut findings = Vec::new();
        for tenant in &tenants {
            let found = missing_objects::examine(&home, tenant, feed).await?;
            // If there is a problem with the tenant, no login is tried, because the problem may
            // explain why logins fail.
            let refused = if found
                .iter()
                .all(|finding| finding.severity == Severity::Good)
            {
                logins::refused(self, &home, tenant).await?
            } else {
                Vec::new()
            };
            findings.extend(if refused.is_empty() { found } else { refused });
        }
        findings.extend(shared::default_users(self, &home).await?);
        for name in recorded_tenants::databases(&home, &tenants).await? {
            match self.open(&name).await {
                Ok(session) => {
                    let owner = tenants.iter().find(|tenant| tenant.name == name);
                    let owner = owner.map(|tenant| tenant.owner_role.as_str());
                    let restricted = restricted_functions(&session, (&name, owner), feed);
                    findings.push(restricted.await?);
                    if let Some(tenant) = tenants.iter().find(|tenant| tenant.name == name) {
                        findings.extend(authenticators::examine(&session, tenant).await?);
                        findings.extend(claims::examine(self, &session, tenant).await?);
                    }
                    if matches!(feed, ChangeSource::Outbox) {
                        findings.push(outbox(&session, &name).await?);
                    }
                }
                Err(error) => findings.push(cannot_open(&home, &name, &error)),
            }
        }
        Ok(findings)
    }

    /// The fingerprint of the master key, as recorded when the control database was set up; `None`
    /// if the database does not exist, is empty or cannot be read.
    pub async fn recorded_fingerprint(&self) -> Result<Option<String>> {
        let name = self.config.control_database.as_str();
        if !tenant::database_exists(&self.open_admin_database().await?, name).await? {
            return Ok(None);
        }
        let Ok(session) = self.open(name).await else {
            return Ok(None);
        };
        let found = session
            .client
            .query_opt("SELECT fingerprint FROM tidegate.master_key", &[])
            .await;
        Ok(found.ok().flatten().map(|row| row.get(0)))
    }
}

/// Reports that a database cannot be opened. If the administrator lacks CONNECT, the finding has
/// the SQL that grants it.
fn cannot_open(home: &Session, database: &str, error: &Error) -> Finding {
    let sql = (error.sqlstate() == Some("42501")).then(|| {
        format!(
            "GRANT CONNECT ON DATABASE {} TO {} WITH GRANT OPTION;",
            identifier(database),
            identifier(&home.role)
        )
    });
    let reason = error.reason();
    let text = format!("the database {database} cannot be opened ({reason})");
    Finding::advice(text, sql)
}

/// The functions that an outbox calls to detect that the database is a copy, or that the server was
/// promoted.
const LOG_FUNCTIONS: [&str; 3] = [
    "pg_catalog.pg_control_system()",
    "pg_catalog.pg_current_wal_insert_lsn()",
    "pg_catalog.pg_walfile_name(pg_catalog.pg_lsn)",
];

/// The finding about the outbox: whether it exists or can be created, and whether the administrator
/// may call the functions that it needs.
async fn outbox(session: &Session, database: &str) -> Result<Finding> {
    let row = session
        .client
        .query_one(
            "SELECT coalesce((SELECT pg_catalog.pg_has_role(nspowner, 'USAGE') \
                              FROM pg_catalog.pg_namespace WHERE nspname = 'tidegate_outbox'), \
                    pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE')), \
                    ARRAY(SELECT f FROM pg_catalog.unnest($1::text[]) f \
                     WHERE NOT pg_catalog.has_function_privilege( \
                         pg_catalog.to_regprocedure(f)::pg_catalog.oid, 'EXECUTE'))",
            &[&&LOG_FUNCTIONS[..]],
        )
        .await?;
    let (may_create, refused): (bool, Vec<&str>) = (row.get(0), row.get(1));
    let (name, role) = (identifier(database), identifier(&session.role));
    let mut sql = Vec::new();
    if !may_create {
        sql.push(format!("GRANT CREATE ON DATABASE {name} TO {role};"));
    }
    if !refused.is_empty() {
        sql.push(format!("\\connect {name}"));
    }
    let execute = |function| format!("GRANT EXECUTE ON FUNCTION {function} TO {role};");
    sql.extend(refused.iter().map(execute));
    Ok(Finding::recommend(
        sql.is_empty(),
        &format!("the database {database} can have an outbox"),
        &format!("the database {database} can have no outbox: change events need it"),
        sql.join("\n"),
    ))
}

/// Checks whether PUBLIC may call functions that are dangerous even if the caller has no privilege
/// on any table.
async fn restricted_functions(
    session: &Session,
    (database, owner): (&str, Option<&str>),
    feed: ChangeSource<'_>,
) -> Result<Finding> {
    let open = restricted::open_to_all(session).await?;
    // The SQL grants the functions to the service's own logins, because these logins take advisory
    // locks in the database.
    let mut service = Vec::new();
    if !session.superuser {
        service.push(session.role.as_str());
    }
    if let Some(reader) = feed.reader() {
        let reader = reader.admin_role.as_str();
        if reader != session.role && !session.is_superuser(reader).await? {
            service.push(reader);
        }
    }
    let sql = format!(
        "\\connect {}\n{}",
        identifier(database),
        restricted::script(&open, owner, &service)
    );
    Ok(Finding::recommend(
        open.is_empty(),
        &format!(
            "in {database}, only roles that the owner allows may take advisory locks, make large \
             objects and end sessions"
        ),
        &format!(
            "in {database}, everybody may take advisory locks (their table is shared by all \
             databases), fill the disk with large objects and messages in the log of changes, and \
             end the sessions of others with the same role; the default user may too; grant \
             EXECUTE to those roles of your own that need it before this"
        ),
        sql.trim_end().to_owned(),
    ))
}

/// Checks the administrator's privileges on the content of the control database.
pub(super) async fn control_schema(admin: &Admin, home: &Session) -> Result<Option<Finding>> {
    let name = admin.config.control_database.as_str();
    if !tenant::database_exists(home, name).await? {
        return Ok(None);
    }
    // If the database cannot be opened for lack of the privilege CONNECT, `control_database`
    // reports that.
    let Ok(session) = admin.open(name).await else {
        return Ok(None);
    };
    let row = session
        .client
        .query_opt(
            "SELECT pg_catalog.has_schema_privilege(current_user, n.oid, 'USAGE') \
                    AND pg_catalog.has_schema_privilege(current_user, n.oid, 'CREATE'), \
                    NOT EXISTS ( \
                        SELECT FROM pg_catalog.pg_class c \
                        CROSS JOIN (VALUES ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE')) p (name) \
                        WHERE c.relnamespace = n.oid AND c.relkind = 'r' \
                          AND NOT pg_catalog.has_table_privilege(current_user, c.oid, p.name)), \
                    NOT EXISTS ( \
                        SELECT FROM pg_catalog.pg_class c \
                        WHERE c.relnamespace = n.oid AND c.relkind = 'r' \
                          AND NOT pg_catalog.pg_has_role(current_user, c.relowner, 'USAGE')) \
             FROM pg_catalog.pg_namespace n WHERE n.nspname = 'tidegate'",
            &[],
        )
        .await?;
    let Some(row) = row else {
        return Ok(None);
    };
    let (schema, tables, owns): (bool, bool, bool) = (row.get(0), row.get(1), row.get(2));
    let to = identifier(&session.role);
    let connect = format!("\\connect {}", identifier(name));
    if schema && tables && !owns {
        return Ok(Some(Finding::advice(
            "the administrator does not own what is in the control database: a newer version may \
             not be able to bring it up to date",
            format!("{connect}\n-- REASSIGN OWNED BY <the role that made it> TO {to};"),
        )));
    }
    Ok(Some(Finding::require(
        schema && tables,
        "the administrator may read and write what is in the control database",
        "the administrator may not read and write all that is in the control database",
        format!(
            "{connect}\nGRANT ALL ON SCHEMA tidegate TO {to};\n\
             GRANT ALL ON ALL TABLES IN SCHEMA tidegate TO {to};\n\
             GRANT ALL ON ALL SEQUENCES IN SCHEMA tidegate TO {to};"
        ),
    )))
}
