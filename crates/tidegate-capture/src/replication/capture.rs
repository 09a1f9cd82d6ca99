//! Adding a table to the capture, and waiting until nothing of it can be missed.

use std::fmt::Write as _;
use std::time::Duration;

use tidegate_changelog::{Captured, Demand, LogError, LogPosition, LogResult};
use tidegate_sql::DatabaseName;
use tokio::time::Instant;

use super::ledger::{Entry, Identity};
use super::survey::{Leaf, Survey};
use super::{EVERYTHING, INSERTS, Shared, rest, spare, tables, unreadable};
use crate::actor::Actor;
use crate::writers;

/// See [`tidegate_changelog::ChangeLog::capture`].
pub(super) async fn capture(
    shared: &Shared,
    database: &DatabaseName,
    demand: &Demand,
) -> LogResult<Captured> {
    let captured = capture_or_fail(shared, database, demand).await;
    if let Err(LogError::Unsupported(_) | LogError::NotAllowed { .. } | LogError::TimedOut { .. }) =
        &captured
    {
        spare::writers(shared, database, demand.relation).await?;
    }
    captured
}

async fn capture_or_fail(
    shared: &Shared,
    database: &DatabaseName,
    demand: &Demand,
) -> LogResult<Captured> {
    let deadline = Instant::now() + demand.patience;
    if let Some(owner) = Actor::owner(&shared.logins, database).await? {
        let added = owner
            .insist_on(shared, (database, demand), deadline)
            .await?;
        if !matches!(added, Added::NotAllowed(_)) {
            return owner.finish(added, demand, deadline).await;
        }
    }
    let admin = Actor::admin(&shared.logins, database).await?;
    let added = admin
        .insist_on(shared, (database, demand), deadline)
        .await?;
    admin.finish(added, demand, deadline).await
}

/// What became of adding a table.
enum Added {
    /// It was captured before, from this position on.
    Captured(LogPosition),
    /// It is captured now; transactions may be open that do not know of it.
    Published,
    /// It was captured before, from this position on, with other old rows; transactions may be
    /// open that write those.
    Raised(LogPosition),
    /// Somebody else has to do it.
    NotAllowed(LogError),
}

impl Actor {
    /// Tries for the locks until a deadline; only once where writers are refused meanwhile.
    async fn insist_on(
        &self,
        shared: &Shared,
        (database, demand): (&DatabaseName, &Demand),
        deadline: Instant,
    ) -> LogResult<Added> {
        let (rests, table) = (&shared.rests, demand.relation);
        let in_vain = || LogError::TimedOut {
            what: "locking the table, which others read or write,".to_owned(),
            limit: demand.patience,
        };
        let mut patience = rest::ATTEMPT.0;
        while rests.is_over(database, table, deadline).await {
            let begin = Instant::now();
            match self.add(demand, patience).await {
                Err(LogError::TimedOut { .. }) => rests.begin(database, table, begin.elapsed()),
                added => return added,
            }
            patience = (patience * 2).min(rest::ATTEMPT.1);
            if self.refuses_writers(table).await? {
                break;
            }
        }
        Err(in_vain())
    }

    async fn add(&self, demand: &Demand, patience: Duration) -> LogResult<Added> {
        self.begin().await?;
        let added = self.add_within(demand, patience).await;
        self.end(added).await
    }

    async fn add_within(&self, demand: &Demand, patience: Duration) -> LogResult<Added> {
        let mut survey = Survey::of(self, demand.relation).await?;
        let raised: Vec<_> = survey.to_raise(demand)?;
        let published = survey.is_published(demand);
        let since = survey.ledger.0.get(&demand.relation);
        let since = since.and_then(Entry::complete).filter(|_| published);
        if let (true, true, Some(since)) = (raised.is_empty(), survey.tells_generated, since) {
            return Ok(Added::Captured(since));
        }
        if !survey.may_change {
            return Ok(Added::NotAllowed(not_allowed(&survey)));
        }
        let mut commands = publications(&survey);
        if !published {
            commands.push_str(&publish(&survey, demand));
        }
        let (raise, identities) = raise(&raised, patience);
        for (oid, before) in identities {
            survey.ledger.0.entry(oid).or_default().before = before;
        }
        if !survey.unchanged {
            // No table was told as it should be.
            let entries = survey.ledger.0.values_mut();
            entries.for_each(|entry| entry.since = None);
        }
        survey.ledger.0.entry(demand.relation).or_default().since = None;
        // The locks for which others wait come last.
        commands.push_str(&survey.comment());
        commands.push_str(&raise);
        self.run(&commands).await?;
        Ok(since.map_or(Added::Published, Added::Raised))
    }

