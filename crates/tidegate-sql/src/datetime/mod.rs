//! Dates: calendar arithmetic and PHP's date letters, both ways.

use postgres_types::Type;

/// Date letters, compiled.
#[derive(Clone, Debug)]
pub struct DateFormat {}

/// Reads `text` by date letters and gives the text form that PostgreSQL takes.
pub fn parse_with_format(format: &str, text: &str, r#type: &Type) -> Result<String, String> {
    let _ = (format, text, r#type);
    Err("not written yet".into())
}

/// A time zone of the IANA database.
#[derive(Clone, Debug)]
pub struct Zone(jiff::tz::TimeZone);

impl Zone {
    /// The zone of that name, such as `Europe/Copenhagen`.
    pub fn named(name: &str) -> Option<Self> {
        jiff::tz::TimeZoneDatabase::bundled().get(name).ok().map(Self)
    }
}
