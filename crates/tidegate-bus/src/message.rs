//! The plaintext of messages between nodes.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use tidegate_changelog::{Lineage, LogIdentity, LogPosition};

use crate::place::{Malformed, Place};

/// A part of a log: everything between two places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusMessage {
    /// The log, with its timeline.
    pub identity: LogIdentity,
    /// The end of the reader's previous message with changes on the same subject, or of a later
    /// change that the reader left out because of its size. A message without changes may start
    /// earlier.
    pub from: Place,
    /// The place after the last item. In a message without items, a place that the reader has
    /// reached.
    pub to: Place,
    /// The descriptions, valid at `from`, of the tables that the items change but do not describe.
    pub relations: Vec<Bytes>,
    /// Messages of pgoutput. An empty list means that there are no changes between `from` and `to`.
    pub items: Vec<Bytes>,
    /// The logs that this log continues. Empty if the message has items.
    pub ancestors: Vec<(LogIdentity, LogPosition)>,
}

impl BusMessage {
    /// The message as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let size = |list: &[Bytes]| list.iter().map(|item| item.len() + 4).sum::<usize>();
        let capacity = 48 + 12 * self.ancestors.len() + size(&self.relations) + size(&self.items);
        let mut bytes = BytesMut::with_capacity(capacity);
        bytes.put_u32(self.identity.0);
        for place in [self.from, self.to] {
            put_place(&mut bytes, place);
        }
        bytes.put_u32(length(self.ancestors.len()));
        for (log, end) in &self.ancestors {
            bytes.put_u32(log.0);
            bytes.put_u64(end.0);
        }
        bytes.put_u32(length(self.relations.len()));
        for item in self.relations.iter().chain(&self.items) {
            bytes.put_u32(length(item.len()));
            bytes.put_slice(item);
        }
        bytes.into()
    }

    /// Decodes a message from the bytes that [`encode`](Self::encode) returned.
    ///
    /// # Errors
    ///
    /// If the bytes are not an encoded message.
    pub fn decode(mut bytes: Bytes) -> Result<Self, Malformed> {
        let identity = LogIdentity(bytes.try_get_u32().map_err(|_| Malformed)?);
        let (from, to) = (get_place(&mut bytes)?, get_place(&mut bytes)?);
        let count = bytes.try_get_u32().map_err(|_| Malformed)?;
        let ancestors = (0..count)
            .map(|_| get_ancestor(&mut bytes))
            .collect::<Result<_, _>>()?;
        let count = bytes.try_get_u32().map_err(|_| Malformed)?;
        let relations = (0..count)
            .map(|_| get_item(&mut bytes))
            .collect::<Result<_, _>>()?;
        let mut items = Vec::new();
        while bytes.has_remaining() {
            items.push(get_item(&mut bytes)?);
        }
        Ok(Self {
            identity,
            from,
            to,
            relations,
            items,
            ancestors,
        })
    }

    /// The log, with the logs that it continues.
    pub fn lineage(&self) -> Lineage {
        Lineage {
            log: self.identity,
            ancestors: self.ancestors.clone(),
        }
    }
}

fn length(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

fn put_place(bytes: &mut BytesMut, place: Place) {
    bytes.put_u64(place.lsn.0);
    bytes.put_u64(place.index);
}

fn get_place(bytes: &mut Bytes) -> Result<Place, Malformed> {
    let mut field = || bytes.try_get_u64().map_err(|_| Malformed);
    Ok(Place {
        lsn: LogPosition(field()?),
        index: field()?,
    })
}

fn get_ancestor(bytes: &mut Bytes) -> Result<(LogIdentity, LogPosition), Malformed> {
    let log = bytes.try_get_u32().map_err(|_| Malformed)?;
    let end = bytes.try_get_u64().map_err(|_| Malformed)?;
    Ok((LogIdentity(log), LogPosition(end)))
}

fn get_item(bytes: &mut Bytes) -> Result<Bytes, Malformed> {
    let length = bytes.try_get_u32().map_err(|_| Malformed)? as usize;
    if length > bytes.remaining() {
        return Err(Malformed);
    }
    Ok(bytes.split_to(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_reads_what_it_writes_and_refuses_parts_of_it() {
        let place = |lsn, index| Place {
            lsn: LogPosition(lsn),
            index,
        };
        let message = BusMessage {
            identity: LogIdentity(7),
            from: place(1, 0),
            to: place(u64::MAX, 5),
            relations: vec![Bytes::from_static(b"R1")],
            items: vec![Bytes::from_static(b"B"), Bytes::new()],
            ancestors: vec![(LogIdentity(3), LogPosition(9))],
        };
        let bytes = Bytes::from(message.encode());
        assert_eq!(BusMessage::decode(bytes.clone()), Ok(message));
        for end in [0, 3, 20, 37, 41, 53] {
            let part = bytes.slice(..end);
            assert_eq!(BusMessage::decode(part), Err(Malformed), "{end}");
        }
    }
}
