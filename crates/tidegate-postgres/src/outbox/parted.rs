//! Rows that come or go with the partitions of a captured table.

use tidegate_sql::DatabaseName;
use tidegate_sql::log::{LogPosition, LogResult};

use super::{Shared, position};
use crate::actor::Actor;
use crate::partitions::Partitions;

/// See [`tidegate_sql::log::ChangeLog::partitions`].
pub(super) async fn look(
    shared: &Shared,
    database: &DatabaseName,
    relation: u32,
    told: &[u32],
) -> LogResult<Option<LogPosition>> {
    let admin = Actor::admin(&shared.logins, database).await?;
    admin.begin().await?;
    let looked = look_within(&admin, relation, told).await;
    admin.end(looked).await
}

async fn look_within(admin: &Actor, relation: u32, told: &[u32]) -> LogResult<Option<LogPosition>> {
    let rows = admin.rows(CAPTURED, &[&relation]).await?;
    let (Some(row), Some(seen)) = (rows.first(), admin.partitions(relation).await?) else {
        return Ok(None);
    };
    let changed: Option<i64> = row.get(0);
    let before: Option<&str> = row.get(1);
    let before = before.and_then(Partitions::parse);
    if before.as_ref() == Some(&seen.partitions) {
        return Ok(changed.map(position));
    }
    let mut changed = changed;
    if let Some(before) = &before
        && admin.moved(before, &seen, told).await?
    {
        // Nothing is told there, so that it is a place of its own.
        admin.run("SELECT tidegate_outbox.advance()").await?;
        let rows = admin.rows(STEP, &[]).await?;
        changed = rows.first().map(|row| row.get(0));
    }
    let now = seen.partitions.to_text();
    admin.rows(NOTE, &[&relation, &now, &changed]).await?;
    Ok(changed.map(position))
}

const CAPTURED: &str = "\
    SELECT changed, partitions FROM tidegate_outbox.captured WHERE relation = $1";

const STEP: &str = "\
    UPDATE tidegate_outbox.state SET position = position + 1 RETURNING position";

const NOTE: &str = "\
    UPDATE tidegate_outbox.captured SET partitions = $2, changed = $3 WHERE relation = $1";
