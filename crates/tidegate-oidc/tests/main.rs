//! Tests of `tidegate-oidc`. `tests/clients/openid` signs in with a provider that others wrote.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[expect(dead_code, reason = "the fixture also serves the tests of its crate")]
#[path = "../../tidegate-issuers/tests/fixture.rs"]
mod issuer_fixture;
mod settings;
mod sign_in;
