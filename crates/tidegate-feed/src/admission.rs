//! What has to be so before a subscription is acknowledged.

use tidegate_sql::log::{Captured, Demand, LogPosition};
use tokio::time::{Instant, timeout_at};

use crate::cursor::Cursor;
use crate::database::{Capture, Database};
use crate::error::{Error, Result};
use crate::hub::From;
use crate::queue::Resync;
use crate::recapture;
use crate::standing;
use crate::subscriber::Subscriber;

/// Sees to it that a table is captured as demanded, and that the stream has come past the point
/// where that took effect.
pub(crate) async fn capture(
    database: &Database,
    demand: Demand,
    deadline: Instant,
) -> Result<LogPosition> {
    let settled = match captured(database, demand) {
        Some(settled) => settled,
        None => capture_now(database, demand, deadline).await?,
    };
    database.reach(settled.barrier, deadline).await?;
    Ok(settled.since)
}

/// A table that is captured as demanded needs nobody's turn: others may wait long for theirs. Nor
/// does it matter that a gap is yet to be told: who comes now begins behind it.
fn captured(database: &Database, demand: Demand) -> Option<Captured> {
    let mut captures = database.captures.lock();
    let known = captures.get_mut(&demand.relation)?;
    if known.lost || known.demand != joined(known.demand, demand) {
        return None;
    }
    known.used = Instant::now();
    Some(known.captured)
}

async fn capture_now(database: &Database, demand: Demand, deadline: Instant) -> Result<Captured> {
    let turn = database.turn(demand.relation);
    let too_late = |what: &str| Error::Timeout {
        what: what.to_owned(),
        limit: demand.patience,
    };
    let _turn = timeout_at(deadline, turn.lock())
        .await
        .map_err(|_| too_late("others who subscribe to the table"))?;
    // A stream that begins anew captures all tables before it is there.
    let _capturing = timeout_at(deadline, database.capturing.read())
        .await
        .map_err(|_| too_late("the stream of changes"))?;
    if let Some(settled) = captured(database, demand) {
        return Ok(settled);
    }
    let known = database.captures.lock().get(&demand.relation).copied();
    let Some(known) = known else {
        let settled = database.log.capture(&database.name, &demand).await?;
        let capture = Capture {
            demand,
            captured: settled,
            begun: settled.since,
            used: Instant::now(),
            lost: false,
            untold: None,
            untold_since: None,
        };
        database.captures.lock().insert(demand.relation, capture);
        return Ok(settled);
    };
    capture_more(database, known, joined(known.demand, demand)).await
}

/// Captures a table for more, or anew. Whether it was not captured any more nobody can see
/// afterwards.
async fn capture_more(database: &Database, mut known: Capture, demand: Demand) -> Result<Captured> {
    if !known.lost && standing::is_missing(database, &known).await {
        database.lose(demand.relation, known.captured.since);
        known.lost = true;
    }
    known.used = Instant::now();
    Ok(recapture::renew(database, known, demand).await?)
}

/// What both demand, with the patience of the second.
fn joined(known: Demand, demand: Demand) -> Demand {
    Demand {
        changes: demand.changes || known.changes,
        old_rows: demand.old_rows || known.old_rows,
        ..demand
    }
}

/// Where a definition has changed since the last change of a row, the log has yet to tell it:
/// once it has come past the definition, what was known is forgotten.
pub(crate) async fn refit(
    database: &Database,
    subscriber: &Subscriber,
    deadline: Instant,
) -> Result<()> {
    if !database.fits(subscriber) {
        let now = database
            .log
            .retain(&database.name, LogPosition::default())
            .await?;
        database.reach(now, deadline).await?;
        database.unshape_unless(subscriber);
    }
    Ok(())
}

