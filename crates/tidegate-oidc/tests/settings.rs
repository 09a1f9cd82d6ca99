//! Tests of the settings of identity providers.

use tidegate_oidc::{Error, ProviderSettings, Providers};

#[test]
fn a_provider_over_unencrypted_http_is_rejected() {
    let (site, api) = ("https://github.com", "https://api.github.com");
    let ready = |addresses| Providers::new(vec![ProviderSettings::github(addresses, "id", "s")]);
    for good in [
        (site, api),
        ("http://127.0.0.1:9", "http://[::1]:9/api/v3"),
        ("http://localhost", "http://[::1]"),
    ] {
        assert!(ready(good).is_ok(), "{good:?}");
    }
    for open in [
        "http://github.example",
        "http://127.0.0.1.example",
        "http://localhost:80@github.example/",
        "ftp://x",
    ] {
        for bad in [(open, api), (site, open)] {
            let refused = ready(bad);
            assert!(
                matches!(&refused, Err(Error::InsecureUrl(named)) if named == open),
                "{bad:?}"
            );
        }
    }
}