    /// Waits until the table is captured without a gap.
    async fn finish(
        &self,
        added: Added,
        demand: &Demand,
        deadline: Instant,
    ) -> LogResult<Captured> {
        let before = match added {
            Added::Captured(since) => {
                return Ok(Captured {
                    since,
                    barrier: since,
                });
            }
            Added::NotAllowed(error) => return Err(error),
            Added::Published => None,
            Added::Raised(since) => Some(since),
        };
        let rest = deadline.saturating_duration_since(Instant::now());
        let ended = writers::wait_for_their_end(&self.client, rest).await;
        ended.map_err(|error| match error {
            LogError::TimedOut { what, .. } => LogError::TimedOut {
                what,
                limit: demand.patience,
            },
            error => error,
        })?;
        if before.is_none() {
            self.republish(demand).await?;
        }
        self.mark(demand.relation, before).await
    }

    /// Where the log ends: whatever is seen by now was committed before.
    pub(super) async fn now(&self) -> LogResult<LogPosition> {
        let rows = self
            .rows("SELECT pg_catalog.pg_current_wal_insert_lsn()::text", &[])
            .await?;
        let text: &str = rows.first().map(|row| row.get(0)).unwrap_or_default();
        text.parse().map_err(|()| unreadable("a position"))
    }

    /// Writes down from where on the table is captured without a gap: `before`, where it was
    /// before what has just ended, or from now on.
    async fn mark(&self, relation: u32, before: Option<LogPosition>) -> LogResult<Captured> {
        self.begin().await?;
        let marked = async {
            let mut survey = Survey::of(self, relation).await?;
            let seen = self.partitions(relation).await?;
            let barrier = self.now().await?;
            let since = before.unwrap_or(barrier);
            let entry = survey.ledger.0.entry(relation).or_default();
            entry.since = Some(since);
            // What others may have yet to be told of is left as it is.
            if entry.partitions.is_none() {
                entry.partitions = seen.map(|seen| seen.partitions);
            }
            self.run(&survey.comment()).await?;
            Ok(Captured { since, barrier })
        };
        let marked = marked.await;
        self.end(marked).await
    }
}

/// The commands that raise the identities of tables, each of which may wait so long for its lock,
/// and what these were before.
fn raise(leaves: &[&Leaf], patience: Duration) -> (String, Vec<(u32, Option<Identity>)>) {
    let mut commands = String::new();
    if !leaves.is_empty() {
        let patience = patience.as_millis();
        write!(commands, "; SET LOCAL lock_timeout = {patience}")
            .expect("a String takes everything");
    }
    for leaf in leaves {
        let name = &leaf.name;
        write!(commands, "; ALTER TABLE ONLY {name} REPLICA IDENTITY FULL")
            .expect("a String takes everything");
    }
    let before = leaves.iter().map(|leaf| (leaf.oid, leaf.identity));
    (commands, before.collect())
}

/// The commands that make the publications again as they should be.
fn publications(survey: &Survey) -> String {
    let mut commands = String::new();
    for publication in [EVERYTHING, INSERTS] {
        if !survey.unchanged {
            let options = tables::options(publication);
            write!(
                commands,
                "ALTER PUBLICATION \"{publication}\" SET ({options}); "
            )
            .expect("a String takes everything");
        }
        if !survey.tells_generated {
            write!(
                commands,
                "ALTER PUBLICATION \"{publication}\" SET (publish_generated_columns = stored); "
            )
            .expect("a String takes everything");
        }
    }
    commands
}

/// The commands that publish a table as demanded, with all of its rows and columns.
fn publish(survey: &Survey, demand: &Demand) -> String {
    let (publication, listed) = if demand.changes {
        (EVERYTHING, survey.listed.0)
    } else {
        (INSERTS, survey.listed.1)
    };
    let name = &survey.name;
    let add = format!("ALTER PUBLICATION \"{publication}\" ADD TABLE ONLY {name}; ");
    if listed {
        return format!("ALTER PUBLICATION \"{publication}\" DROP TABLE ONLY {name}; {add}");
    }
    add
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
