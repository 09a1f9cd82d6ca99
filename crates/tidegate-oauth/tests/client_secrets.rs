//! Tests of the rate limit for a confidential client: wrong secrets are counted by address, a valid
//! secret is never refused.

use std::net::IpAddr;
use std::time::Duration;

use tidegate_identity::Error as IdentityError;
use tidegate_oauth::{
    DeviceRequest, Error, ErrorKind, GuestRequest, Parameters, Result, TokenManagementRequest,
    TokenRequest,
};

use crate::fixture::{Fixture, code};

const ATTACKER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(203, 0, 113, 9));
const BACKEND: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
const RIGHT: &str = "demo-server-secret";

/// The endpoints that take a client's secret.
const ENDPOINTS: [&str; 7] = [
    "password",
    "refresh_token",
    "authorization_code",
    "guest",
    "device",
    "revoke",
    "introspect",
];

/// Sends `secret` to `endpoint`. The tokens and codes in the request are invalid, so a request with
/// a valid secret fails too, but not with the error of a wrong secret.
async fn send(api: &Fixture, endpoint: &str, secret: &str, from: IpAddr) -> Result<()> {
    let client = [("client_id", "server"), ("client_secret", secret)];
    let with = |others: &[(&'static str, &'static str)]| {
        Parameters::from_pairs(client.iter().chain(others).copied())
    };
    let from = Some(from);
    let about = || TokenManagementRequest::parse(&with(&[("token", "x")]), None);
    let grant = |pairs: &[(&'static str, &'static str)]| TokenRequest::parse(&with(pairs), None);
    match endpoint {
        "guest" => {
            let request = GuestRequest::parse(&with(&[("database", "demo")]), None)?;
            return api.issuer.guest(request, from).await.map(drop);
        }
        "device" => {
            let request = DeviceRequest::parse(&with(&[]), None)?;
            return api
                .issuer
                .authorize_device(request, from, "https://id.example/device")
                .await
                .map(drop);
        }
        "revoke" => return api.issuer.revoke(about()?, from).await,
        "introspect" => return api.issuer.introspect(about()?, from).await.map(drop),
        _ => {}
    }
    let request = match endpoint {
        "password" => grant(&[
            ("grant_type", "password"),
            ("username", "demo"),
            ("password", "demo1234"),
        ]),
        "refresh_token" => grant(&[("grant_type", "refresh_token"), ("refresh_token", "x")]),
        _ => grant(&[
            ("grant_type", "authorization_code"),
            ("code", "x"),
            ("redirect_uri", "http://127.0.0.1:5173/callback"),
            (
                "code_verifier",
                "0123456789012345678901234567890123456789012",
            ),
        ]),
    }?;
    api.issuer.token(request, from).await.map(drop)
}

/// Whether the client was authenticated, even if the request failed afterwards.
fn accepted(response: &Result<()>) -> bool {
    !matches!(
        response,
        Err(Error::Identity(IdentityError::TooManyAttempts { .. }) | Error::ClientNotAuthenticated)
    )
}

#[tokio::test]
async fn wrong_secrets_from_anywhere_do_not_refuse_the_right_one() {
    for endpoint in ENDPOINTS {
        let api = Fixture::start().await;
        for number in 0..60 {
            let from = IpAddr::from([203, 0, 113, number % 3]);
            send(&api, endpoint, "wrong", from).await.unwrap_err();
        }
        // The valid secret is accepted also from an address that sent wrong ones, because several
        // backends may share an address.
        for from in [BACKEND, [203, 0, 113, 0].into()] {
            for other in ENDPOINTS {
                let response = send(&api, other, RIGHT, from).await;
                assert!(accepted(&response), "{endpoint} {other}: {response:?}");
            }
        }
    }
}

#[tokio::test]
async fn the_twenty_first_wrong_secret_of_a_minute_from_one_address_is_throttled() {
    for endpoint in ENDPOINTS {
        let api = Fixture::start().await;
        for number in 0..20 {
            let error = send(&api, endpoint, "wrong", ATTACKER).await;
            assert_eq!(code(error), "invalid_client", "{endpoint} {number}");
        }
        let error = send(&api, endpoint, "wrong", ATTACKER).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.retry_after()),
            (ErrorKind::Throttled, Some(60)),
            "{endpoint}"
        );
        let error = send(&api, endpoint, "wrong", BACKEND).await;
        assert_eq!(code(error), "invalid_client", "{endpoint}: another address");
        api.clock.advance(Duration::from_mins(1));
        let error = send(&api, endpoint, "wrong", ATTACKER).await;
        assert_eq!(code(error), "invalid_client", "{endpoint}: a minute later");
    }
}

#[tokio::test]
async fn a_right_secret_costs_no_count() {
    let api = Fixture::start().await;
    for _ in 0..100 {
        send(&api, "introspect", RIGHT, BACKEND).await.unwrap();
    }
    let error = send(&api, "introspect", "wrong", BACKEND).await;
    assert_eq!(code(error), "invalid_client");
}
