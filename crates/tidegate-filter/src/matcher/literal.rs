//! Reads the literals of a filter. A literal is read exactly as PostgreSQL's input functions read
//! it, or rejected.

use bytes::BytesMut;
use tidegate_values::codec::Interval;
use tidegate_values::datetime::MomentType;
use tidegate_values::json::JsonKind;
use tidegate_values::{Type, base_type, parameter};

use super::datum::Datum;
use super::scalar::Scalar;
use crate::error::{Error, Result};
use crate::json::Json;
use crate::type_class::written;

/// The maximum length, in bytes, of a literal for `numeric`. A longer literal is rejected, because
/// it may exceed the limits of the type, which only PostgreSQL checks.
const LONGEST_NUMBER: usize = 5_000;

/// Reads a value that is not null. Its JSON kind was checked when the filter was parsed.
pub(super) fn read(
    r#type: &Type,
    scalar: &Scalar,
    json: &Json<'_>,
    place: &str,
) -> Result<Datum<'static>> {
    let mut text = BytesMut::new();
    parameter::encode(
        &json.parameter(),
        base_type(r#type),
        None,
        &|| place.to_owned(),
        &mut text,
    )
    .map_err(|error| Error::of_value(error, place))?;
    let text = String::from_utf8_lossy(&text);
    let trimmed = text.trim_ascii();
    let datum = match scalar {
        Scalar::Text | Scalar::Padded | Scalar::Bytea | Scalar::Uuid => {
            scalar.text(text.as_bytes())
        }
        Scalar::Enum(..) => match scalar.text(text.as_bytes()) {
            Some(Datum::UnknownLabel(_)) => {
                return Err(invalid(r#type, place, "no label of the enum"));
            }
            label => label,
        },
        Scalar::Bool => boolean(trimmed).map(|value| Datum::Int(value.into())),
        Scalar::Moment(moment) => return self::moment(*moment, r#type, trimmed, place),
        Scalar::Interval => {
            let plain = interval(trimmed);
            plain.and_then(|text| scalar.text(text.as_bytes()).map(Datum::into_owned))
        }
        Scalar::Oid if trimmed.starts_with('-') => None,
        Scalar::Numeric if trimmed.len() > LONGEST_NUMBER => None,
        _ => scalar.text(trimmed.as_bytes()),
    };
    let datum = datum.ok_or_else(|| unsupported_literal(r#type, place))?;
    Ok(datum.into_owned())
}

/// The text of a number, whose JSON kind was checked when the filter was parsed.
pub(super) fn number(json: &Json<'_>, place: &str) -> Result<String> {
    match json.kind() {
        JsonKind::String => Ok(json.string(&place)?.trim_ascii().to_owned()),
        _ => Ok(json.text().trim_ascii().to_owned()),
    }
}

/// The error for a text that only PostgreSQL may be able to read.
fn unsupported_literal(r#type: &Type, place: &str) -> Error {
    Error::Unsupported {
        place: place.to_owned(),
        problem: format!(
            "a {} is read in its plain form only, as PostgreSQL writes it",
            written(r#type)
        ),
    }
}

fn invalid(r#type: &Type, place: &str, problem: &str) -> Error {
    Error::InvalidValue {
        place: place.to_owned(),
        expected: written(r#type),
        problem: problem.to_owned(),
    }
}

/// Reads a word as PostgreSQL's `boolin` does, which also accepts unambiguous prefixes. `None` for
/// any other text.
fn boolean(text: &str) -> Option<bool> {
    let text = text.to_ascii_lowercase();
    let begins = |word: &str, least: usize| text.len() >= least && word.starts_with(&text);
    if begins("true", 1) || begins("yes", 1) || begins("on", 2) || text == "1" {
        return Some(true);
    }
    let no = begins("false", 1) || begins("no", 1) || begins("off", 2) || text == "0";
    no.then_some(false)
}

/// Reads an ISO 8601 text by converting it to the form that PostgreSQL writes.
fn moment(moment: MomentType, r#type: &Type, text: &str, place: &str) -> Result<Datum<'static>> {
    let plain = plain_moment(moment, text).ok_or_else(|| Error::Unsupported {
        place: place.to_owned(),
        problem: format!("a {} is read in the form of ISO 8601 only", written(r#type)),
    })?;
    Scalar::Moment(moment)
        .text(plain.as_bytes())
        .map(Datum::into_owned)
        .filter(|datum| is_in_range(moment, datum))
        .ok_or_else(|| invalid(r#type, place, "out of range"))
}

/// Whether the value is in the range of its type. PostgreSQL's range ("Date/Time Types") is
/// narrower than that of the integer that represents the value.
fn is_in_range(moment: MomentType, datum: &Datum<'_>) -> bool {
    const MICROS: i64 = 86_400_000_000;
    // The limits in days since 2000-01-01. The range begins at 4714-11-24 BC. Timestamps end before
    // 294277-01-01, dates before 5874898-01-01.
    const FIRST: i64 = -2_451_545;
    const LAST_TIMESTAMP: i64 = 106_751_983;
    const LAST_DATE: i64 = 2_145_031_949;
    match (moment, datum) {
        (MomentType::Date, Datum::Int(days)) => {
            (FIRST..LAST_DATE).contains(days)
                || [i32::MIN, i32::MAX].contains(&i32::try_from(*days).unwrap_or_default())
        }
        (MomentType::Timestamp | MomentType::TimestampTz, Datum::Int(micros)) => {
            (FIRST * MICROS..LAST_TIMESTAMP * MICROS).contains(micros)
                || [i64::MIN, i64::MAX].contains(micros)
        }
        _ => true,
    }
}

/// Converts an ISO 8601 text to the form that PostgreSQL writes; `None` for any other text.
fn plain_moment(moment: MomentType, text: &str) -> Option<String> {
    let dated = matches!(
        moment,
        MomentType::Date | MomentType::Timestamp | MomentType::TimestampTz
    );
    if !dated {
        return plain_time(text, moment == MomentType::TimeTz);
    }
    let lower = text.to_ascii_lowercase();
    if matches!(&*lower, "infinity" | "-infinity") {
        return Some(lower);
    }
    let (text, era) = match text.strip_suffix(" BC") {
        Some(text) => (text, " BC"),
        None => (text, ""),
    };
    let (day, time) = match text.find(['T', ' ']) {
        Some(at) => (&text[..at], text[at + 1..].trim_start()),
        None => (text, ""),
    };
    // The year must have at least four digits, because `DateStyle` decides how PostgreSQL reads a
    // shorter year.
    let year = day.split('-').next().filter(|year| year.len() >= 4)?;
    // The calendar has no year 0.
    if !is_of_digits(day, &[year.len(), 2, 2], '-') || year.bytes().all(|digit| digit == b'0') {
        return None;
    }
    match moment {
        MomentType::Date if time.is_empty() => Some(format!("{day}{era}")),
        MomentType::Date => None,
        _ if time.is_empty() => Some(format!(
            "{day} 00:00:00{}{era}",
            if moment == MomentType::TimestampTz {
                "+00"
            } else {
                ""
            }
        )),
        // PostgreSQL accepts an offset in a timestamp without time zone and ignores it.
        _ => Some(format!(
            "{day} {}{era}",
            plain_time(time, moment == MomentType::TimestampTz)?
        )),
    }
}

/// Converts a time `HH:MM[:SS[.f…]]` with an optional offset to the form that PostgreSQL writes.
/// `None` for any other text. The result has an offset only if `zoned` is true. A text without an
/// offset is in UTC, the time zone of every session.
fn plain_time(text: &str, zoned: bool) -> Option<String> {
    let at = text.find(['+', '-', 'Z', 'z']).unwrap_or(text.len());
    let (time, offset) = (text[..at].trim_end(), &text[at..]);
    let (clock, fraction) = time.split_once('.').unwrap_or((time, ""));
    let seconds = if clock.len() == 5 { ":00" } else { "" };
    let fields = &[2, 2, 2][..if seconds.is_empty() { 3 } else { 2 }];
    let fraction_fits = fraction.len() <= 6 && fraction.bytes().all(|byte| byte.is_ascii_digit());
    if !is_of_digits(clock, fields, ':') || !fraction_fits || time.ends_with('.') {
        return None;
    }
    if !fraction.is_empty() && !seconds.is_empty() {
        return None;
    }
    let below = |field: usize, limit: &str| {
        clock
            .get(3 * field..3 * field + 2)
            .is_none_or(|digits| digits < limit)
    };
    let within = below(0, "24") && below(1, "60") && below(2, "60");
    if !within && !is_midnight(clock, fraction) {
        return None;
    }
    let offset = match offset {
        "" | "Z" | "z" => "+00",
        offset if is_offset(&offset[1..]) => offset,
        _ => return None,
    };
    let fraction = if fraction.is_empty() {
        String::new()
    } else {
        format!(".{fraction}")
    };
    Some(format!(
        "{clock}{seconds}{fraction}{}",
        if zoned { offset } else { "" }
    ))
}

/// Whether the time is 24:00, the end of the day.
fn is_midnight(clock: &str, fraction: &str) -> bool {
    matches!(clock, "24:00" | "24:00:00") && fraction.bytes().all(|byte| byte == b'0')
}

/// Whether the text is an offset `HH[:MM[:SS]]` below 16 hours, or `HHMM`.
fn is_offset(text: &str) -> bool {
    let fields = [2; 3];
    let shaped = match text.len() {
        4 => text.bytes().all(|byte| byte.is_ascii_digit()),
        length => (1..=3)
            .any(|count| length == 3 * count - 1 && is_of_digits(text, &fields[..count], ':')),
    };
    if !shaped {
        return false;
    }
    // The checks above ensure that the text has only digits and colons, and at least two
    // characters.
    let minutes = (text.len() > 2).then(|| &text[text.len() - 2..]);
    &text[..2] < "16" && minutes.is_none_or(|digits| digits < "60")
}

/// Whether the text has fields separated by `mark`, with the numbers of digits in `fields`.
fn is_of_digits(text: &str, fields: &[usize], mark: char) -> bool {
    let mut parts = text.split(mark);
    let fit = fields.iter().all(|length| {
        parts.next().is_some_and(|part| {
            part.len() == *length && part.bytes().all(|byte| byte.is_ascii_digit())
        })
    });
    fit && parts.next().is_none()
}

/// Converts an interval to the form that PostgreSQL writes. The text may already have this form, or
/// it may have the ISO 8601 form into which `tidegate_values` converts a JSON object. Only the
/// seconds may be fractional. `None` for any other text.
fn interval(text: &str) -> Option<String> {
    let Some(fields) = text.strip_prefix('P') else {
        return is_plain_interval(text).then(|| text.to_owned());
    };
    if fields.is_empty() {
        return None;
    }
    let (date, time) = fields.split_once('T').unwrap_or((fields, ""));
    let [years, months, days] = unit_numbers(date, ['Y', 'M', 'D'])?;
    let (time, seconds) = match time.rfind(['H', 'M']) {
        Some(at) => time.split_at(at + 1),
        None => ("", time),
    };
    let [hours, minutes, none] = unit_numbers(time, ['H', 'M', '\0'])?;
    let micros = micros(seconds)?.checked_add(
        hours
            .checked_mul(3600)?
            .checked_add(minutes.checked_mul(60)?)?
            .checked_mul(1_000_000)?,
    )?;
    let months = i32::try_from(years.checked_mul(12)?.checked_add(months)?).ok()?;
    let days = i32::try_from(days).ok()?;
    (none == 0).then(|| {
        interval_text(Interval {
            months,
            days,
            micros,
        })
    })
}

/// The text of an interval in the form that PostgreSQL writes.
fn interval_text(interval: Interval) -> String {
    let sign = if interval.micros < 0 { "-" } else { "" };
    let micros = interval.micros.unsigned_abs();
    let (seconds, micros) = (micros / 1_000_000, micros % 1_000_000);
    format!(
        "{} mons {} days {sign}{:02}:{:02}:{:02}.{micros:06}",
        interval.months,
        interval.days,
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

/// Reads numbers that are each followed by one of `letters`, in this order. Missing numbers are 0.
/// `None` for any other text.
fn unit_numbers(text: &str, letters: [char; 3]) -> Option<[i64; 3]> {
    let mut rest = text;
    let mut numbers = [0; 3];
    for (number, letter) in numbers.iter_mut().zip(letters) {
        if let Some((digits, after)) = rest.split_once(letter) {
            *number = digits.parse().ok()?;
            rest = after;
        }
    }
    rest.is_empty().then_some(numbers)
}

/// Reads seconds with at most six decimals and a final `S`; returns microseconds. `None` for any
/// other text.
fn micros(text: &str) -> Option<i64> {
    if text.is_empty() {
        return Some(0);
    }
    let number = text.strip_suffix('S')?;
    let (sign, number) = match number.strip_prefix('-') {
        Some(number) => (-1, number),
        None => (1, number),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if fraction.len() > 6 || !digits(whole) || !digits(fraction) || whole.is_empty() {
        return None;
    }
    let fraction: i64 = format!("{fraction:0<6}").parse().ok()?;
    let whole = whole.parse::<i64>().ok()?.checked_mul(1_000_000)?;
    Some(sign * whole.checked_add(fraction)?)
}

/// Whether the text has years, months, days and a time, each at most once and in this order.
fn is_plain_interval(text: &str) -> bool {
    const UNITS: [&str; 3] = ["year", "mon", "day"];
    let mut words = text.split(' ');
    let mut least = 0;
    while let Some(number) = words.next() {
        if number.contains(':') {
            let time = number.trim_start_matches(['-', '+']);
            let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
            let below = |part: &str| part.len() == 2 && part < "60";
            let parts: Vec<_> = clock.split(':').collect();
            let fits = matches!(parts[..], [hours, minutes, seconds]
                if (2..=6).contains(&hours.len()) && below(minutes) && below(seconds));
            return fits
                && (1..=6).contains(&fraction.len())
                && number.len() <= time.len() + 1
                && words.next().is_none();
        }
        let unit = words
            .next()
            .map(|unit| unit.strip_suffix('s').unwrap_or(unit));
        let Some(at) = UNITS.iter().position(|known| Some(*known) == unit) else {
            return false;
        };
        if at < least {
            return false;
        }
        least = at + 1;
    }
    !text.is_empty()
}
