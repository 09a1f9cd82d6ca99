//! Writes a result as JSON and CSV from the bytes that PostgreSQL would send, and measures a result
//! of 1,000 rows.
//!
//! `cargo run --release -p tidegate-values --example encode_rows`

use std::io::Write as _;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use tidegate_values::codec::wire_format;
use tidegate_values::{Column, OutputFormat, OutputOptions, RawRow, RowWriter, Type};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let columns: Vec<Column> = [
        ("id", Type::INT4),
        ("title", Type::TEXT),
        ("price", Type::NUMERIC),
        ("created_at", Type::TIMESTAMPTZ),
    ]
    .map(|(name, r#type)| Column {
        name: name.to_owned(),
        format: wire_format(&r#type),
        r#type,
        origin: None,
    })
    .into();
    let rows: Vec<Vec<u8>> = (0..1000).map(row).collect();

    let mut stdout = std::io::stdout();
    for format in [OutputFormat::Json, OutputFormat::Csv] {
        let mut out = BytesMut::new();
        encode(format, &columns, &rows[..3], &mut out)?;
        out.extend_from_slice(b"\n");
        stdout.write_all(&out)?;
    }
    let mut out = BytesMut::with_capacity(1 << 18);
    for format in [OutputFormat::Json, OutputFormat::Csv] {
        let mut least = Duration::MAX;
        for _ in 0..500 {
            out.clear();
            let begin = Instant::now();
            encode(format, &columns, &rows, &mut out)?;
            least = least.min(begin.elapsed());
        }
        writeln!(
            stdout,
            "{format:?}: 1000 rows of 4 columns, {} bytes, in {least:?}",
            out.len()
        )?;
    }
    Ok(())
}

/// Writes a whole result.
fn encode(
    format: OutputFormat,
    columns: &[Column],
    rows: &[Vec<u8>],
    out: &mut BytesMut,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut writer = RowWriter::new(format, OutputOptions::default())?;
    writer.columns(columns, out)?;
    for row in rows {
        let row = RawRow::new(columns.len(), row).ok_or("the row has other columns")?;
        writer.row(row, out)?;
    }
    writer.finish(None, out);
    Ok(())
}

/// A row in binary format: an `int4`, a `text`, a `numeric` with two decimals, and a `timestamptz`
/// in microseconds since 2000-01-01.
fn row(number: i32) -> Vec<u8> {
    let title = if number % 10 == 0 {
        "The \"quoted\" album"
    } else {
        "An album without quotes"
    };

    let digits = [
        2_i16,
        0,
        0,
        2,
        1 + i16::try_from(number % 90).unwrap_or(0),
        9900,
    ];
    let moment = 840_000_000_000_000 + i64::from(number) * 86_461_500_000;
    let mut row = Vec::new();
    for value in [
        &number.to_be_bytes()[..],
        title.as_bytes(),
        &digits.map(i16::to_be_bytes).concat(),
        &moment.to_be_bytes(),
    ] {
        row.extend(u32::try_from(value.len()).unwrap_or_default().to_be_bytes());
        row.extend(value);
    }
    row
}
