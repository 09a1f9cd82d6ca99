//! What those do who deliver at the pace of a connection: judge, ask PostgreSQL, wait for room.

use std::sync::Arc;
use std::time::Duration;

use tracing::{debug, warn};

use crate::change::Change;
use crate::cursor::Place;
use crate::queue::{Ended, Item, Refused, Resync};
use crate::shown;
use crate::subscriber::{Bound, Outcome, Subscriber};

/// How often PostgreSQL is asked again that does not answer, and the pause before that.
pub(crate) const AGAIN: (u32, Duration) = (20, Duration::from_millis(250));

/// Nothing is delivered any more.
pub(crate) struct Over;

/// What a change means to a subscription; `bound` is what it was readied for. Changes up to
/// `history` are older than the subscription.
pub(crate) fn judge(
    subscriber: &Subscriber,
    bound: &mut Option<Bound>,
    change: &Change,
    history: Place,
) -> Result<Outcome, Over> {
    let shape = &change.shape;
    let fits = |bound: &Bound| bound.generation == shape.generation;
    if !bound.as_ref().is_some_and(fits) {
        match subscriber.bind(shape) {
            Ok(readied) => *bound = Some(readied),
            // The table has become what the subscription wants only later.
            Err(_) if change.place <= history => {
                return Ok(Outcome::Gap(Resync::Incomplete));
            }
            Err(why) => {
                subscriber.end(why);
                return Err(Over);
            }
        }
    }
    let bound = bound.as_ref().ok_or(Over)?;
    Ok(bound.judge(subscriber.operations, change))
}

/// Which of some changes row level security lets through. Nothing is delivered unjudged: where
/// PostgreSQL does not say, the subscription ends.
pub(crate) async fn visible(
    subscriber: &Subscriber,
    changes: &[Arc<Change>],
) -> Result<Vec<bool>, Over> {
    let judge = subscriber.judge.as_ref().filter(|_| !changes.is_empty());
    let Some(judge) = judge else {
        return Ok(vec![true; changes.len()]);
    };
    let (attempts, pause) = AGAIN;
    let mut early = shown::PAUSE.0;
    let mut attempt = 0;
    while attempt <= attempts {
        match judge.see(changes).await {
            Ok(Some(seen)) => return Ok(seen),
            // Nobody sees them yet in queries either, however long that takes.
            Ok(None) if !subscriber.is_over() => {
                tokio::time::sleep(early).await;
                early = (early * 2).min(shown::PAUSE.1);
            }
            // Policies that take long: fewer rows at a time, down to one.
            Err(tidegate_sql::Error::Deadline) if changes.len() > 1 => {
                let (first, rest) = changes.split_at(changes.len() / 2);
                let mut seen = Box::pin(visible(subscriber, first)).await?;
                seen.append(&mut Box::pin(visible(subscriber, rest)).await?);
                return Ok(seen);
            }
            Err(error @ tidegate_sql::Error::Deadline) => {
                warn!(role = %subscriber.login.role, %error,
                      "the policies of a table take too long for one of its events");
                break;
            }
            Err(error @ (tidegate_sql::Error::Rejected(_) | tidegate_sql::Error::Internal(_))) => {
                warn!(role = %subscriber.login.role, %error, sqlstate = error.sqlstate(),
                      "the policies of a table could not be applied to its events");
                break;
            }
            Err(error) if attempt < attempts && !subscriber.is_over() => {
                debug!(%error, "waiting for PostgreSQL to judge events");
                tokio::time::sleep(pause).await;
                attempt += 1;
            }
            Ok(None) | Err(_) => break,
        }
    }
    subscriber.end(Ended::NotAllowed);
    Err(Over)
}

/// Adds something to the connection's queue when there is room; cuts a connection that takes
/// nothing.
pub(crate) async fn push(subscriber: &Subscriber, item: Item) -> Result<(), Over> {
    loop {
        if subscriber.is_over() {
            return Err(Over);
        }
        match subscriber.push(item.clone()) {
            Ok(()) => return Ok(()),
            Err(Refused::Closed) => return Err(Over),
            Err(Refused::Full) => {
                if subscriber.outbox.room().await == Err(Refused::Full) {
                    subscriber.cut();
                    return Err(Over);
                }
            }
        }
    }
}
