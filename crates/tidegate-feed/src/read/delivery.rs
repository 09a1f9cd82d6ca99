//! Delivers changes at the pace at which a connection reads them: evaluates changes, lets
//! PostgreSQL apply policies, and waits for room in the queue.

use std::sync::Arc;
use std::time::Duration;

use tidegate_sql::Login;
use tracing::{debug, warn};

use crate::decode::change::RowChange;
use crate::dispatch::queue::PushError;
use crate::dispatch::subscriber::{ChangeOutcome, SchemaBinding, Subscriber};
use crate::event::cursor::EventPosition;
use crate::event::item::{Ended, Item, Resync};
use crate::read::commit_visibility;

/// The pause before policies are evaluated again while PostgreSQL is unreachable.
const OUTAGE_PAUSE: Duration = Duration::from_millis(250);

/// The error if a subscription has ended. Nothing more is delivered to the subscription.
pub(crate) struct SubscriptionEnded;

/// Evaluates a change for a subscription. `binding` binds the subscription to a schema, and is
/// replaced if the change has another schema. Changes up to `history` were made before the
/// subscription began. If the subscription does not fit the schema of one of these changes, the
/// outcome is a gap. If it does not fit the schema of a later change, the subscription ends.
pub(crate) fn evaluate(
    subscriber: &Subscriber,
    binding: &mut Option<SchemaBinding>,
    change: &RowChange,
    history: EventPosition,
) -> Result<ChangeOutcome, SubscriptionEnded> {
    if subscriber
        .rule
        .as_ref()
        .is_some_and(|rule| !rule.shows(change))
    {
        return Ok(ChangeOutcome::Nothing);
    }
    let schema = &change.schema;
    let fits = |binding: &SchemaBinding| binding.generation == schema.generation;
    if !binding.as_ref().is_some_and(fits) {
        match subscriber.bind(schema) {
            Ok(bound) => *binding = Some(bound),
            // The schema of a change from before the subscription need not fit, because the
            // subscription fits a later schema of the table.
            Err(_) if change.position <= history => {
                return Ok(ChangeOutcome::Gap(Resync::Incomplete));
            }
            Err(why) => {
                subscriber.end(why);
                return Err(SubscriptionEnded);
            }
        }
    }
    let binding = binding.as_ref().ok_or(SubscriptionEnded)?;
    Ok(binding.evaluate(subscriber.operations, change))
}

/// Decides for each change whether row level security lets the subscription see it. If PostgreSQL
/// cannot evaluate the policies, the subscription ends, so that nothing is delivered unchecked. If
/// PostgreSQL is unreachable, waits until it is reachable.
pub(crate) async fn visible(
    subscriber: &Subscriber,
    changes: &[Arc<RowChange>],
) -> Result<Vec<bool>, SubscriptionEnded> {
    let rls = subscriber.rls.as_ref().filter(|_| !changes.is_empty());
    let Some(rls) = rls else {
        return Ok(vec![true; changes.len()]);
    };
    let Login { database, role, .. } = &subscriber.login;
    let relation = subscriber.relation;
    let mut visibility_pause = commit_visibility::PAUSE.0;
    while !subscriber.is_ended() {
        match rls.visible(changes).await {
            Ok(Some(visible)) => return Ok(visible),
            // The transactions are not visible to queries yet, or the policies for new columns have
            // not been read yet. Neither is an error, and the wait may be long.
            Ok(None) => {
                tokio::time::sleep(visibility_pause).await;
                visibility_pause = (visibility_pause * 2).min(commit_visibility::PAUSE.1);
            }
            // The policies are slow, so the changes are evaluated in two halves, and these in
            // halves again if needed.
            Err(tidegate_sql::Error::Deadline) if changes.len() > 1 => {
                let (first, rest) = changes.split_at(changes.len() / 2);
                let mut all = Box::pin(visible(subscriber, first)).await?;
                all.append(&mut Box::pin(visible(subscriber, rest)).await?);
                return Ok(all);
            }
            Err(error @ tidegate_sql::Error::Deadline) => {
                warn!(%database, %role, relation, %error,
                      "subscription ended: row level security policies took too long for one event");
                break;
            }
            Err(
                error @ (tidegate_sql::Error::Rejected(_)
                | tidegate_sql::Error::Internal(_)
                | tidegate_sql::Error::NoDatabase),
            ) => {
                warn!(%database, %role, relation, %error, sqlstate = error.sqlstate(),
                      "subscription ended: row level security policies failed");
                break;
            }
            Err(error) => {
                debug!(%error, "PostgreSQL is unreachable; will retry row level security");
                tokio::time::sleep(OUTAGE_PAUSE).await;
            }
        }
    }
    subscriber.end(Ended::NotAllowed);
    Err(SubscriptionEnded)
}

/// Waits until the connection's queue has room, and pushes an item. Closes the queue if its client
/// does not read.
pub(crate) async fn push(subscriber: &Subscriber, item: Item) -> Result<(), SubscriptionEnded> {
    loop {
        if subscriber.is_ended() {
            return Err(SubscriptionEnded);
        }
        match subscriber.push(item.clone()) {
            Ok(()) => return Ok(()),
            Err(PushError::Closed) => return Err(SubscriptionEnded),
            Err(PushError::Full) => {
                if subscriber.sender.wait_for_room().await == Err(PushError::Full) {
                    subscriber.close_slow();
                    return Err(SubscriptionEnded);
                }
            }
        }
    }
}
