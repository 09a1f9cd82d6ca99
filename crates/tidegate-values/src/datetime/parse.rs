//! Parses texts by format specifiers, as PHP's `DateTime::createFromFormat` does. The result is
//! text for PostgreSQL's input functions.
//!
//! PHP fills missing parts from the current time and turns 31 February into 3 March. Such texts are
//! rejected here, because a database should not guess. However, a timestamp without a time gets
//! midnight, and `!` and `|` fill missing parts from 1970-01-01 as in PHP. `infinity` and
//! `-infinity` are accepted.

use postgres_types::Type;

use super::moment::MomentType;
use super::parts::{Parts, ZoneText};
use super::scan::Scanner;
use super::specifiers::{MONTHS, WEEKDAYS, expansion};
use super::zone::Zone;

/// Parses `text` by `format` into PostgreSQL's text form. `type` is a date, time or timestamp type,
/// or an array, range, multirange or domain of such a type. For an array, range or multirange,
/// `text` is one element or bound. A text without a zone is in `zone`.
///
/// # Errors
/// A message about the problem: the type accepts no format, the text does not match, a part is
/// missing, or the date or time does not exist.
pub fn parse_in_zone(
    format: &str,
    text: &str,
    r#type: &Type,
    zone: &Zone,
) -> Result<String, String> {
    let Some(moment) = MomentType::of(r#type) else {
        return Err(format!("a {} takes no date format", r#type.name()));
    };
    // Infinities are written as words in every format.
    if matches!(text, "infinity" | "-infinity") && moment.text(text.as_bytes()).is_some() {
        return Ok(text.to_owned());
    }
    let mut reading = Reading {
        text,
        format,
        scanner: Scanner::new(text.as_bytes()),
        parts: Parts::default(),
    };
    reading.pattern(format)?;
    if !reading.scanner.is_empty() && !reading.parts.trailing {
        return Err(reading.mismatch("the end of the text"));
    }
    reading.parts.checked()?.into_text(moment, zone)
}

/// A text that is being parsed by a format.
struct Reading<'a> {
    text: &'a str,
    format: &'a str,
    scanner: Scanner<'a>,
    parts: Parts,
}

impl Reading<'_> {
    fn pattern(&mut self, format: &str) -> Result<(), String> {
        let mut specifiers = format.bytes();
        while let Some(letter) = specifiers.next() {
            if let Some(long) = expansion(letter) {
                self.pattern(long)?;
                continue;
            }
            let literal = match letter {
                b'\\' => specifiers.next().ok_or("a backslash ends the format")?,
                _ if self.control(letter)? => continue,
                _ => letter,
            };
            if self.scanner.literal(literal).is_none() {
                return Err(self.mismatch("what stands there in the format"));
            }
        }
        Ok(())
    }

    /// Parses the part of the text for the specifier `letter`. Returns `false` if `letter` is not a
    /// specifier.
    fn control(&mut self, letter: u8) -> Result<bool, String> {
        let read = match letter {
            b'!' | b'|' => {
                if letter == b'!' {
                    self.parts = Parts::default();
                }
                self.parts.filled = true;
                Some(())
            }
            b'+' => {
                self.parts.trailing = true;
                self.scanner.run(|_| true);
                Some(())
            }
            b' ' => {
                self.scanner.run(|byte| byte == b' ' || byte == b'\t');
                Some(())
            }
            b'?' => (!self.scanner.character().is_empty()).then_some(()),
            b'#' => (self.scanner.peek().is_some_and(is_separator)).then(|| {
                self.scanner.character();
            }),
            b'*' => {
                self.scanner
                    .run(|byte| !is_separator(byte) && byte != b' ' && !byte.is_ascii_digit());
                Some(())
            }
            _ => match expected(letter) {
                Some(expected) => {
                    let read = self.date(letter).or_else(|| self.time(letter));
                    return read.map(|()| true).ok_or_else(|| self.mismatch(expected));
                }
                None => return Ok(false),
            },
        };
        read.map(|()| true)
            .ok_or_else(|| self.mismatch("a character of the format"))
    }

    fn date(&mut self, letter: u8) -> Option<()> {
        let (scanner, parts) = (&mut self.scanner, &mut self.parts);
        match letter {
            b'd' | b'j' => parts.day = Some(scanner.digits(1, 2)?.0),
            b'm' | b'n' => parts.month = Some(scanner.digits(1, 2)?.0),
            b'Y' => parts.year = Some(scanner.digits(1, 4)?.0),
            b'y' => {
                let year = scanner.digits(2, 2)?.0;
                parts.year = Some(if year < 70 { 2000 + year } else { 1900 + year });
            }
            b'z' => parts.day_of_year = Some(scanner.digits(1, 3)?.0),
            b'F' | b'M' => parts.month = Some(scanner.name(&MONTHS)? + 1),
            b'D' | b'l' => parts.checks.push((b'w', scanner.name(&WEEKDAYS)?)),
            b'S' => ["st", "nd", "rd", "th"]
                .iter()
                .find_map(|suffix| scanner.word(suffix.as_bytes()))?,
            b'N' | b'w' | b'L' => parts.checks.push((letter, scanner.digits(1, 1)?.0)),
            b'W' | b't' => parts.checks.push((letter, scanner.digits(2, 2)?.0)),
            b'o' => parts.checks.push((letter, scanner.digits(1, 4)?.0)),
            _ => return None,
        }
        Some(())
    }

    fn time(&mut self, letter: u8) -> Option<()> {
        let (scanner, parts) = (&mut self.scanner, &mut self.parts);
        match letter {
            b'a' | b'A' => {
                let afternoon = scanner.word(b"pm").map(|()| true);
                parts.afternoon = afternoon.or_else(|| scanner.word(b"am").map(|()| false));
                parts.afternoon?;
            }
            b'g' | b'h' => {
                parts.hour = Some(scanner.digits(1, 2)?.0).filter(|hour| (1..=12).contains(hour));
            }
            b'G' | b'H' => parts.hour = Some(scanner.digits(1, 2)?.0),
            b'i' => parts.minute = Some(scanner.digits(2, 2)?.0),
            b's' => parts.second = Some(scanner.digits(2, 2)?.0),
            b'u' | b'v' => {
                let (value, count) = scanner.digits(1, if letter == b'u' { 6 } else { 3 })?;
                parts.micros = Some((count..6).fold(value, |value, _| value * 10));
            }
            b'U' => {
                let sign = scanner.sign().unwrap_or(1);
                parts.epoch = Some(sign * scanner.digits(1, 13)?.0);
            }
            b'Z' => {
                let sign = scanner.sign().unwrap_or(1);
                parts.zone = Some(ZoneText::Offset(sign * scanner.digits(1, 6)?.0));
            }
            b'I' => drop(scanner.digits(1, 1)?),
            b'e' | b'O' | b'P' | b'p' | b'T' => parts.zone = Some(ZoneText::read(scanner)?),
            _ => return None,
        }
        // `hour` is `None` here if `g` or `h` read an hour that is not from 1 to 12.
        (!matches!(letter, b'g' | b'h') || parts.hour.is_some()).then_some(())
    }

    fn mismatch(&self, expected: &str) -> String {
        let read = self.text.len() - self.scanner.rest().len();
        let character = self
            .text
            .get(..read)
            .map_or(read, |read| read.chars().count())
            + 1;
        format!(
            "the text does not match the format `{}`: expected {expected} at character {character}",
            self.format
        )
    }
}

