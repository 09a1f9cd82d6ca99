//! Creates triggers on a table, and ensures that no change is missed.

use tidegate_changelog::{Captured, Demand, LogError, LogPosition, LogResult};
use tidegate_sql::DatabaseName;
use tokio::time::Instant;

use super::locked_work::LockedWork;
use super::{Shared, position, schema, unreadable};
use crate::capture_session::CaptureSession;
use crate::open_transactions;
use crate::table_kind::check_kind;

/// Captures a table; see [`tidegate_changelog::ChangeLog::capture`].
pub(super) async fn capture(
    shared: &Shared,
    database: &DatabaseName,
    demand: &Demand,
) -> LogResult<Captured> {
    let deadline = Instant::now() + demand.timeout;
    let admin = schema::ensure(shared, database).await?;
    let table = Table::inspect(&admin, demand, deadline).await?;
    if let (true, Some(since)) = (table.has_triggers, table.since) {
        return Ok(captured_since(since));
    }
    if !table.has_triggers {
        if table.since.is_some() {
            // If a user dropped or disabled triggers, `INSPECT` records a gap in the outbox. The
            // streams of all nodes then end, and each node reports the gap to its subscribers.
            admin.rows(INSPECT, &[]).await?;
        }
        let attached = attach(shared, database, &admin, (demand, &table), deadline).await;
        attached.map_err(|error| match error {
            LogError::TimedOut { .. } => LogError::TimedOut {
                what: format!("the end of the transactions that write to {}", table.name),
                limit: demand.timeout,
            },
            error => error,
        })?;
    }
    // Transactions that found the lease expired, or found no trigger, did not write to the outbox.
    // Wait until they have ended.
    if !admin.rows(OPEN_BEFORE_RENEWAL, &[]).await?.is_empty() {
        let rest = deadline.saturating_duration_since(Instant::now());
        open_transactions::wait_until_ended(&admin.client, rest).await?;
    }
    let seen = admin.partitions(demand.relation).await?;
    let partitions = seen.map(|seen| seen.partitions.to_text());
    let work = LockedWork::Rows(MARK, &[&demand.relation, &partitions]);
    let rows = admin.retry_until_locked(deadline, work).await?;
    let row = rows.first().ok_or_else(|| unreadable("a position"))?;
    Ok(captured_since(position(row.get(0))))
}

fn captured_since(since: LogPosition) -> Captured {
    Captured {
        since,
        barrier: since,
    }
}

/// A table and the state of its capture.
struct Table {
    /// The schema-qualified and quoted name.
    name: String,
    owner: String,
    /// Whether the table has enabled triggers for everything that the demand asks for.
    has_triggers: bool,
    /// The position from which the outbox has all changes of the table; `None` if it is not known.
    since: Option<LogPosition>,
    /// The names of the service's triggers that exist, from this or an earlier release. They are
    /// dropped when new triggers are created.
    old_triggers: Vec<String>,
    /// The schema-qualified and quoted names of the table's partitions.
    partitions: Vec<String>,
}

impl Table {
    async fn inspect(
        admin: &CaptureSession,
        demand: &Demand,
        deadline: Instant,
    ) -> LogResult<Self> {
        let work = LockedWork::Rows(TABLE, &[&demand.relation, &demand.changes]);
        let rows = admin.retry_until_locked(deadline, work).await?;
        let row = rows.first().ok_or(LogError::NoTable)?;
        check_kind(row.get(0), row.get(1), row.get(2))?;
        Ok(Self {
            name: row.get(3),
            owner: row.get(4),
            has_triggers: row.get(5),
            since: row.get::<_, Option<i64>>(6).map(position),
            old_triggers: row.get(7),
            partitions: row.get(8),
        })
    }
}

/// Creates the triggers on a table, as the owner of the database if possible, otherwise as the
/// administrator.
async fn attach(
    shared: &Shared,
    database: &DatabaseName,
    admin: &CaptureSession,
    (demand, table): (&Demand, &Table),
    deadline: Instant,
) -> LogResult<()> {
    let commands = table.triggers(demand);
    if let Some(owner) = owner(shared, database, admin, table, deadline).await? {
        match owner
            .retry_until_locked(deadline, LockedWork::Run(&commands))
            .await
        {
            // The owner may lack a privilege, for example if a partition has another owner.
            Err(LogError::NotAllowed { .. }) => {}
            outcome => return outcome.map(drop),
        }
    }
    let rows = admin.rows(MAY_CHANGE, &[&table.owner]).await?;
    if !rows.first().is_some_and(|row| row.get(0)) {
        let (role, owner) = (&shared.logins.admin.admin_role, &table.owner);
        return Err(LogError::NotAllowed {
            reason: format!("{role} may not put triggers on {} of {owner}", table.name),
            remedy: format!("run GRANT \"{owner}\" TO \"{role}\""),
        });
    }
    admin
        .retry_until_locked(deadline, LockedWork::Run(&commands))
        .await?;
    Ok(())
}

