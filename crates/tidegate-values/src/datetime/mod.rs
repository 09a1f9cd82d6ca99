//! Dates and times: the calendar, the ISO 8601 forms, and format specifiers both ways.
//!
//! `type_formats` shows a date, time or timestamp by the specifiers of PHP's `DateTime::format`
//! ([`DateFormat`]) and reads one by those of `DateTime::createFromFormat`
//! ([`parse_with_format`]).

mod calendar;
mod format;
mod iso;
mod moment;
mod parse;
mod parts;
mod scan;
mod specifiers;
mod zone;

pub use self::format::DateFormat;
pub use self::moment::{Moment, MomentType};
pub use self::parse::{parse_in_zone, parse_with_format};
pub use self::zone::Zone;

pub(crate) use self::iso::fraction;
pub(crate) use self::scan::Scanner;
