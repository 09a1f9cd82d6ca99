//! Reads messages that JetStream keeps, one after the other, to fill a gap.

use std::time::Duration;

use tidegate_changelog::{Lineage, LogPosition};
use tokio::time::sleep;

use crate::database::Database;
use crate::error::{BusError, BusResult};
use crate::message::BusMessage;
use crate::nats::Nats;
use crate::place::Place;
use crate::seal::SealedKind;

/// The number of requests for a message that JetStream may not have stored yet, and the pause
/// between two requests. Together the pauses are twice as long as the interval at which the reader
/// sends changes to JetStream.
const ATTEMPTS: (usize, Duration) = (20, Duration::from_millis(20));

/// How far a stream has read the messages that JetStream keeps for a database.
#[derive(Debug, Default)]
pub(crate) struct KeptMessages {
    /// The sequence number after the last message that was read; `None` before the first.
    next: Option<u64>,
}

impl KeptMessages {
    /// Returns the next message if it starts at `place` or earlier, or if it is of another log. A
    /// message of a former primary counts as a message of the log if the log contains its changes
    /// and it starts at `place` or earlier. Returns `None` if the next message of the log starts
    /// later, or if JetStream still has no next message after several requests.
    ///
    /// # Errors
    ///
    /// If the connection is broken, or JetStream does not answer.
    pub(crate) async fn next(
        &mut self,
        database: &Database,
        lineage: &Lineage,
        place: Place,
    ) -> BusResult<Option<BusMessage>> {
        let (attempts, pause) = ATTEMPTS;
        for _ in 0..attempts {
            let Some(nats) = database.shared.connected() else {
                return Err(BusError::Request("the connection is broken".to_owned()));
            };
            let sequence = match self.next {
                Some(sequence) => sequence,
                None => first(database, &nats, (lineage, place)).await?,
            };
            self.next = Some(sequence);
            if let Some((sequence, mut message)) = at(database, &nats, sequence).await? {
                self.next = Some(sequence + 1);
                // If changes before a message of a former primary are missing, the reader of the
                // new primary may have stored them later.
                if message.from <= place && is_contained(lineage, &message) {
                    message.identity = lineage.log;
                }
                let is_next = message.from <= place || message.identity != lineage.log;
                return Ok(is_next.then_some(message));
            }
            // The reader has sent the message to the nodes, but perhaps not to JetStream yet.
            database.wanted.notify_one();
            sleep(pause).await;
        }
        Ok(None)
    }
}

/// Finds the sequence number of the first message that ends after a place, by bisection. If there
/// is no such message, returns the number after the last one. Messages are in the order of their
/// places, with two exceptions. The last messages of a reader may overlap with the first messages of
/// the next reader. Messages of other logs, and changes that a promoted server lacks, have places
/// that cannot be compared.
async fn first(
    database: &Database,
    nats: &Nats,
    (lineage, place): (&Lineage, Place),
) -> BusResult<u64> {
    let (mut low, last) = nats.range().await?;
    let mut high = last + 1;
    while low < high {
        let middle = low + (high - low) / 2;
        match at(database, nats, middle).await? {
            Some((sequence, message)) if is_before(lineage, &message, place) => {
                low = sequence + 1;
            }
            _ => high = middle,
        }
    }
    Ok(low)
}

/// Whether the log of `lineage` contains all changes of the message.
fn is_contained(lineage: &Lineage, message: &BusMessage) -> bool {
    // Inside a transaction, `lsn` is the position of its commit, which must be contained too.
    let end = message.to.lsn.0 + u64::from(message.to.is_open());
    lineage.contains(message.identity, LogPosition(end))
}

