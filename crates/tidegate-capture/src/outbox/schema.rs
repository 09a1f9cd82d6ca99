//! The schema of the outbox in a database. The schema is created if it is missing. It is reset if
//! it was copied from another database, or if the server is a standby that was promoted.

use tidegate_changelog::{LogError, LogResult};
use tidegate_sql::DatabaseName;
use tracing::info;

use super::session::STATEMENT_TIMEOUT;
use super::{Shared, unreadable};
use crate::capture_session::CaptureSession;

const SCHEMA: &str = include_str!("schema.sql");
const PRIVILEGES: &str = include_str!("privileges.sql");

/// Creates the outbox if it does not exist or is outdated, and renews the lease, so that triggers
/// write into the outbox. Returns a session of the administrator.
///
/// # Errors
///
/// [`LogError::NotAllowed`] if the administrator may not create the outbox, or if its schema
/// belongs to another role.
pub(super) async fn ensure(shared: &Shared, database: &DatabaseName) -> LogResult<CaptureSession> {
    let admin = CaptureSession::admin(&shared.logins, database).await?;
    if !is_current(&admin).await? {
        admin.begin().await?;
        let made = create(shared, database, &admin).await;
        admin.end(made).await?;
    }
    renew(shared, database, &admin).await?;
    Ok(admin)
}

/// Renews the lease. Returns whether triggers may have stopped writing before the lease was
/// renewed.
pub(super) async fn renew(
    shared: &Shared,
    database: &DatabaseName,
    admin: &CaptureSession,
) -> LogResult<bool> {
    let seconds = i64::try_from(shared.settings.lease.as_secs()).unwrap_or(i64::MAX);
    let rows = admin
        .rows("SELECT tidegate_outbox.renew($1)", &[&seconds])
        .await?;
    let row = rows.first().ok_or_else(|| unreadable("a lease"))?;
    let may_have_stopped = row.get(0);
    if may_have_stopped {
        info!(%database, "outbox triggers are writing again");
    }
    Ok(may_have_stopped)
}

/// Prepares a session that assigns positions to transactions or reads their changes. The session
/// gets the statement timeout [`STATEMENT_TIMEOUT`]. If `synchronous_commit` is off, it is changed
/// to `local`. A commit that assigns positions to transactions then also flushes the commits of
/// these transactions. Otherwise, if a writer has turned `synchronous_commit` off, a crash could
/// undo a change that a subscriber has already received.
pub(super) async fn configure_session(admin: &CaptureSession) -> LogResult<()> {
    let timeout = STATEMENT_TIMEOUT.as_millis();
    admin
        .run(&format!(
            "SET statement_timeout = {timeout}; \
             SELECT pg_catalog.set_config('synchronous_commit', 'local', false) \
             WHERE pg_catalog.current_setting('synchronous_commit') = 'off'"
        ))
        .await
}

/// Whether the outbox exists, is complete, and was created in this database. A copy of a database
/// contains the outbox of the original.
async fn is_current(admin: &CaptureSession) -> LogResult<bool> {
    Ok(exists(admin).await? && is_complete(admin).await? && belongs_to_database(admin).await?)
}

async fn belongs_to_database(admin: &CaptureSession) -> LogResult<bool> {
    let rows = admin.rows(BELONGS_TO_DATABASE, &[]).await?;
    Ok(rows.first().is_some_and(|row| row.get(0)))
}

/// Whether the outbox has everything that this release creates, and only its owner has privileges
/// on its schema.
async fn is_complete(admin: &CaptureSession) -> LogResult<bool> {
    Ok(!admin.rows(COMPLETE_QUERY, &[]).await?.is_empty())
}

/// Creates the outbox. If it exists, adds what an earlier release did not create, and resets an
/// outbox that belongs to another database or timeline.
async fn create(shared: &Shared, database: &DatabaseName, admin: &CaptureSession) -> LogResult<()> {
    if exists(admin).await? {
        admin.run(COMPLETE).await?;
        admin.run(PRIVILEGES).await?;
        if !belongs_to_database(admin).await? {
            info!(%database, "outbox restarted: the database is a copy or was restored");
            admin.run("SELECT tidegate_outbox.restart()").await?;
        }
        return Ok(());
    }
    let rows = admin.rows(MAY_CREATE, &[]).await?;
    if !rows.first().is_some_and(|row| row.get(0)) {
        let role = &shared.logins.admin.admin_role;
        return Err(LogError::NotAllowed {
            reason: format!("{role} may not make a schema in {database}"),
            remedy: format!("run GRANT CREATE ON DATABASE \"{database}\" TO \"{role}\""),
        });
    }
    admin.run(SCHEMA).await?;
    admin.run(PRIVILEGES).await
}

/// Whether the database has an outbox.
///
/// # Errors
///
/// [`LogError::NotAllowed`] if the schema with the outbox's name belongs to another role.
pub(super) async fn exists(admin: &CaptureSession) -> LogResult<bool> {
    let rows = admin.rows(EXISTS, &[]).await?;
    let Some(row) = rows.first() else {
        return Ok(false);
    };
    if row.get(0) {
        return Ok(true);
    }
    let owner: &str = row.get(1);
    Err(LogError::NotAllowed {
        reason: format!("the schema tidegate_outbox belongs to {owner}"),
        remedy: "run `tidegate feed drop` as that role, or DROP SCHEMA tidegate_outbox \
                 CASCADE"
            .to_owned(),
    })
}

const EXISTS: &str = "\
    SELECT pg_catalog.pg_has_role(nspowner, 'USAGE'), pg_catalog.pg_get_userbyid(nspowner)::text \
    FROM pg_catalog.pg_namespace WHERE nspname = 'tidegate_outbox'";

const BELONGS_TO_DATABASE: &str =
    "SELECT origin = tidegate_outbox.origin() FROM tidegate_outbox.state";

const COMPLETE_QUERY: &str = "\
    SELECT FROM pg_catalog.pg_attribute \
    WHERE attrelid = 'tidegate_outbox.captured'::pg_catalog.regclass AND attname = 'partitions' \
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_namespace n, pg_catalog.aclexplode(n.nspacl) a \
                    WHERE n.nspname = 'tidegate_outbox' AND a.grantee <> n.nspowner)";

/// Adds the columns for partitions, which an earlier release did not create.
const COMPLETE: &str = "\
    ALTER TABLE tidegate_outbox.captured ADD COLUMN IF NOT EXISTS changed bigint, \
        ADD COLUMN IF NOT EXISTS partitions text";

const MAY_CREATE: &str =
    "SELECT pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE')";
