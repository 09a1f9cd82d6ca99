//! Encodes pgoutput messages (PostgreSQL, "Logical Replication Message Formats").

use bytes::{BufMut, Bytes, BytesMut};
use tidegate_changelog::LogPosition;

use super::layout::Layout;
use super::record_text::Value;

pub(super) fn begin(commit: LogPosition, transaction: u64) -> Bytes {
    let mut out = BytesMut::with_capacity(21);
    out.put_u8(b'B');
    out.put_u64(commit.0);
    out.put_u64(0);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the protocol has the number without its epoch"
    )]
    out.put_u32(transaction as u32);
    out.freeze()
}

/// The message that ends a transaction.
pub(super) fn commit(commit: LogPosition, end: LogPosition) -> Bytes {
    let mut out = BytesMut::with_capacity(26);
    out.put_u8(b'C');
    out.put_u8(0);
    out.put_u64(commit.0);
    out.put_u64(end.0);
    out.put_u64(0);
    out.freeze()
}

/// The message that describes a table for the following rows. The message gives FULL as the replica
/// identity, because the outbox contains whole old rows.
pub(super) fn relation(layout: &Layout) -> Bytes {
    let mut out = BytesMut::new();
    out.put_u8(b'R');
    out.put_u32(layout.root);
    for name in [&layout.schema, &layout.name] {
        put_name(&mut out, name);
    }
    out.put_u8(b'f');
    out.put_u16(count(layout.columns_in_log().count()));
    for column in layout.columns_in_log() {
        out.put_u8(1);
        put_name(&mut out, &column.name);
        out.put_u32(column.r#type);
        out.put_i32(-1);
    }
    out.freeze()
}

/// The message of a row that was inserted, updated or deleted. `operation` is the type of the
/// message: `I`, `U` or `D`. `values` are the values of the old row for `D`, and those of the new
/// row for `I` and `U`.
pub(super) fn row(operation: u8, relation: u32, values: &[&Value<'_>]) -> Bytes {
    let mut out = BytesMut::new();
    out.put_u8(operation);
    out.put_u32(relation);
    out.put_u8(if operation == b'D' { b'O' } else { b'N' });
    out.put_u16(count(values.len()));
    for value in values {
        match value {
            None => out.put_u8(b'n'),
            Some(text) => {
                out.put_u8(b't');
                // The length fits, because PostgreSQL allows no value over 1 GB.
                out.put_u32(u32::try_from(text.len()).unwrap_or(u32::MAX));
                out.extend_from_slice(text);
            }
        }
    }
    out.freeze()
}

/// The message of a table that was truncated.
pub(super) fn truncate(relation: u32) -> Bytes {
    let mut out = BytesMut::with_capacity(10);
    out.put_u8(b'T');
    out.put_u32(1);
    out.put_u8(0);
    out.put_u32(relation);
    out.freeze()
}

fn put_name(out: &mut BytesMut, name: &str) {
    out.extend_from_slice(name.as_bytes());
    out.put_u8(0);
}

/// The number of columns as 16 bits. A table has at most 1,600 columns.
fn count(columns: usize) -> u16 {
    u16::try_from(columns).unwrap_or(u16::MAX)
}
