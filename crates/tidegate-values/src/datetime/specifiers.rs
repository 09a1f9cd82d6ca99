//! Names and functions for both writing and parsing by format specifiers.

use super::calendar::{Civil, days_in_month, is_leap, weekday};

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

pub(super) const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

/// The specifiers that the letter `c` or `r` abbreviates; `None` for other letters.
pub(super) fn expansion(letter: u8) -> Option<&'static str> {
    match letter {
        b'c' => Some("Y-m-d\\TH:i:sP"),
        b'r' => Some("D, d M Y H:i:s O"),
        _ => None,
    }
}

/// The value of a specifier that depends on the date alone; `None` for other specifiers.
pub(super) fn day_number(letter: u8, day: Civil) -> Option<i64> {
    Some(match letter {
        b'w' => weekday(day.days()),
        b'N' => (weekday(day.days()) + 6) % 7 + 1,
        b'z' => day.day_of_year(),
        b'W' => day.iso_week().1,
        b'o' => day.iso_week().0,
        b't' => days_in_month(day.year, day.month),
        b'L' => i64::from(is_leap(day.year)),
        _ => return None,
    })
}

/// The English ordinal suffix of a day: `st`, `nd`, `rd` or `th`.
pub(super) fn ordinal_suffix(day: i64) -> &'static str {
    match (day / 10, day % 10) {
        (1, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    }
}
