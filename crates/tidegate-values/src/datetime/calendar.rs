//! The proleptic Gregorian calendar as PostgreSQL counts it: year 0 is 1 BC. Days are counted from
//! 1970-01-01.

/// The number of days from 1970-01-01 to 2000-01-01, which is PostgreSQL's day 0.
pub(super) const POSTGRES_DAY_ZERO: i64 = 10_957;
/// The number of days in 400 years. After 400 years the calendar repeats, including the weekdays.
pub(super) const CYCLE_DAYS: i64 = 146_097;
pub(super) const DAY_SECONDS: i64 = 86_400;
/// The number of microseconds in a second.
pub(super) const SECOND: i64 = 1_000_000;
/// The number of microseconds in a day.
pub(super) const DAY: i64 = DAY_SECONDS * SECOND;

/// A date: year (0 is 1 BC), month and day of the month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Civil {
    pub(super) year: i64,
    pub(super) month: i64,
    pub(super) day: i64,
}

impl Civil {
    /// The date that is `days` days after 1970-01-01.
    ///
    /// In this calculation, years begin in March. So the leap day is the last day of a year, and
    /// the number of days before a month is a linear function of the month's number, rounded down.
    #[inline]
    pub(super) fn from_days(days: i64) -> Self {
        let shifted = days + 719_468;
        let cycle = shifted.div_euclid(CYCLE_DAYS);
        // Divisions of `u32` are faster than those of `i64`, and every timestamp is converted here.
        let day = u32::try_from(shifted.rem_euclid(CYCLE_DAYS)).unwrap_or_default();
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let of_year = day - (365 * year + year / 4 - year / 100);
        let march_month = (5 * of_year + 2) / 153;
        let month = if march_month < 10 {
            march_month + 3
        } else {
            march_month - 9
        };
        Self {
            year: i64::from(year) + cycle * 400 + i64::from(month <= 2),
            month: i64::from(month),
            day: i64::from(of_year - (153 * march_month + 2) / 5 + 1),
        }
    }

    /// The date with these parts; `None` if it does not exist.
    pub(super) fn checked(year: i64, month: i64, day: i64) -> Option<Self> {
        let exists = (1..=12).contains(&month) && day >= 1 && day <= days_in_month(year, month);
        exists.then_some(Self { year, month, day })
    }

    /// The number of days from 1970-01-01 to the date.
    pub(super) fn days(self) -> i64 {
        let year = self.year - i64::from(self.month <= 2);
        let cycle = year.div_euclid(400);
        let of_cycle = year.rem_euclid(400);
        let march_month = (self.month + 9) % 12;
        let of_year = (153 * march_month + 2) / 5 + self.day - 1;
        let day = of_cycle * 365 + of_cycle / 4 - of_cycle / 100 + of_year;
        cycle * CYCLE_DAYS + day - 719_468
    }

    /// The day of the year, from 0.
    pub(super) fn day_of_year(self) -> i64 {
        self.days()
            - Self {
                month: 1,
                day: 1,
                ..self
            }
            .days()
    }

    /// The ISO 8601 year and week.
    pub(super) fn iso_week(self) -> (i64, i64) {
        let days = self.days();
        let thursday = days + 3 - (days + 3).rem_euclid(7);
        let thursday = Self::from_days(thursday);
        (thursday.year, thursday.day_of_year() / 7 + 1)
    }
}

/// The day of the week, from 0 for Sunday. `days` are the days since 1970-01-01.
pub(super) fn weekday(days: i64) -> i64 {
    (days + 4).rem_euclid(7)
}

pub(super) fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// The number of days of a month. `month` is a number from 1 to 12.
pub(super) fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::{Civil, is_leap, weekday};

    #[test]
    fn days_and_dates_are_inverse_over_the_whole_range_of_postgresql() {
        for days in (-2_500_000..2_145_000_000_i64).step_by(99_991) {
            let civil = Civil::from_days(days);
            assert_eq!(civil.days(), days);
            assert_eq!(
                Civil::checked(civil.year, civil.month, civil.day),
                Some(civil)
            );
        }
    }

    #[test]
    fn consecutive_days_differ_by_one_day_around_leap_days() {
        for year in [-4, 0, 1, 1900, 2000, 2023, 2024, 9999, 10_000] {
            let before = Civil {
                year,
                month: 2,
                day: 28,
            }
            .days();
            let next = Civil::from_days(before + 1);
            let expected = if is_leap(year) { (2, 29) } else { (3, 1) };
            assert_eq!((next.month, next.day), expected, "{year}");
        }
    }

    #[test]
    fn weeks_follow_iso_8601() {
        for (date, week, day) in [
            ((2005, 1, 1), (2004, 53), 6),
            ((2005, 1, 2), (2004, 53), 0),
            ((2007, 1, 1), (2007, 1), 1),
            ((2008, 12, 29), (2009, 1), 1),
            ((2010, 1, 3), (2009, 53), 0),
            ((2026, 11, 20), (2026, 47), 5),
        ] {
            let civil = Civil {
                year: date.0,
                month: date.1,
                day: date.2,
            };
            assert_eq!(civil.iso_week(), week, "{date:?}");
            assert_eq!(weekday(civil.days()), day, "{date:?}");
        }
    }
}
