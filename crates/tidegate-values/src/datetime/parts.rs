//! The parts of a parsed date or time, and PostgreSQL's text for them.

use bytes::BytesMut;

use super::calendar::{Civil, DAY, DAY_SECONDS, POSTGRES_DAY_ZERO, SECOND};
use super::moment::{MAX_OFFSET, Moment, MomentType};
use super::scan::Scanner;
use super::specifiers::day_number;
use super::zone::Zone;

/// The parts of a date or time that were found in a text; `None` for a missing part.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) year: Option<i64>,
    pub(super) month: Option<i64>,
    pub(super) day: Option<i64>,
    pub(super) day_of_year: Option<i64>,
    pub(super) hour: Option<i64>,
    pub(super) minute: Option<i64>,
    pub(super) second: Option<i64>,
    pub(super) micros: Option<i64>,
    pub(super) afternoon: Option<bool>,
    pub(super) zone: Option<ZoneText>,
    pub(super) epoch: Option<i64>,
    /// The values of the parts that follow from the date, such as the weekday. Each is a specifier
    /// and the value in the text. The values must agree with the date.
    pub(super) checks: Vec<(u8, i64)>,
    /// Whether missing parts are taken from 1970-01-01 00:00:00.
    pub(super) filled: bool,
    /// Whether the text may continue after the part that the format describes.
    pub(super) trailing: bool,
}

/// The time zone that a text names.
#[derive(Debug)]
pub(super) enum ZoneText {
    /// The offset in seconds east of UTC.
    Offset(i64),
    Zone(Zone),
    /// An abbreviation that this module does not know. PostgreSQL may know it.
    Unknown(String),
}

impl ZoneText {
    pub(super) fn read(scanner: &mut Scanner<'_>) -> Option<Self> {
        if let Some(b'+' | b'-') = scanner.peek() {
            return scanner
                .offset()
                .map(|seconds| Self::Offset(i64::from(seconds)));
        }
        let name = scanner.run(|byte| byte.is_ascii_alphanumeric() || b"/_+-".contains(&byte));
        let name = std::str::from_utf8(name)
            .ok()
            .filter(|name| !name.is_empty())?;
        match Zone::named(name) {
            Some(zone) => Some(Self::Zone(zone)),
            None => name
                .bytes()
                .all(|byte| byte.is_ascii_alphabetic())
                .then(|| Self::Unknown(name.to_owned())),
        }
    }
}

impl Parts {
    /// Checks that hour, minute and second are in their ranges.
    pub(super) fn checked(self) -> Result<Self, String> {
        for (what, value, most) in [
            ("hour", self.hour, 23),
            ("minute", self.minute, 59),
            ("second", self.second, 59),
        ] {
            if let Some(value) = value.filter(|value| *value > most) {
                return Err(format!("there is no {what} {value}"));
            }
        }
        Ok(self)
    }

    /// The date. If the text has the seconds since 1970, the date is computed from them alone.
    /// Otherwise it is computed from year, month and day, or from year and day of the year, and
    /// `checks` must agree with it.
    fn civil(&self) -> Result<Civil, String> {
        if let Some(epoch) = self.epoch {
            return Ok(Civil::from_days(epoch.div_euclid(DAY_SECONDS)));
        }
        let part = |value: Option<i64>, fill, what| match value {
            Some(value) => Ok(value),
            None if self.filled => Ok(fill),
            None => Err(format!(
                "the format gives no {what}; `|` at its end fills it from 1970-01-01"
            )),
        };
        let year = part(self.year, 1970, "year")?;
        let new_year = Civil {
            year,
            month: 1,
            day: 1,
        };
        let civil = match self.day_of_year {
            Some(day) => {
                Some(Civil::from_days(new_year.days() + day)).filter(|civil| civil.year == year)
            }
            None => Civil::checked(
                year,
                part(self.month, 1, "month")?,
                part(self.day, 1, "day")?,
            ),
        };
        let civil = civil.ok_or("there is no such day in the calendar")?;
        for (letter, value) in &self.checks {
            if day_number(*letter, civil) != Some(*value) {
                return Err(format!(
                    "`{}` does not agree with the day",
                    char::from(*letter)
                ));
            }
        }
        Ok(civil)
    }

    /// The time of day, in microseconds since midnight.
    fn time(&self) -> i64 {
        if let Some(epoch) = self.epoch {
            return epoch.rem_euclid(DAY_SECONDS) * SECOND + self.micros.unwrap_or(0);
        }
        let hour = match (self.hour.unwrap_or(0), self.afternoon) {
            (hour, None) => hour,
            (hour, Some(afternoon)) => hour % 12 + if afternoon { 12 } else { 0 },
        };
        let seconds = (hour * 60 + self.minute.unwrap_or(0)) * 60 + self.second.unwrap_or(0);
        seconds * SECOND + self.micros.unwrap_or(0)
    }

    /// The text of the value for PostgreSQL's input function. A value without a zone is in `zone`.
    pub(super) fn into_text(self, moment: MomentType, zone: &Zone) -> Result<String, String> {
        let timed = [self.hour, self.epoch].iter().any(Option::is_some) || self.filled;
        if matches!(moment, MomentType::Time | MomentType::TimeTz) && !timed {
            return Err("the format gives no hour".to_owned());
        }
        let time = self.time();
        let days = match moment {
            MomentType::Time | MomentType::TimeTz => 0,
            _ => self.civil()?.days(),
        };
        let local = days * DAY_SECONDS + time / SECOND;
        let mut suffix = String::new();
        let offset = match self.zone {
            _ if self.epoch.is_some() => 0,
            Some(ZoneText::Offset(offset)) => offset,
            Some(ZoneText::Zone(place)) => i64::from(place.at_local(local).seconds),
            Some(ZoneText::Unknown(name)) => {
                suffix = format!(" {name}");
                0
            }
            None => i64::from(zone.at_local(local).seconds),
        };
        if offset.abs() >= i64::from(MAX_OFFSET) {
            return Err("there is no such offset from UTC".to_owned());
        }
        let since_day_zero = (days - POSTGRES_DAY_ZERO)
            .checked_mul(DAY)
            .and_then(|midnight| midnight.checked_add(time))
            .ok_or(OUT_OF_RANGE)?;
        text(match moment {
            MomentType::Date => {
                Moment::Date(i32::try_from(days - POSTGRES_DAY_ZERO).map_err(|_| OUT_OF_RANGE)?)
            }
            MomentType::Time => Moment::Time(time),
            MomentType::TimeTz if suffix.is_empty() => {
                Moment::TimeTz(time, i32::try_from(offset).map_err(|_| OUT_OF_RANGE)?)
            }
            MomentType::TimeTz => return text(Moment::Time(time)).map(|text| text + &suffix),
            MomentType::Timestamp => Moment::Timestamp(since_day_zero),
            MomentType::TimestampTz if suffix.is_empty() => {
                let utc = since_day_zero.checked_sub(offset * SECOND);
                Moment::TimestampTz(utc.ok_or(OUT_OF_RANGE)?)
            }
            MomentType::TimestampTz => {
                return text(Moment::Timestamp(since_day_zero)).map(|text| text + &suffix);
            }
        })
    }
}

const OUT_OF_RANGE: &str = "the moment is out of range";

fn text(moment: Moment) -> Result<String, String> {
    let mut text = BytesMut::new();
    moment.write(&mut text).map_err(|_| OUT_OF_RANGE)?;
    String::from_utf8(text.to_vec()).map_err(|_| OUT_OF_RANGE.to_owned())
}
