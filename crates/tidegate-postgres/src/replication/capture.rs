//! Adding a table to the capture, and waiting until nothing of it can be missed.

use std::fmt::Write as _;

use tidegate_sql::DatabaseName;
use tidegate_sql::log::{Captured, Demand, LogError, LogPosition, LogResult};

use super::ledger::Entry;
use super::survey::Survey;
use super::{EVERYTHING, INSERTS, Shared, unreadable, writers};
use crate::actor::Actor;

/// See [`tidegate_sql::log::ChangeLog::capture`].
pub(super) async fn capture(
    shared: &Shared,
    database: &DatabaseName,
    demand: &Demand,
) -> LogResult<Captured> {
    if let Some(owner) = Actor::owner(&shared.logins, database).await? {
        let added = owner.add(demand).await?;
        if !matches!(added, Added::NotAllowed(_)) {
            return owner.finish(added, demand).await;
        }
    }
    let admin = Actor::admin(&shared.logins, database).await?;
    let added = admin.add(demand).await?;
    admin.finish(added, demand).await
}

fn settled(since: LogPosition) -> Captured {
    Captured {
        since,
        barrier: since,
    }
}

/// What became of adding a table.
enum Added {
    /// It was captured before, from this position on.
    Captured(LogPosition),
    /// It is captured now; transactions may be open that do not know of it.
    Pending,
    /// Somebody else has to do it.
    NotAllowed(LogError),
}

impl Actor {
    async fn add(&self, demand: &Demand) -> LogResult<Added> {
        self.begin().await?;
        let added = self.add_within(demand).await;
        self.end(added).await
    }

    async fn add_within(&self, demand: &Demand) -> LogResult<Added> {
        let mut survey = Survey::of(self, demand.relation).await?;
        let raised: Vec<_> = survey.to_raise(demand)?;
        let published = survey.is_published(demand);
        let entry = survey.ledger.0.get(&demand.relation);
        if raised.is_empty()
            && published
            && survey.tells_generated
            && let Some(since) = entry.and_then(Entry::complete)
        {
            return Ok(Added::Captured(since));
        }
        if !survey.may_change {
            return Ok(Added::NotAllowed(not_allowed(&survey)));
        }
        let mut commands = String::new();
        if !survey.tells_generated {
            for publication in [EVERYTHING, INSERTS] {
                write!(
                    commands,
                    "ALTER PUBLICATION \"{publication}\" \
                     SET (publish_generated_columns = stored); "
                )
                .expect("a String takes everything");
            }
        }
        let mut identities = Vec::new();
        for leaf in raised {
            write!(
                commands,
                "ALTER TABLE ONLY {} REPLICA IDENTITY FULL; ",
                leaf.name
            )
            .expect("a String takes everything");
            identities.push((leaf.oid, leaf.identity));
        }
        if !published {
            let publication = if demand.changes { EVERYTHING } else { INSERTS };
            write!(
                commands,
                "ALTER PUBLICATION \"{publication}\" ADD TABLE ONLY {}; ",
                survey.name
            )
            .expect("a String takes everything");
        }
        for (oid, before) in identities {
            survey.ledger.0.entry(oid).or_default().before = before;
        }
        survey.ledger.0.entry(demand.relation).or_default().since = None;
        commands.push_str(&comment(&survey));
        self.run(&commands).await?;
        Ok(Added::Pending)
    }

    /// Waits until the table is captured without a gap.
    async fn finish(&self, added: Added, demand: &Demand) -> LogResult<Captured> {
        match added {
            Added::Captured(since) => Ok(settled(since)),
            Added::NotAllowed(error) => Err(error),
            Added::Pending => {
                writers::wait_for_their_end(&self.client, demand.patience).await?;
                self.republish(demand).await?;
                Ok(settled(self.mark(demand.relation).await?))
            }
        }
    }

    /// Where the log ends: whatever is seen by now was committed before.
    pub(super) async fn now(&self) -> LogResult<LogPosition> {
        let rows = self
            .rows("SELECT pg_catalog.pg_current_wal_insert_lsn()::text", &[])
            .await?;
        let text: &str = rows.first().map(|row| row.get(0)).unwrap_or_default();
        text.parse().map_err(|()| unreadable("a position"))
    }

    /// Writes down from where on the table is captured without a gap.
    async fn mark(&self, relation: u32) -> LogResult<LogPosition> {
        self.begin().await?;
        let marked = async {
            let mut survey = Survey::of(self, relation).await?;
            let seen = self.partitions(relation).await?;
            let since = self.now().await?;
            let entry = survey.ledger.0.entry(relation).or_default();
            entry.since = Some(since);
            // What others may have yet to be told of is left as it is.
            if entry.partitions.is_none() {
                entry.partitions = seen.map(|seen| seen.partitions);
            }
            self.run(&comment(&survey)).await?;
            Ok(since)
        };
        let marked = marked.await;
        self.end(marked).await
    }
}

fn comment(survey: &Survey) -> String {
    let comment = survey.ledger.to_comment();
    format!("COMMENT ON PUBLICATION \"{EVERYTHING}\" IS '{comment}'")
}

fn not_allowed(survey: &Survey) -> LogError {
    LogError::NotAllowed {
        reason: format!(
            "the publications belong to {}, the table {} to {}",
            survey.publisher, survey.name, survey.owner
        ),
        remedy: format!("run GRANT \"{}\" TO \"{}\"", survey.owner, survey.publisher),
    }
}
