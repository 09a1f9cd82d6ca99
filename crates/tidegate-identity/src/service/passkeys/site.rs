//! The relying party: the name and the origin for which passkeys are made.

use std::time::Duration;

use url::Url;
use webauthn_rs_core::WebauthnCore;

/// The timeout that the browser applies while a person looks for the authenticator.
const TIMEOUT: Duration = Duration::from_mins(5);

/// The relying party at the service's URL. `None` if browsers allow no passkeys at this URL,
/// because the host is an IP address, or because the URL is not HTTPS and the host is not
/// `localhost`.
pub(in crate::service) fn relying_party(address: &str) -> Option<WebauthnCore> {
    let origin = Url::parse(address).ok()?;
    let host = origin.domain()?.to_owned();
    let is_local = host == "localhost" || host.ends_with(".localhost");
    let offered = origin.scheme() == "https" || origin.scheme() == "http" && is_local;
    // Only this origin is allowed, no subdomain and no other port.
    let (subdomains, ports) = (Some(false), Some(false));
    offered.then(|| {
        let origins = vec![origin];
        WebauthnCore::new_unsafe_experts_only(
            "Tidegate", &host, origins, TIMEOUT, subdomains, ports,
        )
    })
}

#[cfg(test)]
mod tests {
    use webauthn_rs_core::proto::UserVerificationPolicy;

    use super::relying_party;

    /// The name and the origin of the relying party.
    fn name_and_origin(address: &str) -> Option<(String, String)> {
        let site = relying_party(address)?;
        let required = Some(UserVerificationPolicy::Required);
        let asked = site.new_challenge_authenticate_builder(Vec::new(), required);
        let asked = site.generate_challenge_authenticate(asked.ok()?);
        let [origin] = site.get_allowed_origins() else {
            return None;
        };
        let origin = origin.origin().ascii_serialization();
        Some((asked.ok()?.0.public_key.rp_id, origin))
    }

    #[test]
    fn passkeys_need_a_name_and_https() {
        for (address, name, origin) in [
            ("https://id.example", "id.example", "https://id.example"),
            (
                "https://id.example:8443/base",
                "id.example",
                "https://id.example:8443",
            ),
            ("https://ID.Example:443", "id.example", "https://id.example"),
            (
                "http://localhost:8080",
                "localhost",
                "http://localhost:8080",
            ),
            ("http://localhost:80", "localhost", "http://localhost"),
            (
                "http://api.localhost",
                "api.localhost",
                "http://api.localhost",
            ),
        ] {
            let expected = (name.to_owned(), origin.to_owned());
            assert_eq!(name_and_origin(address), Some(expected), "{address}");
        }
        for address in [
            "http://id.example",
            "http://127.0.0.1:8080",
            "https://192.0.2.1",
            "https://[2001:db8::a]",
            "ftp://localhost",
        ] {
            assert_eq!(name_and_origin(address), None, "{address}");
        }
    }
}