/// Whether the search for the first message that ends after `place` continues behind this message.
fn is_before(lineage: &Lineage, message: &BusMessage, place: Place) -> bool {
    if is_contained(lineage, message) {
        return message.to <= place;
    }
    // A former primary stored changes that the promoted server lacks after all changes that both
    // have. Messages of other logs are passed over.
    let mut ancestors = lineage.ancestors.iter();
    let ancestor = ancestors.find(|(log, _)| *log == message.identity);
    ancestor.is_none_or(|(_, end)| Place::at(*end) <= place)
}

/// The first message of the database at or after a sequence number. Messages without the seal of
/// this cluster are skipped.
async fn at(
    database: &Database,
    nats: &Nats,
    sequence: u64,
) -> BusResult<Option<(u64, BusMessage)>> {
    let mut sequence = sequence;
    loop {
        let kept = nats.next(&database.event_subject(), sequence).await?;
        let Some(kept) = kept else {
            return Ok(None);
        };
        let text = database.unseal(SealedKind::Event, &kept.payload);
        if let Ok(message) = text.and_then(BusMessage::decode) {
            return Ok(Some((kept.sequence, message)));
        }
        sequence = kept.sequence + 1;
    }
}

#[cfg(test)]
mod tests {
    use tidegate_changelog::LogIdentity;

    use super::*;

    const FIRST: LogIdentity = LogIdentity(1);
    const OLD: LogIdentity = LogIdentity(2);
    const NEW: LogIdentity = LogIdentity(3);
    const OTHER: LogIdentity = LogIdentity(4);

    fn place(lsn: u64, index: u64) -> Place {
        Place {
            lsn: LogPosition(lsn),
            index,
        }
    }

    fn message(identity: LogIdentity, from: u64, to: Place) -> BusMessage {
        BusMessage {
            identity,
            ancestors: Vec::new(),
            from: place(from, 0),
            to,
            relations: Vec::new(),
            items: Vec::new(),
        }
    }

    /// A log that continues `FIRST` up to position 60 and `OLD` up to position 100.
    fn lineage() -> Lineage {
        Lineage {
            log: NEW,
            ancestors: vec![(FIRST, LogPosition(60)), (OLD, LogPosition(100))],
        }
    }

    #[test]
    fn a_log_contains_messages_of_former_primaries_up_to_the_promotions() {
        for (identity, to, contained) in [
            (NEW, place(200, 0), true),
            (OLD, place(100, 0), true),
            (OLD, place(101, 0), false),
            // The commit at 100 is the first record that the promoted server lacks.
            (OLD, place(100, 1), false),
            (OLD, place(99, 1), true),
            (FIRST, place(60, 0), true),
            (FIRST, place(70, 0), false),
            (OTHER, place(50, 0), false),
        ] {
            let message = message(identity, 10, to);
            let result = is_contained(&lineage(), &message);
            assert_eq!(result, contained, "{identity:?} {to:?}");
        }
    }

    #[test]
    fn a_bisection_finds_the_first_message_that_ends_after_a_place() {
        // The first primary stored changes up to 70, of which the second one lacks those after 60.
        // That one stored changes up to 120, of which the last one lacks those after 100. The
        // second reader begins at 50 and the last one at 90.
        let stored = [
            message(OTHER, 0, place(500, 0)),
            message(FIRST, 0, place(40, 0)),
            message(FIRST, 40, place(58, 0)),
            message(FIRST, 58, place(70, 0)),
            message(OLD, 50, place(95, 0)),
            message(OLD, 95, place(110, 0)),
            message(OLD, 110, place(120, 0)),
            message(NEW, 90, place(105, 0)),
            message(NEW, 105, place(130, 0)),
        ];
        let expected = [
            (0, 1),
            (39, 1),
            (40, 2),
            (60, 4),
            (94, 4),
            (100, 7),
            (104, 7),
            (105, 8),
        ];
        for (lsn, first) in expected {
            let is_before = |it: &BusMessage| is_before(&lineage(), it, place(lsn, 0));
            assert_eq!(stored.partition_point(is_before), first, "{lsn}");
        }
    }
}
