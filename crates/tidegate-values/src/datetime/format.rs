//! Writes dates and times by format specifiers, as PHP's `DateTime::format` does.

use std::borrow::Cow;

use bytes::BytesMut;

use super::calendar::{Civil, DAY_SECONDS, POSTGRES_DAY_ZERO, SECOND, weekday};
use super::iso::pair;
use super::moment::Moment;
use super::specifiers::{MONTHS, WEEKDAYS, day_number, expansion, ordinal_suffix};
use super::zone::{Offset, Zone};
use crate::append::{json_string, number};
use crate::error::Result;

/// A format for dates and times, parsed into items.
#[derive(Clone, Debug)]
pub struct DateFormat {
    items: Vec<Item>,
    zone: Zone,
    /// Whether a JSON string can contain the literals without escapes.
    plain: bool,
    /// Whether any specifier depends on the zone.
    zoned: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Item {
    Specifier(u8),
    /// The year as a part of the specifier `c` or `r`. It is written with at least four characters,
    /// including a sign (`%04d` in PHP).
    CompoundYear,
    Literal(Vec<u8>),
}

const SPECIFIERS: &[u8] = b"djDlNSwzWFMmntLoYyaAgGhHisuveIOPpTZU";

impl DateFormat {
    /// Parses a format. A character that is not a specifier is a literal, and so is any character
    /// after a backslash. Values are shown in `zone`.
    ///
    /// # Errors
    /// A message about the problem: the format is empty or ends in a backslash.
    pub fn new(format: &str, zone: Zone) -> Result<Self, String> {
        if format.is_empty() {
            return Err("the format is empty".to_owned());
        }
        let mut this = Self {
            items: Vec::new(),
            zone,
            plain: true,
            zoned: false,
        };
        this.read(format)?;
        Ok(this)
    }

    fn read(&mut self, format: &str) -> Result<(), String> {
        let mut bytes = format.bytes();
        while let Some(byte) = bytes.next() {
            if let Some(long) = expansion(byte) {
                let first = self.items.len();
                self.read(long)?;
                for item in self.items.iter_mut().skip(first) {
                    if *item == Item::Specifier(b'Y') {
                        *item = Item::CompoundYear;
                    }
                }
            } else if SPECIFIERS.contains(&byte) {
                self.zoned |= b"eIOPpTZU".contains(&byte);
                self.items.push(Item::Specifier(byte));
            } else if byte == b'\\' {
                let escaped = bytes.next();
                self.literal(
                    escaped.ok_or(
                        "a backslash ends the format; there is nothing behind it to escape",
                    )?,
                );
            } else {
                self.literal(byte);
            }
        }
        Ok(())
    }

    fn literal(&mut self, byte: u8) {
        self.plain &= byte >= 0x20 && byte != b'"' && byte != b'\\';
        match self.items.last_mut() {
            Some(Item::Literal(text)) => text.push(byte),
            _ => self.items.push(Item::Literal(vec![byte])),
        }
    }

    /// Appends a value as a JSON string.
    pub(crate) fn json(&self, moment: Moment, out: &mut BytesMut) -> Result<()> {
        if self.plain {
            out.extend_from_slice(b"\"");
            self.write(moment, out)?;
            out.extend_from_slice(b"\"");
            return Ok(());
        }
        let mut text = BytesMut::new();
        self.write(moment, &mut text)?;
        json_string(&text, out);
        Ok(())
    }

    /// Appends a value as text. The infinities are written as words, because no specifier applies
    /// to them.
    pub(crate) fn write(&self, moment: Moment, out: &mut BytesMut) -> Result<()> {
        if moment.infinity().is_some() {
            return moment.write(out);
        }
        let clock = self.clock(moment);
        for item in &self.items {
            match item {
                Item::Specifier(specifier) => clock.specifier(*specifier, self.zone.name(), out),
                Item::CompoundYear => signed(clock.day.year, 4, out),
                Item::Literal(text) => out.extend_from_slice(text),
            }
        }
        Ok(())
    }