/// Where a subscription begins.
pub(crate) async fn place(
    database: &Database,
    after: Option<Cursor>,
    since: LogPosition,
    deadline: Instant,
) -> From {
    let Some(cursor) = after else {
        return From::Now;
    };
    if !cursor.is_in(database.log_identity()) {
        return From::Gap(Resync::OtherLog);
    }
    // What happened to the table before it was captured is not in the log.
    if cursor.place.commit < since {
        return From::Gap(Resync::Expired);
    }
    // A node that has just started is still reading what was before; a place that never comes
    // belongs to a log that was cut off.
    let commit = cursor.place.commit.0;
    let there = LogPosition(if cursor.place.index == 0 {
        commit
    } else {
        commit.saturating_add(1)
    });
    match database.reach(there, deadline).await {
        Ok(()) => From::After(cursor.place),
        Err(_) => From::Gap(Resync::Expired),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tidegate_sql::log::{ChangeLog, LogResult, LogStart, LogStream};
    use tidegate_sql::{
        BoundStatement, BoxFuture, Completion, DatabaseName, Description, Executor, Mode,
        Principal, RowSink, Terms, Transaction,
    };
    use tokio::time::timeout;

    use super::*;
    use crate::settings::Settings;

    /// PostgreSQL, which is not asked.
    struct Nobody;

    impl ChangeLog for Nobody {
        fn open<'a>(
            &'a self,
            _: &'a DatabaseName,
            _: LogStart,
        ) -> BoxFuture<'a, LogResult<Box<dyn LogStream>>> {
            unreachable!()
        }

        fn capture<'a>(
            &'a self,
            _: &'a DatabaseName,
            _: &'a Demand,
        ) -> BoxFuture<'a, LogResult<Captured>> {
            unreachable!()
        }

        fn partitions<'a>(
            &'a self,
            _: &'a DatabaseName,
            _: u32,
            _: &'a [u32],
        ) -> BoxFuture<'a, LogResult<Option<LogPosition>>> {
            unreachable!()
        }

        fn standing(&self) -> &'static str {
            unreachable!()
        }

        fn release<'a>(
            &'a self,
            _: &'a DatabaseName,
            _: &'a [u32],
        ) -> BoxFuture<'a, LogResult<()>> {
            unreachable!()
        }

        fn retain<'a>(
            &'a self,
            _: &'a DatabaseName,
            _: LogPosition,
        ) -> BoxFuture<'a, LogResult<LogPosition>> {
            unreachable!()
        }

        fn abandon<'a>(&'a self, _: &'a DatabaseName) -> BoxFuture<'a, LogResult<()>> {
            unreachable!()
        }
    }

    impl Executor for Nobody {
        fn query<'a>(
            &'a self,
            _: &'a Principal,
            _: &'a BoundStatement,
            _: &'a Terms,
            _: &'a mut dyn RowSink,
        ) -> BoxFuture<'a, tidegate_sql::Result<Completion>> {
            unreachable!()
        }

        fn begin<'a>(
            &'a self,
            _: &'a Principal,
            _: Mode,
            _: &'a Terms,
        ) -> BoxFuture<'a, tidegate_sql::Result<Box<dyn Transaction>>> {
            unreachable!()
        }

        fn describe<'a>(
            &'a self,
            _: &'a Principal,
            _: &'a BoundStatement,
            _: &'a Terms,
        ) -> BoxFuture<'a, tidegate_sql::Result<Description>> {
            unreachable!()
        }
    }

    /// A database without a stream.
    pub(crate) fn database() -> Database {
        let (name, nobody) = (DatabaseName::new("d"), Arc::new(Nobody));
        Database::new(name, nobody.clone(), nobody, Settings::default())
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_begins_anew_is_waited_for_until_the_deadline() {
        let database = database();
        let patience = database.settings.patience;
        let demand = Demand {
            relation: 1,
            changes: true,
            old_rows: false,
            patience,
        };
        // As while a stream that begins anew captures tables which others write.
        let _capturing = database.capturing.write().await;
        let refused = capture(&database, demand, Instant::now() + patience);
        let refused = timeout(patience + Duration::from_secs(1), refused).await;
        let refused = refused.expect("who subscribes waits for ever");
        assert!(matches!(refused, Err(Error::Timeout { .. })), "{refused:?}");
    }
}
