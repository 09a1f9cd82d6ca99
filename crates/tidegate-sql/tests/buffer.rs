//! Tests of results that are collected in memory.

use tidegate_sql::{Buffer, Completion, Error, RowSink as _};
use tidegate_values::{Column, OutputFormat, OutputOptions, RawRow, RowWriter, Type, WireFormat};

#[test]
fn a_buffer_refuses_to_grow_beyond_its_limit() {
    let columns = [Column {
        name: "t".to_owned(),
        r#type: Type::TEXT,
        format: WireFormat::Text,
        origin: None,
    }];
    let row = RawRow::new(1, b"\0\0\0\n0123456789").unwrap();
    let buffer = |limit| {
        let writer = RowWriter::new(OutputFormat::Ndjson, OutputOptions::default()).unwrap();
        let mut buffer = Buffer::new(writer, limit);
        buffer.columns(&columns).unwrap();
        buffer
    };
    let mut large = buffer(38);
    large.row(row).unwrap();
    large.row(row).unwrap();
    assert_eq!(
        large
            .finish(Completion {
                affected_rows: None
            })
            .unwrap(),
        "{\"t\":\"0123456789\"}\n".repeat(2)
    );
    let mut small = buffer(37);
    small.row(row).unwrap();
    assert!(matches!(small.row(row), Err(Error::ResultTooLarge(37))));
}
