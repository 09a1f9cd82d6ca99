//! Content negotiation: `Accept`, `Prefer`, `Content-Type`.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName};
use tidegate_sql::{Author, QueryOptions};
use tidegate_values::OutputFormat;

use crate::error::ApiError;
use crate::limits::Limits;

const PREFER: HeaderName = HeaderName::from_static("prefer");

/// The format of a request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentType {
    /// `application/json`.
    Json,
    /// `application/json-rpc` (JSON-RPC over HTTP).
    JsonRpc,
    /// `application/x-www-form-urlencoded`.
    Form,
}

impl ContentType {
    /// The format that `Content-Type` names. Without the header it is JSON. `None` for any other
    /// format.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let Some(value) = headers.get(CONTENT_TYPE) else {
            return Some(Self::Json);
        };
        let essence = value.to_str().ok()?.split(';').next()?.trim();
        if essence.eq_ignore_ascii_case("application/json") {
            Some(Self::Json)
        } else if essence.eq_ignore_ascii_case("application/json-rpc") {
            Some(Self::JsonRpc)
        } else if essence.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            Some(Self::Form)
        } else {
            None
        }
    }
}

/// The name and the weight of an item in a weighted list (RFC 9110, section 12.4.2). Other
/// parameters of the item are ignored. Without a valid weight, the weight is 1.
pub fn weighted(item: &str) -> (&str, f32) {
    let mut parts = item.split(';').map(str::trim);
    let name = parts.next().unwrap_or_default();
    let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
    (
        name,
        weight.and_then(|weight| weight.parse().ok()).unwrap_or(1.0),
    )
}

/// The format of a result. It is `named` (the value of the member `output_format`), or else the
/// best format in `Accept`, or else JSON.
///
/// # Errors
///
/// 406 without `named` if `Accept` excludes all formats. 406 with `named` if `Accept` excludes
/// `named` and does not contain `application/json`.
pub fn output_format(
    named: Option<OutputFormat>,
    headers: &HeaderMap,
) -> Result<OutputFormat, ApiError> {
    let mut accepted = headers.get_all(ACCEPT).iter().peekable();
    // Nearly all clients send no `Accept`, or a common value that need not be parsed.
    if accepted
        .peek()
        .is_none_or(|value| COMMON_ACCEPT.contains(&value.as_bytes()))
    {
        return Ok(named.unwrap_or_default());
    }
    let ranges: Vec<_> = accepted
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','))
        .map(weighted)
        .filter(|(range, _)| !range.is_empty())
        .collect();
    // An empty `Accept` accepts everything (RFC 9110, section 12.5.1).
    if ranges.is_empty() {
        return Ok(named.unwrap_or_default());
    }
    let quality = |format| {
        ranges
            .iter()
            .filter_map(|range| matches(range, format))
            .max()
    };
    let Some(named) = named else {
        return best(quality).ok_or_else(|| {
            ApiError::not_acceptable("the result can be had as application/json, text/csv, application/x-ndjson or application/geo+json")
        });
    };
    let json = ranges
        .iter()
        .any(|(range, _)| range.eq_ignore_ascii_case("application/json"));
    match quality(named) {
        Some((_, weight)) if weight > 0 => Ok(named),
        _ if json => Ok(named),
        _ => Err(ApiError::not_acceptable(
            "`Accept` excludes the format that `output_format` asks for",
        )),
    }
}

const COMMON_ACCEPT: [&[u8]; 3] = [
    b"*/*",
    b"application/json",
    b"application/json; charset=utf-8",
];

const FORMATS: [OutputFormat; 4] = [
    OutputFormat::Json,
    OutputFormat::Csv,
    OutputFormat::Ndjson,
    OutputFormat::GeoJson,
];

/// How precisely a media range in `Accept` names a format (2 for its exact name, 1 for `type/*`, 0
/// for `*/*`), and the weight of the range in thousandths.
type Match = (u8, u16);

fn best(quality: impl Fn(OutputFormat) -> Option<Match>) -> Option<OutputFormat> {
    let weighted = FORMATS
        .iter()
        .filter_map(|format| Some((*format, quality(*format)?)));
    let mut best: Option<(OutputFormat, u16)> = None;
    for (format, (_, weight)) in weighted {
        if weight > 0 && best.is_none_or(|(_, known)| weight > known) {
            best = Some((format, weight));
        }
    }
    best.map(|(format, _)| format)
}

fn matches((range, weight): &(&str, f32), format: OutputFormat) -> Option<Match> {
    let essence = format.media_type().split(';').next().unwrap_or_default();
    let (kind, _) = essence.split_once('/')?;
    let exactness = if range.eq_ignore_ascii_case(essence) {
        2
    } else if range
        .strip_suffix("/*")
        .is_some_and(|range| range.eq_ignore_ascii_case(kind))
    {
        1
    } else if *range == "*/*" {
        0
    } else {
        return None;
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the weight is clamped to what fits"
    )]
    let thousandths = (weight.clamp(0.0, 1.0) * 1000.0) as u16;
    Some((exactness, thousandths))
}

/// The preferences in `Prefer` (RFC 7240).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preferences {
    /// `wait=<seconds>`: how long the statement may run; `None` for the configured time.
    pub wait: Option<Duration>,
    /// `timezone=<name>`: the time zone in which values are formatted.
    pub timezone: Option<String>,
}

