//! The media type of a GraphQL response.

use http::header::ACCEPT;
use http::{HeaderMap, HeaderValue, StatusCode};

use tidegate_http::error::{ApiError, JSON};
use tidegate_http::negotiate::weighted;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Media {
    /// The media type `application/json`. With it, the status is 200 even if the request was refused
    /// before execution, for example because its document is invalid.
    #[default]
    Json,
    /// The media type `application/graphql-response+json`. With it, a request that was refused
    /// before execution gets status 400, unless it is in an array.
    Response,
}

const RESPONSE: &str = "application/graphql-response+json";
const PLAIN: &str = "application/json";

impl Media {
    /// The media type that `Accept` prefers; JSON by default.
    ///
    /// # Errors
    ///
    /// 406 if `Accept` excludes both media types.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, ApiError> {
        let mut accepted = headers.get_all(ACCEPT).iter().peekable();
        let easy: [&[u8]; 2] = [b"*/*", b"application/json"];
        if accepted
            .peek()
            .is_none_or(|value| easy.contains(&value.as_bytes()))
        {
            return Ok(Self::Json);
        }
        let ranges = ranges(headers);
        if ranges.is_empty() {
            return Ok(Self::Json);
        }
        let (response, plain) = (quality(&ranges, RESPONSE), quality(&ranges, PLAIN));
        match (response, plain) {
            (Some(named), Some(other)) if named.exact && named.weight >= other.weight => {
                Ok(Self::Response)
            }
            (_, Some(_)) => Ok(Self::Json),
            (Some(_), None) => Ok(Self::Response),
            (None, None) => Err(ApiError::not_acceptable(
                "the response can be had as application/json or application/graphql-response+json",
            )),
        }
    }

    /// The status of a response; `executed` is whether the request was executed.
    pub(crate) fn status(self, executed: bool) -> StatusCode {
        match self {
            Self::Response if !executed => StatusCode::BAD_REQUEST,
            _ => StatusCode::OK,
        }
    }

    /// The value of `Content-Type`.
    pub(crate) fn header(self) -> HeaderValue {
        match self {
            Self::Json => JSON,
            Self::Response => {
                HeaderValue::from_static("application/graphql-response+json; charset=utf-8")
            }
        }
    }
}

/// Whether `Accept` prefers HTML to JSON, as the `Accept` of a browser does.
pub(crate) fn wants_page(headers: &HeaderMap) -> bool {
    let ranges = ranges(headers);
    let exact = |media| quality(&ranges, media).filter(|quality| quality.exact);
    let data = [PLAIN, RESPONSE].into_iter().filter_map(exact);
    let data = data.map(|quality| quality.weight).fold(0.0, f32::max);
    exact("text/html").is_some_and(|page| page.weight > data)
}

/// The weight of a media type in `Accept`, and whether `Accept` names the type itself and not only
/// a range with `*`.
#[derive(Clone, Copy)]
struct Quality {
    weight: f32,
    exact: bool,
}

fn ranges(headers: &HeaderMap) -> Vec<(&str, f32)> {
    let lines = headers.get_all(ACCEPT).iter();
    let items = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','));
    items
        .map(weighted)
        .filter(|(range, _)| !range.is_empty())
        .collect()
}

/// The quality of a media type; `None` if `Accept` excludes it. The most specific range decides
/// (RFC 9110, section 12.5.1).
fn quality(ranges: &[(&str, f32)], media: &str) -> Option<Quality> {
    let exactness = |range: &str| match range {
        "*/*" => Some(0),
        "application/*" if media.starts_with("application/") => Some(1),
        "text/*" if media.starts_with("text/") => Some(1),
        _ => range.eq_ignore_ascii_case(media).then_some(2),
    };
    let found = ranges
        .iter()
        .filter_map(|(range, weight)| Some((exactness(range)?, *weight)));
    let (exactness, weight) = found.max_by(|one, other| one.0.cmp(&other.0))?;
    (weight > 0.0).then_some(Quality {
        weight,
        exact: exactness == 2,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, value.parse().unwrap());
        headers
    }

    #[test]
    fn accept_chooses_the_media_type() {
        let cases = [
            ("*/*", Some(Media::Json)),
            ("", Some(Media::Json)),
            ("application/*", Some(Media::Json)),
            ("application/json; charset=utf-8", Some(Media::Json)),
            ("application/graphql-response+json", Some(Media::Response)),
            (
                "application/graphql-response+json, application/json;q=0.9",
                Some(Media::Response),
            ),
            (
                "application/graphql-response+json;q=0.5, application/json",
                Some(Media::Json),
            ),
            (
                "application/json, application/graphql-response+json",
                Some(Media::Response),
            ),
            ("text/html;q=0.5, */*;q=0.1", Some(Media::Json)),
            (
                "application/json;q=0, application/graphql-response+json",
                Some(Media::Response),
            ),
            ("text/csv", None),
        ];
        for (value, expected) in cases {
            assert_eq!(Media::of(&accept(value)).ok(), expected, "{value}");
        }
        assert_eq!(Media::of(&HeaderMap::new()).ok(), Some(Media::Json));
    }

    #[test]
    fn a_browser_gets_a_page_and_a_program_data() {
        let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        assert!(wants_page(&accept(browser)));
        for value in [
            "*/*",
            "application/json",
            "application/json, text/html;q=0.5",
            "text/*",
        ] {
            assert!(!wants_page(&accept(value)), "{value}");
        }
    }
}