/// Opens a session of the database's owner. If the owner lacks the privileges to use the trigger
/// functions, grants them. Returns `None` if the owner cannot log in, or may not create triggers on
/// the table.
async fn owner(
    shared: &Shared,
    database: &DatabaseName,
    admin: &CaptureSession,
    table: &Table,
    deadline: Instant,
) -> LogResult<Option<CaptureSession>> {
    let Some(owner) = CaptureSession::owner(&shared.logins, database).await? else {
        return Ok(None);
    };
    let rows = owner.rows(MAY_CHANGE, &[&table.owner]).await?;
    let Some(row) = rows.first().filter(|row| row.get(0)) else {
        return Ok(None);
    };
    let (role, has_right): (&str, bool) = (row.get(1), row.get(2));
    if !has_right {
        let grant = format!(
            "GRANT USAGE ON SCHEMA tidegate_outbox TO {role}; \
             GRANT EXECUTE ON FUNCTION tidegate_outbox.note(), \
             tidegate_outbox.note_truncate() TO {role}"
        );
        admin
            .retry_until_locked(deadline, LockedWork::Run(&grant))
            .await?;
    }
    Ok(Some(owner))
}

impl Table {
    /// The commands that create the triggers. `CREATE TRIGGER` waits until all transactions that
    /// write to the table have ended. Later transactions see the triggers.
    fn triggers(&self, demand: &Demand) -> String {
        let (name, oid) = (&self.name, demand.relation);
        let operations = if demand.changes {
            "INSERT OR UPDATE OR DELETE"
        } else {
            "INSERT"
        };
        let old = self.old_triggers.iter();
        let mut commands: Vec<String> = old
            .map(|trigger| format!("DROP TRIGGER \"{trigger}\" ON {name}"))
            .collect();
        // The trigger's name sorts first, so that a row's own change is recorded before the changes
        // that other triggers of the row make. With ALWAYS the trigger also fires for changes that
        // a PostgreSQL subscription applies.
        commands.push(format!(
            "CREATE TRIGGER \"!tidegate_outbox\" AFTER {operations} ON {name} \
             FOR EACH ROW EXECUTE FUNCTION tidegate_outbox.note('{oid}'); \
             CREATE TRIGGER \"!tidegate_outbox_truncate\" AFTER TRUNCATE ON {name} \
             FOR EACH STATEMENT EXECUTE FUNCTION tidegate_outbox.note_truncate(); \
             ALTER TABLE {name} ENABLE ALWAYS TRIGGER \"!tidegate_outbox\", \
             ENABLE ALWAYS TRIGGER \"!tidegate_outbox_truncate\""
        ));
        // Before version 15, ENABLE ALWAYS on a partitioned table does not change the triggers of
        // its partitions.
        commands.extend(self.partitions.iter().map(|partition| {
            format!("ALTER TABLE {partition} ENABLE ALWAYS TRIGGER \"!tidegate_outbox\"")
        }));
        commands.join("; ")
    }
}

const INSPECT: &str = "SELECT tidegate_outbox.inspect()";

const OPEN_BEFORE_RENEWAL: &str = "\
    SELECT FROM tidegate_outbox.state \
    WHERE pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot()) < renewed";

const TABLE: &str = "\
    SELECT c.relkind::text, c.relpersistence::text, c.relispartition, \
           pg_catalog.format('%I.%I', n.nspname, c.relname), \
           pg_catalog.pg_get_userbyid(c.relowner)::text, \
           EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid \
                   AND t.tgfoid = 'tidegate_outbox.note()'::pg_catalog.regprocedure \
                   AND t.tgenabled = 'A' AND (t.tgtype & 24 = 24 OR NOT $2) \
                   AND t.tgargs = pg_catalog.convert_to(c.oid::text, 'UTF8') || '\\x00'::bytea) \
           AND EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid \
                   AND t.tgfoid = 'tidegate_outbox.note_truncate()'::pg_catalog.regprocedure \
                   AND t.tgenabled = 'A') \
           AND NOT EXISTS (SELECT FROM pg_catalog.pg_partition_tree(c.oid) r \
                   JOIN pg_catalog.pg_trigger t ON t.tgrelid = r.relid \
                   WHERE t.tgfoid = 'tidegate_outbox.note()'::pg_catalog.regprocedure \
                   AND t.tgenabled IN ('D', 'R')), \
           (SELECT CASE WHEN d.since IS NOT NULL THEN greatest(d.since, d.changed) END \
            FROM tidegate_outbox.captured d WHERE d.relation = c.oid), \
           ARRAY(SELECT t.tgname::text FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid \
                 AND t.tgname IN ('!tidegate_outbox', '!tidegate_outbox_truncate')), \
           ARRAY(SELECT pg_catalog.format('%I.%I', m.nspname, p.relname) \
                 FROM pg_catalog.pg_partition_tree(c.oid) r \
                 JOIN pg_catalog.pg_class p ON p.oid = r.relid \
                 JOIN pg_catalog.pg_namespace m ON m.oid = p.relnamespace \
                 WHERE p.oid <> c.oid AND p.relkind IN ('r', 'p')) \
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE c.oid = $1";

/// Selects three values: whether the session's role may change objects of the role `$1`, the quoted
/// name of the session's role, and whether the session's role may use the schema of the trigger
/// functions. Selects no row if the role `$1` does not exist.
const MAY_CHANGE: &str = "\
    SELECT pg_catalog.pg_has_role($1::text::name, 'USAGE'), pg_catalog.quote_ident(current_user), \
           pg_catalog.has_schema_privilege('tidegate_outbox', 'USAGE') \
    FROM pg_catalog.pg_roles r WHERE r.rolname = $1::text::name";

const MARK: &str = "\
    INSERT INTO tidegate_outbox.captured AS known (relation, since, partitions) \
    VALUES ($1, tidegate_outbox.advance(), $2) \
    ON CONFLICT (relation) DO UPDATE SET since = EXCLUDED.since, \
        partitions = coalesce(known.partitions, EXCLUDED.partitions) RETURNING since";