impl Preferences {
    /// Parses `Prefer`. Unknown preferences are ignored (RFC 7240, section 2).
    ///
    /// # Errors
    ///
    /// 400 for a `wait` that is not a number of seconds.
    pub fn of(headers: &HeaderMap) -> Result<Self, ApiError> {
        let mut preferences = Self::default();
        for line in headers.get_all(PREFER) {
            for item in line.to_str().unwrap_or_default().split(',') {
                preferences.read(item)?;
            }
        }
        Ok(preferences)
    }

    fn read(&mut self, item: &str) -> Result<(), ApiError> {
        let preference = item.split(';').next().unwrap_or_default();
        let Some((name, value)) = preference.split_once('=') else {
            return Ok(());
        };
        let (name, value) = (name.trim(), value.trim().trim_matches('"'));
        // If a preference occurs twice, the first one counts (RFC 7240, section 2).
        if name.eq_ignore_ascii_case("wait") && self.wait.is_none() {
            self.wait = Some(seconds(value)?);
        } else if name.eq_ignore_ascii_case("timezone") && self.timezone.is_none() {
            self.timezone = Some(value.to_owned());
        }
        Ok(())
    }

    /// Limits `wait` to `most`. Without `wait`, nothing changes.
    pub fn within(mut self, most: Duration) -> Self {
        self.wait = self.wait.map(|wait| wait.min(most));
        self
    }

    /// The options for a caller's statement. The preference `wait` may shorten the configured time
    /// of a statement, but not extend it.
    pub fn options(&self, limits: &Limits) -> QueryOptions {
        let most = limits.statement;
        let wait = self.wait.map_or(most, |wait| wait.min(most));
        QueryOptions {
            deadline: Some(Instant::now() + wait),
            ..QueryOptions::default()
        }
    }

    /// The options for a statement whose text Tidegate generates. The deadline is as for
    /// [`Preferences::options`].
    pub fn options_for_generated(&self, limits: &Limits) -> QueryOptions {
        QueryOptions {
            author: Author::Service,
            ..self.options(limits)
        }
    }

    /// The value of `Preference-Applied`; `None` if there are no preferences.
    pub fn applied(&self) -> Option<String> {
        let wait = self.wait.map(|wait| format!("wait={}", wait.as_secs_f64()));
        let zone = self
            .timezone
            .as_ref()
            .map(|zone| format!("timezone={zone}"));
        match (wait, zone) {
            (Some(wait), Some(zone)) => Some(format!("{wait}, {zone}")),
            (wait, zone) => wait.or(zone),
        }
    }
}

fn seconds(value: &str) -> Result<Duration, ApiError> {
    let number = value.parse::<f64>().ok();
    let wait = number.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    wait.ok_or_else(|| {
        ApiError::input(Cow::Borrowed(
            "`Prefer: wait` must be a number of seconds, such as `wait=5`",
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &'static str, value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        headers
    }

    #[test]
    fn a_charset_does_not_change_the_content_type() {
        for value in ["application/json", "Application/JSON; charset=latin1"] {
            assert_eq!(
                ContentType::of(&with("content-type", value)),
                Some(ContentType::Json)
            );
        }
        assert_eq!(ContentType::of(&with("content-type", "text/plain")), None);
        assert_eq!(ContentType::of(&HeaderMap::new()), Some(ContentType::Json));
    }

    #[test]
    fn output_format_wins_unless_accept_excludes_it() {
        let csv = Some(OutputFormat::Csv);
        for accept in [
            "text/csv",
            "*/*",
            "text/*",
            "application/json",
            "application/json; charset=utf-8",
        ] {
            let format = output_format(csv, &with("accept", accept)).unwrap();
            assert_eq!(format, OutputFormat::Csv, "{accept}");
        }
        for accept in ["image/png", "application/x-ndjson", "text/csv;q=0"] {
            assert!(
                output_format(csv, &with("accept", accept)).is_err(),
                "{accept}"
            );
        }
        assert_eq!(
            output_format(csv, &HeaderMap::new()).unwrap(),
            OutputFormat::Csv
        );
    }

    #[test]
    fn accept_chooses_where_output_format_is_silent() {
        let cases = [
            ("*/*", OutputFormat::Json),
            ("application/json; charset=utf-8", OutputFormat::Json),
            ("application/*", OutputFormat::Json),
            ("text/csv", OutputFormat::Csv),
            ("text/*", OutputFormat::Csv),
            (
                "text/html, application/x-ndjson;q=0.9, */*;q=0.8",
                OutputFormat::Ndjson,
            ),
            ("application/geo+json", OutputFormat::GeoJson),
            ("application/json;q=0.5, text/csv", OutputFormat::Csv),
        ];
        for (accept, format) in cases {
            assert_eq!(
                output_format(None, &with("accept", accept)).unwrap(),
                format,
                "{accept}"
            );
        }
        assert!(output_format(None, &with("accept", "image/png")).is_err());
        for empty in ["", " ", ","] {
            let format = output_format(None, &with("accept", empty)).unwrap();
            assert_eq!(format, OutputFormat::Json, "{empty:?}");
        }
    }

    #[test]
    fn unknown_preferences_are_ignored() {
        let headers = with(
            "prefer",
            "respond-async, wait=2.5, timezone=\"Europe/Berlin\", wait=9",
        );
        let preferences = Preferences::of(&headers).unwrap();
        assert_eq!(preferences.wait, Some(Duration::from_millis(2_500)));
        assert_eq!(preferences.timezone.as_deref(), Some("Europe/Berlin"));
        assert_eq!(
            preferences.applied().unwrap(),
            "wait=2.5, timezone=Europe/Berlin"
        );
        for bad in ["wait=", "wait=soon", "wait=-1", "wait=nan"] {
            assert!(Preferences::of(&with("prefer", bad)).is_err(), "{bad}");
        }
    }
}
