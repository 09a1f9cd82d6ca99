//! Checks the resources that all databases of the cluster share, and those that anonymous callers
//! could exhaust.

use std::fmt::Write as _;

use super::super::script::{Script, identifier};
use super::super::session::Session;
use super::super::{Admin, Result, shared, tenant};
use super::{ChangeSource, Finding, Severity};

/// The fill level of the `NOTIFY` queue, as a fraction, from which the doctor reports a problem.
/// The queue fills if a session that listens has been in a transaction for a long time, because
/// sessions read the queue only between transactions.
const QUEUE: f64 = 0.1;

/// Checks the databases that come with the cluster. Users of tenants should not connect to these
/// databases.
pub(super) async fn maintenance_databases(
    session: &Session,
    feed: ChangeSource<'_>,
) -> Result<Finding> {
    let rows = session
        .client
        .query(
            "SELECT DISTINCT d.datname::text FROM pg_catalog.pg_database d \
             CROSS JOIN LATERAL pg_catalog.aclexplode( \
                 coalesce(d.datacl, pg_catalog.acldefault('d', d.datdba)) || '{}') a \
             WHERE d.datname IN ('postgres', 'template1') AND a.grantee = 0 \
               AND a.privilege_type IN ('CONNECT', 'TEMPORARY') ORDER BY 1",
            &[],
        )
        .await?;
    let open: Vec<&str> = rows.iter().map(|row| row.get(0)).collect();
    let mut logins = Vec::new();
    if !session.superuser {
        logins.push(session.role.as_str());
    }
    if let Some(reader) = feed.reader() {
        let reader = reader.admin_role.as_str();
        if reader != session.role && !session.is_superuser(reader).await? {
            logins.push(reader);
        }
    }
    let mut sql: Vec<String> = logins
        .iter()
        .map(|login| {
            let login = identifier(login);
            format!("GRANT CONNECT ON DATABASE postgres TO {login};")
        })
        .collect();
    let databases = open.join(", ");
    sql.push(format!(
        "REVOKE CONNECT, TEMPORARY ON DATABASE {databases} FROM PUBLIC;"
    ));
    Ok(Finding::recommend(
        open.is_empty(),
        "only roles that are granted it may connect to postgres and template1",
        &format!(
            "every role may connect to {databases} where it reaches PostgreSQL's port, users of \
             tenants too; grant CONNECT to those roles of your own that need it before this"
        ),
        sql.join("\n"),
    ))
}

/// Reports how full the queue of `NOTIFY` is. When it is full, transactions with a `NOTIFY` fail in
/// all databases of the cluster.
pub(super) async fn notification_queue(session: &Session) -> Result<Finding> {
    let row = session
        .client
        .query_one(
            "SELECT pg_catalog.pg_notification_queue_usage(), \
                    o.pid, o.usename::text, o.datname::text, o.xact_start::text \
             FROM (SELECT) one LEFT JOIN LATERAL ( \
                 SELECT a.* FROM pg_catalog.pg_stat_activity a \
                 WHERE a.xact_start IS NOT NULL AND a.pid <> pg_catalog.pg_backend_pid() \
                 ORDER BY a.xact_start LIMIT 1) o ON true",
            &[],
        )
        .await?;
    let usage: f64 = row.get(0);
    if usage < QUEUE {
        return Ok(Finding::ok("the queue of NOTIFY is almost empty"));
    }
    let mut text = format!(
        "the queue of NOTIFY is {:.0} % full; when it is full no transaction that notifies commits",
        usage * 100.0
    );
    let oldest: Option<i32> = row.get(1);
    if oldest.is_some() {
        let [role, database, since] = [2, 3, 4].map(|column| row.get::<_, Option<String>>(column));
        let _ = write!(
            text,
            "; a session that listens reads it between transactions only, and the oldest \
             transaction is that of {} in {}, since {}",
            role.unwrap_or_default(),
            database.unwrap_or_default(),
            since.unwrap_or_default()
        );
    }
    let end = oldest.map(|pid| format!("SELECT pg_terminate_backend({pid});"));
    Ok(Finding::advice(text, end))
}

/// Notes that PostgreSQL has no setting that limits the memory of a session.
pub(super) fn memory() -> Finding {
    Finding {
        text:
            "one statement can take all memory of PostgreSQL's machine: give PostgreSQL a memory \
               cgroup (systemd: MemoryMax), or set vm.overcommit_memory=2"
                .to_owned(),
        severity: Severity::Note,
        sql: None,
    }
}

/// The finding about default users whose temporary files are not limited.
pub(super) async fn default_users(admin: &Admin, home: &Session) -> Result<Option<Finding>> {
    let control = admin.config.control_database.as_str();
    if !tenant::database_exists(home, control).await? {
        return Ok(None);
    }
    // If the database cannot be opened or read, the checks of the control database report that.
    let Ok(session) = admin.open(control).await else {
        return Ok(None);
    };
    let users = "SELECT role FROM tidegate.users WHERE default_user";
    let rows = session.client.query(users, &[]).await.unwrap_or_default();
    let roles: Vec<&str> = rows.iter().map(|row| row.get(0)).collect();
    if roles.is_empty() {
        return Ok(None);
    }
    let rows = home.client.query(UNBOUND, &[&roles]).await?;
    let unbound: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let mut script = Script::default();
    for role in &unbound {
        script.append(shared::set(role));
    }
    Ok(Some(Finding::recommend(
        unbound.is_empty(),
        "the temporary files of default users are limited",
        &format!(
            "nothing limits the temporary files of default users (temp_file_limit is -1): {}",
            unbound.join(", ")
        ),
        script.to_string().trim_end().to_owned(),
    )))
}

/// Selects the roles without a `temp_file_limit`: it is set neither for the server, nor for the
/// role's database, nor for the role itself.
const UNBOUND: &str = "SELECT r.rolname::text FROM pg_catalog.pg_roles r \
    WHERE r.rolname = ANY ($1::text[]) AND NOT r.rolsuper \
      AND EXISTS (SELECT FROM pg_catalog.pg_settings \
                  WHERE name = 'temp_file_limit' AND setting = '-1') \
      AND NOT EXISTS ( \
          SELECT FROM pg_catalog.pg_db_role_setting s \
          LEFT JOIN pg_catalog.pg_database d ON d.oid = s.setdatabase \
          CROSS JOIN LATERAL pg_catalog.unnest(s.setconfig) AS c (setting) \
          WHERE s.setrole IN (0, r.oid) \
            AND (s.setdatabase = 0 OR d.datname = pg_catalog.split_part(r.rolname, '/', 1)) \
            AND pg_catalog.starts_with(c.setting, 'temp_file_limit=') \
            AND c.setting <> 'temp_file_limit=-1') \
    ORDER BY 1";
