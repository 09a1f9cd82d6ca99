//! Checks whether PostgreSQL accepts the logins that the service needs, and refuses wrong
//! passwords.

use std::error::Error as _;

use tidegate_changelog::LogError;
use tidegate_pool::PoolKey;
use tidegate_sql::{DatabaseName, RoleName};
use tidegate_wire::{Config, ConnectFault, Secret};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;

use super::super::script::{Script, SqlPart, comment, identifier};
use super::super::session::Session;
use super::super::{Admin, Error, Result, authenticator, group_login, role};
use super::Finding;
use super::missing_objects::names;
use super::recorded_tenants::{self, RecordedTenant};

/// The prefix of the names of the temporary roles with which the doctor tries logins.
const PROBE: &str = "tidegate_doctor_";

/// Creates a role like the role of a user, logs in with its password and with a wrong password, and
/// drops the role. The wrong password is also tried in the databases of tenants, because a line of
/// `pg_hba.conf` may apply to one database.
pub(super) async fn try_temporary_role(admin: &Admin, session: &Session) -> Result<Vec<Finding>> {
    // The name is random, because several nodes may run the check at the same time.
    let probe = format!("{PROBE}{:08x}", admin.passwords.random_number());
    let probe = probe.as_str();
    let script = match role::make(session, probe, &admin.passwords).await {
        Ok(script) => script,
        Err(error @ Error::RoleExists(_)) => {
            return Ok(vec![Finding::missing(error.to_string(), None)]);
        }
        Err(error) => return Err(error),
    };
    if let Err(error) = script.run_each(session).await {
        return Ok(vec![Finding::missing(
            format!(
                "a role for the check could not be created ({})",
                error.reason()
            ),
            None,
        )]);
    }
    let password = admin.passwords.password(probe);
    let home = admin.config.admin_database.as_str();
    let right = try_login(&admin.config, home, (probe, &password)).await;
    let databases_without_password = databases_without_password(admin, session, probe).await;
    let mut drop = Script::default();
    drop.push(&[SqlPart::Syntax("DROP ROLE "), SqlPart::Name(probe)]);
    drop.run_each(session).await?;
    Ok(vec![
        admission(right),
        refusal(&databases_without_password?),
    ])
}

/// The databases that accept a wrong password of the temporary role `probe`.
async fn databases_without_password(
    admin: &Admin,
    session: &Session,
    probe: &str,
) -> Result<Vec<String>> {
    let tenants = recorded_tenants::tenants(admin, session).await?;
    let mut databases = vec![admin.config.admin_database.to_string()];
    databases.extend(recorded_tenants::databases(session, &tenants).await?);
    let mut databases_without_password = Vec::new();
    for database in databases {
        let login = try_login(&admin.config, &database, (probe, "wrong")).await;
        if login.is_ok() {
            databases_without_password.push(database);
        }
    }
    Ok(databases_without_password)
}

fn admission(login: Result<(), String>) -> Finding {
    match login {
        Ok(()) => Finding::ok("roles of users can log in"),
        Err(problem) => Finding::missing(
            format!("roles of users cannot log in ({problem}); pg_hba.conf needs such a line"),
            "-- host all all <address of this service> scram-sha-256".to_owned(),
        ),
    }
}

fn refusal(databases_without_password: &[String]) -> Finding {
    if databases_without_password.is_empty() {
        return Finding::ok("a wrong password is refused");
    }
    Finding::missing(
        format!(
            "roles log in with any password to {}: from inside SQL a user could become another; \
             replace `trust` in pg_hba.conf by `scram-sha-256`",
            databases_without_password.join(", ")
        ),
        None,
    )
}

/// Reports lines of `pg_hba.conf` that require no password, if the administrator may read the file.
/// The other checks log in from this machine, so they do not notice a line that applies only to
/// other addresses, such as the server's own.
pub(super) async fn trusting_lines(session: &Session) -> Result<Option<Finding>> {
    let may = "SELECT pg_catalog.has_function_privilege('pg_catalog.pg_hba_file_rules()', 'EXECUTE') \
               AND pg_catalog.has_table_privilege('pg_catalog.pg_hba_file_rules', 'SELECT')";
    if !session.client.query_one(may, &[]).await?.get::<_, bool>(0) {
        return Ok(None);
    }
    let rows = session.client.query(TRUST_LINES, &[&role::MARK]).await?;
    if rows.is_empty() {
        return Ok(None);
    }
    let lines: Vec<String> = rows.iter().map(|row| comment(row.get(0))).collect();
    Ok(Some(Finding::advice(
        "pg_hba.conf asks no password of users who connect from where these lines fit: who gets \
         there, such as by a function of the server's, becomes any of them; replace `trust` by \
         `scram-sha-256`",
        lines.join("\n"),
    )))
}

const TRUST_LINES: &str = "SELECT pg_catalog.concat_ws(' ', \
        '-- line ' || h.line_number || ':', h.type, \
        pg_catalog.array_to_string(h.database, ','), \
        pg_catalog.array_to_string(h.user_name, ','), h.address, h.netmask, h.auth_method) \
    FROM pg_catalog.pg_hba_file_rules h \
    WHERE h.auth_method = 'trust' AND h.database <> '{replication}' AND EXISTS ( \
        SELECT FROM pg_catalog.unnest(h.user_name) u \
        LEFT JOIN pg_catalog.pg_roles r ON r.rolname = u \
        WHERE u = 'all' OR u ~ '^[+/]' \
           OR pg_catalog.shobj_description(r.oid, 'pg_authid') LIKE ($1::text || '%')) \
    ORDER BY h.line_number";

