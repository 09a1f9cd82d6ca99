//! Tests decoding the messages of the change log from arbitrary bytes.

use bytes::{BufMut, Bytes, BytesMut};
use proptest::prelude::*;
use tidegate_changelog::LogPosition;
use tidegate_feed::pgoutput::{ColumnValue, DecodeError, OldRow, PgOutputMessage, decode};

fn text(out: &mut BytesMut, text: &str) {
    out.put_slice(text.as_bytes());
    out.put_u8(0);
}

/// A row of texts; `None` is NULL.
fn tuple(out: &mut BytesMut, values: &[Option<String>]) {
    out.put_u16(u16::try_from(values.len()).unwrap());
    for value in values {
        match value {
            None => out.put_u8(b'n'),
            Some(value) => {
                out.put_u8(b't');
                out.put_u32(u32::try_from(value.len()).unwrap());
                out.put_slice(value.as_bytes());
            }
        }
    }
}

fn build(kind: u8, fill: &dyn Fn(&mut BytesMut)) -> Bytes {
    let mut out = BytesMut::from(&[kind][..]);
    fill(&mut out);
    out.freeze()
}

/// One message of every kind.
fn samples() -> Vec<Bytes> {
    let mut samples = frames();
    samples.extend(rows());
    samples
}

/// Messages of transactions and definitions.
fn frames() -> Vec<Bytes> {
    let header = |out: &mut BytesMut| {
        out.put_u64(7);
        out.put_u64(8);
    };
    vec![
        build(b'B', &|out| {
            header(out);
            out.put_u32(9);
        }),
        build(b'C', &|out| {
            out.put_u8(0);
            header(out);
            out.put_u64(1);
        }),
        build(b'O', &|out| {
            out.put_u64(1);
            text(out, "elsewhere");
        }),
        build(b'R', &|out| {
            out.put_u32(5);
            text(out, "public");
            text(out, "t");
            out.put_u8(b'd');
            out.put_u16(2);
            for (flags, name) in [(1, "id"), (0, "a b")] {
                out.put_u8(flags);
                text(out, name);
                out.put_u32(23);
                out.put_i32(-1);
            }
        }),
        build(b'Y', &|out| {
            out.put_u32(77);
            text(out, "public");
            text(out, "mood");
        }),
    ]
}

/// Messages of changed rows.
fn rows() -> Vec<Bytes> {
    let row = [Some("1".to_owned()), None, Some("é\n".to_owned())];
    vec![
        build(b'I', &|out| {
            out.put_u32(5);
            out.put_u8(b'N');
            tuple(out, &row);
        }),
        build(b'U', &|out| {
            out.put_u32(5);
            out.put_u8(b'O');
            tuple(out, &row);
            out.put_u8(b'N');
            tuple(out, &row);
        }),
        build(b'D', &|out| {
            out.put_u32(5);
            out.put_u8(b'K');
            tuple(out, &row);
        }),
        build(b'T', &|out| {
            out.put_u32(2);
            out.put_u8(1);
            out.put_u32(5);
            out.put_u32(6);
        }),
        build(b'M', &|out| {
            out.put_u8(1);
            out.put_u64(3);
            text(out, "prefix");
            out.put_u32(2);
            out.put_slice(b"xy");
        }),
    ]
}

#[test]
fn every_kind_of_message_is_read() {
    let messages: Vec<_> = samples()
        .iter()
        .map(|sample| decode(sample).unwrap())
        .collect();
    let place = LogPosition(7);
    assert_eq!(
        messages[0],
        PgOutputMessage::Begin {
            commit: place,
            transaction: 9
        }
    );
    assert_eq!(
        messages[1],
        PgOutputMessage::Commit {
            commit: place,
            end: LogPosition(8)
        }
    );
    assert_eq!(messages[2], PgOutputMessage::Origin);
    let PgOutputMessage::Relation(relation) = &messages[3] else {
        panic!("{:?}", messages[3]);
    };
    assert_eq!((&*relation.schema, &*relation.name), ("public", "t"));
    assert!(!relation.full_replica_identity);
    assert_eq!(&*relation.columns[1].name, "a b");
    let in_identity = relation.columns.iter().map(|one| one.in_replica_identity);
    assert!(in_identity.eq([true, false]));
    assert_eq!(messages[4], PgOutputMessage::Type { oid: 77 });
    let PgOutputMessage::Insert { relation: 5, new } = &messages[5] else {
        panic!("{:?}", messages[5]);
    };
    assert_eq!(new.value(0), ColumnValue::Text(b"1"));
    assert_eq!(new.value(1), ColumnValue::Null);
    assert_eq!(new.value(2), ColumnValue::Text("é\n".as_bytes()));
    assert_eq!(new.value(3), ColumnValue::Absent);
    assert!(
        matches!(&messages[6], PgOutputMessage::Update { old: Some(OldRow::Row(old)), new, .. } if old.value(0) == new.value(0))
    );
    assert!(matches!(
        &messages[7],
        PgOutputMessage::Delete {
            old: OldRow::Key(_),
            ..
        }
    ));
    assert_eq!(
        messages[8],
        PgOutputMessage::Truncate {
            relations: [5, 6].into()
        }
    );
    assert_eq!(
        messages[9],
        PgOutputMessage::Emitted {
            content: Bytes::from_static(b"xy")
        }
    );
}

#[test]
fn what_is_cut_off_or_too_long_is_refused() {
    for sample in samples() {
        for length in 0..sample.len() {
            assert_eq!(decode(&sample.slice(..length)), Err(DecodeError::Truncated));
        }
        let mut longer = BytesMut::from(&sample[..]);
        longer.put_u8(0);
        assert_eq!(decode(&longer.freeze()), Err(DecodeError::Trailing));
    }
}

proptest! {
    #[test]
    fn a_row_comes_out_as_it_went_in(values: Vec<Option<String>>) {
        let mut message = BytesMut::from(&b"I\0\0\0\x05N"[..]);
        tuple(&mut message, &values);
        let PgOutputMessage::Insert { relation: 5, new } = decode(&message.freeze()).unwrap() else {
            panic!("no INSERT");
        };
        prop_assert_eq!(new.len(), values.len());
        for (at, value) in values.iter().enumerate() {
            let expected = value.as_ref().map_or(ColumnValue::Null, |value| ColumnValue::Text(value.as_bytes()));
            prop_assert_eq!(new.value(at), expected);
        }
    }

    #[test]
    fn no_bytes_do_harm(bytes: Vec<u8>) {
        let _ = decode(&bytes.into());
    }

    #[test]
    fn no_flipped_byte_does_harm(sample in 0..10_usize, at: prop::sample::Index, byte: u8) {
        let mut bytes = BytesMut::from(&samples()[sample][..]);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(PgOutputMessage::Insert { new, .. }) = decode(&bytes.freeze()) {
            (0..new.len()).for_each(|at| drop(format!("{:?}", new.value(at))));
        }
    }
}
