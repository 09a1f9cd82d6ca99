//! Ranges, written as objects with the members `lower`, `upper`, `lowerInclusive` and
//! `upperInclusive`.

use bytes::BytesMut;

use super::token::Tokens;
use crate::binary_reader::BinaryReader;
use crate::error::{MalformedValue, Result};

/// The JSON of the empty range, which has no bounds.
const EMPTY: &[u8] =
    br#"{"lower":null,"upper":null,"lowerInclusive":false,"upperInclusive":false,"empty":true}"#;

const IS_EMPTY: u8 = 0x01;
const LOWER_INCLUSIVE: u8 = 0x02;
const UPPER_INCLUSIVE: u8 = 0x04;
const LOWER_UNBOUNDED: u8 = 0x08;
const UPPER_UNBOUNDED: u8 = 0x10;

/// Appends a range in the format of `range_send`: flags and bounds. `write` appends a bound, which
/// is `None` if the range is unbounded on this side.
pub(super) fn binary(
    raw: &[u8],
    write: impl Fn(Option<&[u8]>, &mut BytesMut) -> Result<()>,
    out: &mut BytesMut,
) -> Result<()> {
    let mut reader = BinaryReader::new(raw);
    let flags = reader.u8()?;
    if flags & IS_EMPTY != 0 {
        out.extend_from_slice(EMPTY);
        return reader.end();
    }
    let mut bound = |unbounded, out: &mut BytesMut| {
        let raw = if flags & unbounded == 0 {
            Some(reader.value()?.ok_or(MalformedValue)?)
        } else {
            None
        };
        write(raw, out)
    };
    out.extend_from_slice(br#"{"lower":"#);
    bound(LOWER_UNBOUNDED, out)?;
    out.extend_from_slice(br#","upper":"#);
    bound(UPPER_UNBOUNDED, out)?;
    inclusive(
        flags & LOWER_INCLUSIVE != 0,
        flags & UPPER_INCLUSIVE != 0,
        out,
    );
    reader.end()
}

/// Appends a range from its text, such as `[1,2)` or `empty`. `write` appends a bound, which is
/// `None` if the range is unbounded on this side.
pub(super) fn text(
    tokens: &mut Tokens<'_>,
    write: impl Fn(Option<&[u8]>, &mut BytesMut) -> Result<()>,
    out: &mut BytesMut,
) -> Result<()> {
    if tokens.word(b"empty") {
        out.extend_from_slice(EMPTY);
        return Ok(());
    }
    let lower_inclusive = match tokens.next() {
        Some(b'[') => true,
        Some(b'(') => false,
        _ => return Err(MalformedValue),
    };
    out.extend_from_slice(br#"{"lower":"#);
    write(tokens.token(b",").given().as_deref(), out)?;
    tokens.expect(b',')?;
    out.extend_from_slice(br#","upper":"#);
    write(tokens.token(b"])").given().as_deref(), out)?;
    let upper_inclusive = match tokens.next() {
        Some(b']') => true,
        Some(b')') => false,
        _ => return Err(MalformedValue),
    };
    inclusive(lower_inclusive, upper_inclusive, out);
    Ok(())
}

fn inclusive(lower: bool, upper: bool, out: &mut BytesMut) {
    let word = |inclusive| if inclusive { &b"true"[..] } else { b"false" };
    out.extend_from_slice(br#","lowerInclusive":"#);
    out.extend_from_slice(word(lower));
    out.extend_from_slice(br#","upperInclusive":"#);
    out.extend_from_slice(word(upper));
    out.extend_from_slice(b"}");
}