/// Reports the roles of a tenant as which the service cannot log in. The tenant's database must
/// exist. The check tries to log in as the [`roles_to_try`]. A superuser can also read the
/// verifiers of all roles, and thus finds every wrong password. Any other administrator finds only
/// wrong passwords of the roles that are tried, which then include the groups that log in for
/// members.
pub(super) async fn refused(
    admin: &Admin,
    home: &Session,
    tenant: &RecordedTenant,
) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let mut wrong = wrong_passwords(admin, home, tenant).await?;
    let mut roles_to_try = roles_to_try(home, tenant).await?;
    if !home.superuser {
        roles_to_try.extend(group_login::of_tenant(home, &tenant.name).await?);
    }
    for role in roles_to_try {
        if wrong.contains(&role) {
            continue;
        }
        let password = Secret::new(admin.passwords.password(&role));
        let login = admin.config.clone().with_login(&role, password);
        match Session::open(&login, &tenant.name).await {
            Ok(_) => {}
            Err(error) if error.sqlstate() == Some(SqlState::INVALID_PASSWORD.code()) => {
                wrong.push(role);
            }
            Err(error) => findings.push(cannot_log_in(tenant, &role, &error)),
        }
    }
    if !wrong.is_empty() {
        let text = format!(
            "roles of the tenant {} have another password than the one of this master key, as \
             after a restore without passwords: {}",
            tenant.name,
            names(wrong.iter().map(String::as_str))
        );
        let command = format!("-- tidegate user repair {} --all", tenant.name);
        findings.push(Finding::missing(text, command));
    }
    Ok(findings)
}

fn cannot_log_in(tenant: &RecordedTenant, role: &str, error: &Error) -> Finding {
    let key = PoolKey {
        database: DatabaseName::new(&tenant.name),
        role: RoleName::new(role),
        trusted: false,
    };
    let text = format!(
        "the role {role} of the tenant {} cannot log in ({})",
        tenant.name,
        error.reason()
    );
    let spoilt = matches!(error, Error::Connect { source, .. }
        if source.fault() == ConnectFault::Login || source.fault() == ConnectFault::Misconfigured);
    Finding::missing(text, spoilt.then(|| format!("-- {}", key.repair_command())))
}

/// The roles of a tenant with a verifier that does not match the password that the service derives.
/// Empty if the administrator is not a superuser, because PostgreSQL shows verifiers to superusers
/// only.
async fn wrong_passwords(
    admin: &Admin,
    home: &Session,
    tenant: &RecordedTenant,
) -> Result<Vec<String>> {
    if !home.superuser {
        return Ok(Vec::new());
    }
    let mut roles = tenant.user_roles().to_vec();
    roles.extend(authenticator::of_tenant(home, &tenant.name).await?);
    roles.extend(group_login::of_tenant(home, &tenant.name).await?);
    let query = "SELECT rolname::text, rolpassword FROM pg_catalog.pg_authid \
                 WHERE rolname = ANY ($1) ORDER BY 1";
    let rows = home.client.query(query, &[&roles]).await?;
    let wrong = rows.iter().filter_map(|row| {
        let (role, verifier): (String, Option<&str>) = (row.get(0), row.get(1));
        let right = verifier.is_some_and(|verifier| admin.passwords.verifies(&role, verifier));
        (!right).then_some(role)
    });
    Ok(wrong.collect())
}

/// The roles as which the check tries to log in. They include the owner, and roles with settings of
/// their own, because such settings may make every session fail. If passwords can be checked only
/// by a login, they also include the first [`MAX_TRIED`] users.
async fn roles_to_try(home: &Session, tenant: &RecordedTenant) -> Result<Vec<String>> {
    let limit = if home.superuser { 0 } else { MAX_TRIED };
    let query = "SELECT r.rolname::text FROM pg_catalog.pg_roles r \
                 WHERE r.rolname = ANY ($1) AND (r.rolname = $2 OR EXISTS ( \
                     SELECT FROM pg_catalog.pg_db_role_setting s WHERE s.setrole = r.oid)) \
                 UNION SELECT * FROM (SELECT k FROM pg_catalog.unnest($1) k LIMIT $3) first \
                 ORDER BY 1";
    let values: [&(dyn ToSql + Sync); 3] = [&tenant.user_roles(), &tenant.owner_role, &limit];
    let rows = home.client.query(query, &values).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// The maximum number of users for which a login is tried to check the password.
const MAX_TRIED: i64 = 100;

/// Logs in as the temporary role, to check its password. A missing CONNECT privilege counts as
/// success, because PostgreSQL checks the password before this privilege. The error is the reason
/// why the login failed.
async fn try_login(
    config: &Config,
    database: &str,
    (role, password): (&str, &str),
) -> Result<(), String> {
    let config = config.clone().with_login(role, Secret::new(password));
    match Session::open(&config, database).await {
        Ok(_) => Ok(()),
        Err(error) if error.sqlstate() == Some("42501") => Ok(()),
        Err(error) => Err(error.reason()),
    }
}

/// Checks that the login that reads the change log can open a replication connection.
pub(super) async fn replication(config: &Config) -> Finding {
    let name = &config.admin_role;
    match tidegate_capture::identify(config).await {
        Ok(()) => Finding::ok("changes can be read"),
        Err(LogError::NotAllowed { .. }) => {
            let role = identifier(name);
            Finding::advice(
                format!("{name} may not read changes: change events need it"),
                format!("ALTER ROLE {role} REPLICATION;"),
            )
        }
        Err(error) => {
            let cause = error
                .source()
                .map_or_else(|| error.to_string(), ToString::to_string);
            let text = format!("{name} cannot log in to read changes ({cause})");
            Finding::advice(text, None)
        }
    }
}
