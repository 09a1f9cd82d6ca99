//! Time zones of the embedded IANA database.

use std::borrow::Cow;

use jiff::Timestamp;
use jiff::tz::{Dst, TimeZone, TimeZoneDatabase};

use super::calendar::{CYCLE_DAYS, DAY_SECONDS};

/// A time zone by name, such as `Europe/Copenhagen`; UTC by default.
#[derive(Clone, Debug, Default)]
pub struct Zone(Option<TimeZone>);

/// The offset of a time zone at a point in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Offset {
    /// The offset in seconds east of UTC.
    pub(super) seconds: i32,
    /// Whether daylight saving time applies.
    pub(super) summer: bool,
    /// The abbreviation, such as `CEST`.
    pub(super) abbreviation: Cow<'static, str>,
}

/// The latest second for which the zone database is queried, in seconds since 1970. For a later
/// time, the corresponding time in the 400 years before this second is used: the calendar repeats
/// every 400 years.
const LAST: i64 = 253_000_000_000;

impl Zone {
    /// The zone with this name, in any letter case; `None` if it does not exist.
    pub fn named(name: &str) -> Option<Self> {
        if ["UTC", "Etc/UTC", "Z"]
            .iter()
            .any(|utc| utc.eq_ignore_ascii_case(name))
        {
            return Some(Self(None));
        }
        TimeZoneDatabase::bundled()
            .get(name)
            .ok()
            .map(|zone| Self(Some(zone)))
    }

    /// The zone's name.
    pub fn name(&self) -> &str {
        self.0
            .as_ref()
            .and_then(TimeZone::iana_name)
            .unwrap_or("UTC")
    }

    /// The offset at a point in time, given in seconds since 1970 UTC.
    pub(super) fn at(&self, epoch: i64) -> Offset {
        let zone = self
            .0
            .as_ref()
            .zip(Timestamp::from_second(within_years(epoch)).ok());
        let Some((zone, timestamp)) = zone else {
            return Offset {
                seconds: 0,
                summer: false,
                abbreviation: Cow::Borrowed("UTC"),
            };
        };
        let info = zone.to_offset_info(timestamp);
        Offset {
            seconds: info.offset().seconds(),
            summer: info.dst() == Dst::Yes,
            abbreviation: Cow::Owned(info.abbreviation().to_owned()),
        }
    }

    /// The offset at a local time, given in seconds since 1970-01-01 00:00:00 in local time. For a
    /// time that occurs twice, this is the offset of the first occurrence. For a skipped time, it
    /// is the offset before the gap.
    pub(super) fn at_local(&self, local: i64) -> Offset {
        let asked = within_years(local);
        let epoch = self.0.as_ref().and_then(|zone| {
            let clock = TimeZone::UTC.to_datetime(Timestamp::from_second(asked).ok()?);
            zone.to_timestamp(clock).ok()
        });
        let epoch = epoch.map_or(asked, Timestamp::as_second);
        let offset = self.at(epoch);
        // The offset is the local time minus the time in UTC. For a skipped time, this difference
        // is the offset before the gap.
        let seconds = i32::try_from(asked - epoch).unwrap_or(offset.seconds);
        Offset { seconds, ..offset }
    }
}

/// Returns a time in seconds since 1970 unchanged if it is not after [`LAST`]. For a later time,
/// returns the corresponding time in the 400 years before [`LAST`].
fn within_years(epoch: i64) -> i64 {
    let cycle = CYCLE_DAYS * DAY_SECONDS;
    if epoch <= LAST {
        epoch
    } else {
        LAST - cycle + (epoch - LAST).rem_euclid(cycle)
    }
}
