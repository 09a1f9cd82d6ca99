//! Converts between [`Timestamp`] and PostgreSQL's `timestamptz`.

use std::fmt::Write as _;

use tidegate_identity::Timestamp;

const MILLIS_PER_DAY: i64 = 86_400_000;
/// The milliseconds from 1970-01-01 to 2000-01-01. 2000-01-01 is the epoch of PostgreSQL's binary
/// format.
const POSTGRES_EPOCH_MILLIS: i64 = 10_957 * MILLIS_PER_DAY;
/// The start of the year 1, in milliseconds since 1970. Earlier times are written as `-infinity`.
const EARLIEST: i64 = -62_135_596_800_000;
/// A time that is still in the range of `timestamptz`, in milliseconds since 1970. Later times are
/// written as `infinity`.
const LATEST: i64 = 9_000_000_000_000_000;

/// The time as text that PostgreSQL parses as a `timestamptz`.
pub(crate) fn text(at: Timestamp) -> String {
    let millis = at.millis();
    if millis < EARLIEST {
        return "-infinity".to_owned();
    }
    if millis > LATEST {
        return "infinity".to_owned();
    }
    let (year, month, day) = civil(millis.div_euclid(MILLIS_PER_DAY));
    let time = millis.rem_euclid(MILLIS_PER_DAY);
    let (hours, minutes) = (time / 3_600_000, time / 60_000 % 60);
    let (seconds, rest) = (time / 1_000 % 60, time % 1_000);
    let mut text = String::with_capacity(32);
    let written = write!(
        text,
        "{year:04}-{month:02}-{day:02} {hours:02}:{minutes:02}:{seconds:02}.{rest:03}+00"
    );
    debug_assert!(written.is_ok(), "writing to a string succeeds");
    text
}

/// Converts a time from PostgreSQL's binary format, which is microseconds since 2000-01-01
/// (`timestamptz_send`). Fractions of a millisecond are rounded down.
pub(crate) fn from_binary(micros: i64) -> Timestamp {
    match micros {
        i64::MAX => Timestamp::from_millis(i64::MAX),
        i64::MIN => Timestamp::from_millis(i64::MIN),
        micros => Timestamp::from_millis(micros.div_euclid(1_000) + POSTGRES_EPOCH_MILLIS),
    }
}

/// The year, month and day of a day in the proleptic Gregorian calendar. `days` counts from
/// 1970-01-01. 400 years have 146,097 days. In the computation, years begin in March, so that the
/// leap day is the last day of a year, and days are counted from 0000-03-01.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_as_postgresql_reads_it() {
        let written = |millis| text(Timestamp::from_millis(millis));
        assert_eq!(written(0), "1970-01-01 00:00:00.000+00");
        assert_eq!(written(-1), "1969-12-31 23:59:59.999+00");
        assert_eq!(written(951_782_400_000), "2000-02-29 00:00:00.000+00");
        assert_eq!(written(1_795_173_603_042), "2026-11-20 11:20:03.042+00");
        assert_eq!(written(4_107_542_399_000), "2100-02-28 23:59:59.000+00");
        assert_eq!(written(i64::MAX), "infinity");
        assert_eq!(written(i64::MIN), "-infinity");
    }

    #[test]
    fn the_binary_form_counts_from_the_year_2000() {
        assert_eq!(from_binary(0), Timestamp::from_seconds(946_684_800));
        assert_eq!(from_binary(-1), Timestamp::from_millis(946_684_799_999));
        assert_eq!(from_binary(i64::MAX).millis(), i64::MAX);
    }
}
