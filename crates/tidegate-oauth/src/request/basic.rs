//! Client credentials in the Authorization header (RFC 7617; RFC 6749, section 2.3.1).

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::percent;
use crate::Result;
use tidegate_identity::{Error as IdentityError, Secret};

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Credentials from HTTP Basic authentication. RFC 6749 requires the id and the secret to be
/// form-encoded, but some clients send them unencoded. So this struct contains both readings, and
/// either may match.
#[derive(Clone, Debug)]
pub struct BasicCredentials {
    /// The two readings: first the text as sent, then the form-decoded text if it differs.
    pub(super) readings: Vec<(String, Secret)>,
}

impl BasicCredentials {
    /// Parses an Authorization header; `None` for another scheme.
    ///
    /// Errors: [`IdentityError::Malformed`] when the scheme is Basic and the rest is not base64 of
    /// `id:secret`.
    pub fn from_header(value: &str) -> Result<Option<Self>> {
        let (scheme, rest) = value.split_once(' ').unwrap_or((value, ""));
        if !scheme.eq_ignore_ascii_case("basic") {
            return Ok(None);
        }
        let malformed = || IdentityError::Malformed {
            part: "Authorization header",
            expected: "base64 of the client's id and secret with a colon between them",
        };
        let decoded = BASE64.decode(rest.trim()).map_err(|_| malformed())?;
        let plain = String::from_utf8(decoded).map_err(|_| malformed())?;
        let (id, secret) = plain.split_once(':').ok_or_else(malformed)?;
        Ok(Some(Self::new(id, secret)))
    }

    /// Both readings of an id and a secret.
    pub fn new(id: &str, secret: &str) -> Self {
        let mut readings = vec![(id.to_owned(), Secret::new(secret))];
        let decoded = (
            percent::decode(id.as_bytes()),
            percent::decode(secret.as_bytes()),
        );
        if let (Some(decoded_id), Some(decoded_secret)) = decoded
            && (decoded_id != id || decoded_secret != secret)
        {
            readings.push((decoded_id, Secret::new(decoded_secret)));
        }
        Self { readings }
    }
}