/// A description of the text that a specifier reads, for errors; `None` if `letter` is not a
/// specifier.
fn expected(letter: u8) -> Option<&'static str> {
    Some(match letter {
        b'd' | b'j' => "a day of one or two digits",
        b'm' | b'n' => "a month of one or two digits",
        b'Y' | b'o' => "a year of up to four digits",
        b'y' => "a year of two digits",
        b'z' => "a day of the year",
        b'F' | b'M' => "the name of a month",
        b'D' | b'l' => "the name of a weekday",
        b'S' => "st, nd, rd or th",
        b'N' | b'w' => "a day of the week",
        b'L' | b'I' => "0 or 1",
        b'W' => "a week of two digits",
        b't' => "a number of days of two digits",
        b'a' | b'A' => "am or pm",
        b'g' | b'h' => "an hour from 1 to 12",
        b'G' | b'H' => "an hour of one or two digits",
        b'i' => "minutes of two digits",
        b's' => "seconds of two digits",
        b'u' => "up to six digits of a second",
        b'v' => "up to three digits of a second",
        b'U' => "seconds since 1970",
        b'Z' => "an offset in seconds",
        b'e' | b'O' | b'P' | b'p' | b'T' => "a time zone",
        _ => return None,
    })
}

fn is_separator(byte: u8) -> bool {
    b";:/.,-()".contains(&byte)
}
