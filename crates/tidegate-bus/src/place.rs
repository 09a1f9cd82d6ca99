//! Places in the sequence of pgoutput messages. Every reader of the same log computes the same
//! places.

use bytes::Bytes;
use tidegate_changelog::LogPosition;

/// A place between two messages of a log.
///
/// With index 0 the place is outside of a transaction: everything that committed before `lsn` is
/// before the place. With index `n` the place is inside the transaction whose commit is at `lsn`,
/// after the `n`-th message of that transaction. Messages that describe tables or types are not
/// counted, because each stream repeats them at other places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// A position of the log, or the position of the open transaction's commit.
    pub lsn: LogPosition,
    /// The number of messages of the open transaction before the place; 0 outside of a transaction.
    pub index: u64,
}

impl Place {
    /// The place outside of a transaction at a position.
    pub const fn at(lsn: LogPosition) -> Self {
        Self { lsn, index: 0 }
    }

    /// Whether the place is inside a transaction.
    pub const fn is_open(self) -> bool {
        self.index > 0
    }

    /// The place after a message that starts at this place.
    ///
    /// # Errors
    ///
    /// If the message cannot follow at this place.
    pub fn after(self, kind: &MessageKind) -> Result<Self, Malformed> {
        match *kind {
            MessageKind::Relation(_) | MessageKind::Type => Ok(self),
            MessageKind::Begin { commit } if !self.is_open() && commit >= self.lsn => Ok(Self {
                lsn: commit,
                index: 1,
            }),
            MessageKind::Commit { end } if self.is_open() && end > self.lsn => Ok(Self::at(end)),
            MessageKind::Change(_) if self.is_open() => Ok(Self {
                lsn: self.lsn,
                index: self.index + 1,
            }),
            MessageKind::Begin { .. } | MessageKind::Commit { .. } | MessageKind::Change(_) => {
                Err(Malformed)
            }
        }
    }
}

/// A message of the change log or of the bus that cannot be decoded, or cannot follow the messages
/// before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message of the change log or of the bus is malformed")]
pub struct Malformed;

/// The part of a pgoutput message that the bus reads (PostgreSQL, "Logical Replication Message
/// Formats").
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// The beginning of a transaction.
    Begin {
        /// The position of the commit.
        commit: LogPosition,
    },
    /// The end of a transaction.
    Commit {
        /// The position after the transaction.
        end: LogPosition,
    },
    /// The description of the table with this OID.
    Relation(u32),
    /// The description of a type. No node needs it.
    Type,
    /// A change of the tables with these OIDs. For any other message of the transaction, the list
    /// of OIDs is empty.
    Change(Vec<u32>),
}

impl MessageKind {
    /// Reads the kind of a message.
    ///
    /// # Errors
    ///
    /// If the message is too short.
    pub fn of(message: &Bytes) -> Result<Self, Malformed> {
        let (&kind, body) = message.split_first().ok_or(Malformed)?;
        Ok(match kind {
            b'B' => Self::Begin {
                commit: position(body, 0)?,
            },
            // The flags and the position of the commit precede the end.
            b'C' => Self::Commit {
                end: position(body, 9)?,
            },
            b'R' => Self::Relation(number(body, 0)?),
            b'Y' => Self::Type,
            b'I' | b'U' | b'D' => Self::Change(vec![number(body, 0)?]),
            b'T' => {
                let count = number(body, 0)?;
                // The count and the options precede the OIDs.
                let oid = |index: u32| number(body, 5 + 4 * index as usize);
                Self::Change((0..count).map(oid).collect::<Result<_, _>>()?)
            }
            _ => Self::Change(Vec::new()),
        })
    }
}

fn position(body: &[u8], at: usize) -> Result<LogPosition, Malformed> {
    let field = body.get(at..).and_then(<[u8]>::first_chunk::<8>);
    let field = field.ok_or(Malformed)?;
    Ok(LogPosition(u64::from_be_bytes(*field)))
}

fn number(body: &[u8], at: usize) -> Result<u32, Malformed> {
    let field = body.get(at..).and_then(<[u8]>::first_chunk::<4>);
    Ok(u32::from_be_bytes(*field.ok_or(Malformed)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(lsn: u64, index: u64) -> Place {
        Place {
            lsn: LogPosition(lsn),
            index,
        }
    }

    #[test]
    fn a_transaction_moves_from_its_commit_to_its_end() {
        let begin = MessageKind::Begin {
            commit: LogPosition(20),
        };
        let change = MessageKind::Change(vec![1]);
        let commit = MessageKind::Commit {
            end: LogPosition(25),
        };
        let mut now = place(10, 0);
        let mut seen = vec![now];
        for kind in [&begin, &MessageKind::Relation(1), &change, &change, &commit] {
            now = now.after(kind).unwrap();
            seen.push(now);
        }
        let expected = [(10, 0), (20, 1), (20, 1), (20, 2), (20, 3), (25, 0)];
        assert_eq!(seen, expected.map(|(lsn, index)| place(lsn, index)));
        assert!(seen.is_sorted());
    }

    #[test]
    fn messages_out_of_order_are_refused() {
        let change = MessageKind::Change(vec![1]);
        let commit = |end| MessageKind::Commit {
            end: LogPosition(end),
        };
        let begin = |commit| MessageKind::Begin {
            commit: LogPosition(commit),
        };
        for (place, kind) in [
            (place(10, 0), change),
            (place(10, 0), commit(20)),
            (place(10, 2), commit(10)),
            (place(10, 2), begin(20)),
            (place(10, 0), begin(9)),
        ] {
            assert_eq!(place.after(&kind), Err(Malformed), "{place:?} {kind:?}");
        }
    }

    #[test]
    fn kinds_are_read_from_the_bytes() {
        let kind = |bytes: &'static [u8]| MessageKind::of(&Bytes::from_static(bytes));
        assert_eq!(
            kind(b"B\0\0\0\0\0\0\0\x09rest"),
            Ok(MessageKind::Begin {
                commit: LogPosition(9)
            })
        );
        assert_eq!(
            kind(b"C\0\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\0\x0Arest"),
            Ok(MessageKind::Commit {
                end: LogPosition(10)
            })
        );
        assert_eq!(
            kind(b"T\0\0\0\x02\x01\0\0\0\x07\0\0\0\x08"),
            Ok(MessageKind::Change(vec![7, 8]))
        );
        assert_eq!(kind(b"I\0\0\0\x07N"), Ok(MessageKind::Change(vec![7])));
        for short in [&b""[..], b"B123", b"C\0", b"I12", b"T\0\0\0\x02\x01"] {
            assert_eq!(kind(short), Err(Malformed), "{short:?}");
        }
    }
}
