//! Proof Key for Code Exchange (RFC 7636), method S256 only.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest;
use subtle::ConstantTimeEq as _;

/// A code challenge of the method S256.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Challenge(String);

impl Challenge {
    /// Parses 43 characters of base64url, which encode 32 bytes.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        (bytes.len() == digest::SHA256_OUTPUT_LEN).then(|| Self(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether `verifier` matches the challenge (section 4.6).
    pub(crate) fn matches(&self, verifier: &str) -> bool {
        let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        if !(43..=128).contains(&verifier.len()) || !verifier.bytes().all(unreserved) {
            return false;
        }
        let hash = digest::digest(&digest::SHA256, verifier.as_bytes());
        let expected = URL_SAFE_NO_PAD.encode(hash);
        expected.as_bytes().ct_eq(self.0.as_bytes()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::Challenge;

    /// The code verifier and the challenge of RFC 7636, appendix B.
    const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

    #[test]
    fn the_example_of_the_rfc_matches() {
        let challenge = Challenge::parse(CHALLENGE).unwrap();
        assert!(challenge.matches(VERIFIER));
        assert!(!challenge.matches(&VERIFIER.replace('d', "e")));
        assert!(
            !challenge.matches(CHALLENGE),
            "that would be the method plain"
        );
    }

    #[test]
    fn a_verifier_has_43_to_128_unreserved_characters() {
        use base64::Engine as _;
        for (verifier, good) in [
            ("a".repeat(42), false),
            ("a".repeat(43), true),
            ("~".repeat(128), true),
            ("a".repeat(129), false),
            (format!("{}+", "a".repeat(43)), false),
            (format!("{}\u{e4}", "a".repeat(43)), false),
        ] {
            let hash = ring::digest::digest(&ring::digest::SHA256, verifier.as_bytes());
            let text = super::URL_SAFE_NO_PAD.encode(hash);
            let challenge = Challenge::parse(&text).unwrap();
            assert_eq!(challenge.matches(&verifier), good, "{verifier}");
        }
    }

    #[test]
    fn a_challenge_encodes_32_bytes() {
        for bad in [
            "",
            "short",
            &CHALLENGE[1..],
            &format!("{CHALLENGE}A"),
            &CHALLENGE.replace('-', "+"),
        ] {
            assert_eq!(Challenge::parse(bad), None, "{bad}");
        }
    }
}
