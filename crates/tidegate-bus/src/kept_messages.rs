//! Reads messages that JetStream keeps, one after the other, to fill a gap.

use std::time::Duration;

use tidegate_changelog::LogIdentity;
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
    /// Returns the next message if it starts at `place` or earlier, or belongs to another log than
    /// `identity`. Returns `None` if the next message starts later, or if JetStream still has no
    /// next message after several requests.
    ///
    /// # Errors
    ///
    /// If the connection is broken, or JetStream does not answer.
    pub(crate) async fn next(
        &mut self,
        database: &Database,
        identity: LogIdentity,
        place: Place,
    ) -> BusResult<Option<BusMessage>> {
        let (attempts, pause) = ATTEMPTS;
        for _ in 0..attempts {
            let Some(nats) = database.shared.connected() else {
                return Err(BusError::Request("the connection is broken".to_owned()));
            };
            let sequence = match self.next {
                Some(sequence) => sequence,
                None => first(database, &nats, (identity, place)).await?,
            };
            self.next = Some(sequence);
            if let Some((sequence, message)) = at(database, &nats, sequence).await? {
                let is_next = message.from <= place || message.identity != identity;
                self.next = Some(sequence + 1);
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
/// places. The exception is a change of the reader: the last messages of the old reader may overlap
/// with the first ones of the new reader.
async fn first(
    database: &Database,
    nats: &Nats,
    (identity, place): (LogIdentity, Place),
) -> BusResult<u64> {
    let (mut low, last) = nats.range().await?;
    let mut high = last + 1;
    while low < high {
        let middle = low + (high - low) / 2;
        match at(database, nats, middle).await? {
            Some((sequence, message)) if message.identity != identity || message.to <= place => {
                low = sequence + 1;
            }
            _ => high = middle,
        }
    }
    Ok(low)
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
