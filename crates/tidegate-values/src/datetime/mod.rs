//! Dates and times: the calendar, the ISO 8601 forms, and format specifiers in both directions.
//!
//! `type_formats` writes dates, times and timestamps by the specifiers of PHP's `DateTime::format`
//! ([`DateFormat`]) and reads them by the specifiers of `DateTime::createFromFormat`
//! ([`parse_in_zone`]).

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
pub use self::parse::parse_in_zone;
pub use self::zone::Zone;

pub(crate) use self::iso::fraction;
pub(crate) use self::scan::Scanner;
