//! The steps before a subscription is acknowledged: checking privileges, capturing the table,
//! finding the start position.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_changelog::{Demand, LogPosition};
use tokio::time::Instant;

use crate::access::member_rule::MemberRule;
use crate::access::old_rows;
use crate::access::privileges::Privileges;
use crate::access::rls_evaluators::RlsEvaluators;
use crate::api::subscription::{SubscribeRequest, Subscription};
use crate::capture::ensure;
use crate::database::database_feed::DatabaseFeed;
use crate::dispatch::attachment::{Attached, StartAt};
use crate::dispatch::predicate::Predicate;
use crate::dispatch::queue::EventSender;
use crate::dispatch::subscriber::Subscriber;
use crate::error::{Error, Result};
use crate::event::cursor::Cursor;
use crate::event::item::Resync;
use crate::read::{lagging, replay};

/// A subscription request whose columns were checked against the privileges of its role.
pub(crate) struct CheckedRequest {
    request: SubscribeRequest,
    privileges: Arc<Privileges>,
    /// The names of the columns that events contain or that the filter uses.
    columns: Vec<Box<str>>,
    demand: Demand,
    deadline: Instant,
}

impl CheckedRequest {
    /// Checks the columns, and determines which data the change log must contain for the
    /// subscription.
    ///
    /// # Errors
    ///
    /// [`Error::NoColumn`] if the role may not read a column. [`Error::Unsupported`] if a column is
    /// not in the change log.
    pub(crate) fn new(
        request: SubscribeRequest,
        privileges: Arc<Privileges>,
        timeout: Duration,
        deadline: Instant,
    ) -> Result<Self> {
        let predicate = request.predicate.iter();
        let filtered = predicate.flat_map(Predicate::column_names);
        let selected = request.selection.column_names();
        let mut columns: Vec<Box<str>> = selected.chain(filtered).map(Into::into).collect();
        columns.sort_unstable();
        columns.dedup();
        let operations = request.operations;
        let demand = Demand {
            relation: request.relation,
            changes: operations.need_changes(),
            old_rows: old_rows::needs_old_rows(operations, &columns, &privileges)?,
            timeout,
        };
        Ok(Self {
            request,
            privileges,
            columns,
            demand,
            deadline,
        })
    }
}

/// Starts a subscription. `definition_count` is the number of table definitions that the change log
/// had reported before the privileges were read. Returns `None` if the log has reported more
/// definitions since then. The privileges may then be older than the newest definition, and must be
/// read again.
///
/// # Errors
///
/// If the subscription is not possible, or cannot be started before the deadline.
pub(crate) async fn subscribe(
    database: &Arc<DatabaseFeed>,
    evaluators: &RlsEvaluators,
    sender: &EventSender,
    checked: CheckedRequest,
    definition_count: u64,
) -> Result<Option<Subscription>> {
    let CheckedRequest {
        mut request,
        privileges,
        columns,
        demand,
        deadline,
    } = checked;
    let relation = request.relation;
    if let Some(predicate) = &mut request.predicate {
        let folding = &database.case_folding;
        folding.load(&database.catalog, relation, predicate).await?;
    }
    // Without an open stream, the capture would only time out. This wait reports why the stream
    // cannot be opened.
    database.stream.wait_live(deadline).await?;
    let since = ensure::ensure_captured(database, demand, deadline).await?;
    // The client may have disconnected while the table was captured.
    if sender.is_closed() {
        return Err(Error::Closed);
    }
    let start = start_at(database, request.after, since, deadline).await?;
    let policy = privileges.policy.as_ref();
    let rule = policy.and_then(|policy| MemberRule::new(&request.login, policy));
    // If there is a [`MemberRule`], the service applies the policies itself, without a query.
    // Otherwise an evaluator is used. It sends a query to PostgreSQL for each evaluation.
    let evaluated = policy.filter(|_| rule.is_none());
    let rls = evaluated.map(|_| evaluators.get(&request.login, relation, &privileges));
    let subscriber = Arc::new(Subscriber {
        id: database.next_subscriber_id(),
        tag: request.tag,
        login: request.login,
        relation,
        name: (privileges.schema.clone(), privileges.name.clone()),
        operations: request.operations,
        selection: Arc::new(request.selection),
        predicate: request.predicate,
        columns,
        old_rows: demand.old_rows,
        sender: sender.clone(),
        metrics: database.metrics.clone(),
        rls,
        rule,
        privileges: Mutex::new(privileges),
        ended: AtomicBool::new(false),
        last_pushed: AtomicU64::new(0),
    });
    await_definition(database, &subscriber, deadline).await?;
    attach(database, subscriber, start, definition_count)
}