    /// The date and time of day of a value in the format's zone.
    fn clock(&self, moment: Moment) -> Clock {
        let day_zero = POSTGRES_DAY_ZERO * DAY_SECONDS;
        let (local, micros, offset) = match moment {
            Moment::Date(days) => ((i64::from(days) + POSTGRES_DAY_ZERO) * DAY_SECONDS, 0, None),
            Moment::Time(micros) => (micros.div_euclid(SECOND), micros.rem_euclid(SECOND), None),
            Moment::TimeTz(micros, east) => {
                let offset = Offset {
                    seconds: east,
                    summer: false,
                    abbreviation: Cow::Borrowed(""),
                };
                (
                    micros.div_euclid(SECOND),
                    micros.rem_euclid(SECOND),
                    Some(offset),
                )
            }
            Moment::Timestamp(micros) => (
                micros.div_euclid(SECOND) + day_zero,
                micros.rem_euclid(SECOND),
                None,
            ),
            Moment::TimestampTz(micros) => {
                let epoch = micros.div_euclid(SECOND) + day_zero;
                let offset = self.zone.at(epoch);
                (
                    epoch + i64::from(offset.seconds),
                    micros.rem_euclid(SECOND),
                    Some(offset),
                )
            }
        };
        let offset = match offset {
            Some(offset) => offset,
            None if self.zoned => self.zone.at_local(local),
            None => Offset {
                seconds: 0,
                summer: false,
                abbreviation: Cow::Borrowed(""),
            },
        };
        let days = local.div_euclid(DAY_SECONDS);
        Clock {
            day: Civil::from_days(days),
            weekday: weekday(days),
            second: local.rem_euclid(DAY_SECONDS),
            micros,
            epoch: local - i64::from(offset.seconds),
            offset,
        }
    }
}

/// A value split into the parts that the specifiers of a format print: the date, the time of day,
/// and the offset of the zone.
struct Clock {
    day: Civil,
    weekday: i64,
    /// The seconds since midnight.
    second: i64,
    micros: i64,
    offset: Offset,
    /// The seconds since 1970-01-01 00:00:00 UTC.
    epoch: i64,
}

impl Clock {
    fn specifier(&self, specifier: u8, zone: &str, out: &mut BytesMut) {
        let Civil { year, month, day } = self.day;
        match specifier {
            b'd' => out.extend_from_slice(&pair(day)),
            b'j' => number::integer(day, out),
            b'D' => out.extend_from_slice(&name(&WEEKDAYS, self.weekday).as_bytes()[..3]),
            b'l' => out.extend_from_slice(name(&WEEKDAYS, self.weekday).as_bytes()),
            b'S' => out.extend_from_slice(ordinal_suffix(day).as_bytes()),
            b'F' => out.extend_from_slice(name(&MONTHS, month - 1).as_bytes()),
            b'M' => out.extend_from_slice(&name(&MONTHS, month - 1).as_bytes()[..3]),
            b'm' => out.extend_from_slice(&pair(month)),
            b'n' => number::integer(month, out),
            b'Y' => number::padded(year, 4, out),
            b'y' => signed(year % 100, 2, out),
            b'W' => number::padded(day_number(specifier, self.day).unwrap_or_default(), 2, out),
            b'N' | b'w' | b'z' | b't' | b'L' | b'o' => {
                number::integer(day_number(specifier, self.day).unwrap_or_default(), out);
            }
            b'e' | b'I' | b'O' | b'P' | b'p' | b'T' | b'Z' | b'U' => {
                self.zone_specifier(specifier, zone, out);
            }
            _ => self.time_specifier(specifier, out),
        }
    }

    fn time_specifier(&self, specifier: u8, out: &mut BytesMut) {
        let hour = self.second / 3600;
        let short = (hour + 11) % 12 + 1;
        match specifier {
            b'a' => out.extend_from_slice(if hour % 24 < 12 { b"am" } else { b"pm" }),
            b'A' => out.extend_from_slice(if hour % 24 < 12 { b"AM" } else { b"PM" }),
            b'g' => number::integer(short, out),
            b'G' => number::integer(hour, out),
            b'h' => out.extend_from_slice(&pair(short)),
            b'H' => out.extend_from_slice(&pair(hour)),
            b'i' => out.extend_from_slice(&pair(self.second / 60 % 60)),
            b's' => out.extend_from_slice(&pair(self.second % 60)),
            b'u' => number::padded(self.micros, 6, out),
            _ => number::padded(self.micros / 1000, 3, out),
        }
    }

    fn zone_specifier(&self, specifier: u8, zone: &str, out: &mut BytesMut) {
        let fixed = self.offset.abbreviation.is_empty();
        match specifier {
            b'I' => number::integer(i8::from(self.offset.summer), out),
            b'Z' => number::integer(self.offset.seconds, out),
            b'U' => number::integer(self.epoch, out),
            b'e' if !fixed => out.extend_from_slice(zone.as_bytes()),
            b'T' if !fixed => out.extend_from_slice(self.offset.abbreviation.as_bytes()),
            b'p' if self.offset.seconds == 0 && (fixed || self.offset.abbreviation == "UTC") => {
                out.extend_from_slice(b"Z");
            }
            _ => self.offset(specifier != b'O', out),
        }
    }

    /// Appends the zone's offset as `±HHMM` or `±HH:MM`.
    fn offset(&self, colon: bool, out: &mut BytesMut) {
        out.extend_from_slice(if self.offset.seconds < 0 { b"-" } else { b"+" });
        let minutes = i64::from(self.offset.seconds.unsigned_abs()) / 60;
        out.extend_from_slice(&pair(minutes / 60));
        if colon {
            out.extend_from_slice(b":");
        }
        out.extend_from_slice(&pair(minutes % 60));
    }
}

/// Appends a number with zeros before it, so that it has at least `places` characters including a
/// minus sign.
fn signed(value: i64, places: usize, out: &mut BytesMut) {
    number::padded(value, places - usize::from(value < 0), out);
}

fn name(names: &[&'static str], at: i64) -> &'static str {
    usize::try_from(at)
        .ok()
        .and_then(|at| names.get(at))
        .copied()
        .unwrap_or("???")
}