/// Adds the subscription to the hub. Starts a replay, or a reader for the connection, if the hub
/// requests one. Returns `None` in the same case as [`subscribe`].
fn attach(
    database: &Arc<DatabaseFeed>,
    subscriber: Arc<Subscriber>,
    start: StartAt,
    definition_count: u64,
) -> Result<Option<Subscription>> {
    let hub = database.hub.clone();
    match database.attach(&subscriber, start, definition_count) {
        None => return Ok(None),
        Some(Attached::Live) => {}
        Some(Attached::Lagging(connection)) => lagging::spawn(hub.clone(), connection),
        Some(Attached::Replay(position)) => {
            replay::spawn(database.clone(), subscriber.clone(), position);
        }
    }
    // When a feed stops, it ends all existing subscriptions. This subscription may have been added
    // afterwards, so the state of the feed is checked here.
    if database.stream.state().stopped {
        hub.detach(&subscriber);
        return Err(Error::Unavailable(None));
    }
    Ok(Some(Subscription::new(hub, subscriber)))
}

/// Returns where the subscription starts. Without a cursor it starts at the next commit. With the
/// cursor `after` it starts after the cursor. If the changes after the cursor are not available, it
/// starts at the next commit and reports a gap. `since` is the position since which the table has
/// been captured without a gap.
///
/// # Errors
///
/// The errors of [`wait_live`](crate::database::stream_progress::StreamProgress::wait_live), if the
/// stream is not open at the deadline.
async fn start_at(
    database: &DatabaseFeed,
    after: Option<Cursor>,
    since: LogPosition,
    deadline: Instant,
) -> Result<StartAt> {
    let Some(cursor) = after else {
        return Ok(StartAt::Now);
    };
    if !database.hub.is_known(cursor) {
        return Ok(StartAt::Gap(Resync::OtherLog));
    }
    // The table has been captured without a gap since `since`. Earlier changes of the table may be
    // missing in the change log.
    if cursor.position.commit < since {
        return Ok(StartAt::Gap(Resync::Expired));
    }
    let stream = &database.stream;
    let reached = cursor.position.end();
    if stream.wait_until_reached(reached, deadline).await.is_ok() {
        return Ok(StartAt::After(cursor.position));
    }
    // On a node that has just started, the stream may not have reached the cursor yet. If an open
    // stream does not reach it before the deadline, the cursor belongs to a part of the log that no
    // longer exists.
    stream.wait_live(deadline).await?;
    Ok(StartAt::Gap(Resync::Expired))
}

/// Checks whether a subscription fits the known schema of its table, which is the most recent
/// description of the table in the change log. If it does not fit, waits until the stream has
/// reached the current end of the log, because the log may contain a newer description. If the
/// subscription still does not fit, removes the known schema. That schema is outdated: the
/// subscription's columns were checked against the current catalog, but the change log describes a
/// changed table only before the next change of a row.
async fn await_definition(
    database: &DatabaseFeed,
    subscriber: &Subscriber,
    deadline: Instant,
) -> Result<()> {
    if !database.hub.fits(subscriber) {
        let no_change = LogPosition::default();
        let now = database.log.retain(&database.name, no_change).await?;
        database.stream.wait_until_reached(now, deadline).await?;
        database.hub.forget_schema_unless(subscriber);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tidegate_changelog::{Lineage, LogIdentity};

    use super::*;
    use crate::database::fixture::database_feed;
    use crate::event::cursor::EventPosition;

    #[tokio::test]
    async fn a_cursor_that_is_not_reached_is_expired_only_if_the_stream_is_open() {
        let (log, commit) = (LogIdentity(1), LogPosition(50));
        let cursor = Cursor::new(log, EventPosition { commit, index: 1 });
        let feed = database_feed();
        feed.stream_opened(&Lineage::new(log), LogPosition(10), false);
        let start = || {
            let deadline = Instant::now() + Duration::from_millis(10);
            start_at(&feed, Some(cursor), LogPosition(10), deadline)
        };
        assert!(matches!(start().await, Err(Error::Unavailable(_))));
        feed.stream.update(|state| state.live = true);
        assert!(matches!(start().await, Ok(StartAt::Gap(Resync::Expired))));
    }
}
