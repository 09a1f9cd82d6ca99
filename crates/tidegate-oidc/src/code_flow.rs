//! The authorization code flow of a client (RFC 6749, section 4.1) with PKCE (RFC 7636).

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Url;
use reqwest::header::ACCEPT;
use ring::digest;
use serde::Deserialize;
use tidegate_identity::{LoginState, OutboundError, percent_encode};

use crate::discovery::{self, Discovery};
use crate::settings::{ProviderKind, ProviderSettings};

/// The tokens of a successful token response (RFC 6749, section 5.1).
pub(crate) struct Tokens {
    pub(crate) access_token: String,
    pub(crate) id_token: Option<String>,
}

/// The members of a successful or a failed token response. One type has the members of both,
/// because GitHub reports errors with status 200, so the status does not distinguish them.
#[derive(Deserialize)]
struct TokenResponse {
    access_token: Option<String>,
    id_token: Option<String>,
    error: Option<String>,
    error_description: Option<String>,
}

/// An error response of the provider's token endpoint (RFC 6749, section 5.2).
#[derive(Debug, thiserror::Error)]
struct TokenError {
    code: String,
    description: Option<String>,
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the token endpoint answered {:?}", self.code)?;
        match &self.description {
            Some(description) => write!(f, ": {description:?}"),
            None => Ok(()),
        }
    }
}

/// The URL of the authorization request, to which the browser is sent.
pub(crate) fn authorization_url(
    settings: &ProviderSettings,
    endpoints: &Discovery,
    login: &LoginState,
) -> Result<String, OutboundError> {
    let mut url = Url::parse(&endpoints.authorization_endpoint).map_err(OutboundError::new)?;
    let challenge = digest::digest(&digest::SHA256, login.verifier.expose().as_bytes());
    let mut query = url.query_pairs_mut();
    query
        .append_pair("response_type", "code")
        .append_pair("client_id", &settings.client_id)
        .append_pair("redirect_uri", &login.redirect_uri)
        .append_pair("scope", &settings.kind.scopes().join(" "))
        .append_pair("state", &login.state)
        .append_pair("code_challenge", &URL_SAFE_NO_PAD.encode(challenge))
        .append_pair("code_challenge_method", "S256");
    if matches!(settings.kind, ProviderKind::OpenId(_)) {
        query.append_pair("nonce", &login.nonce);
    }
    drop(query);
    Ok(url.into())
}

/// Exchanges an authorization code for tokens. The client authenticates by HTTP Basic (RFC 6749,
/// section 2.3.1).
pub(crate) async fn exchange(
    http: &reqwest::Client,
    settings: &ProviderSettings,
    endpoints: &Discovery,
    login: &LoginState,
    code: &str,
) -> Result<Tokens, OutboundError> {
    let form = [
        ("grant_type", "authorization_code"),
        ("code", code),
        ("redirect_uri", login.redirect_uri.as_str()),
        ("code_verifier", login.verifier.expose()),
    ];
    let response = http
        .post(&endpoints.token_endpoint)
        .basic_auth(
            form_encoded(&settings.client_id),
            Some(form_encoded(&settings.client_secret)),
        )
        .header(ACCEPT, "application/json")
        .form(&form)
        .send()
        .await
        .map_err(OutboundError::new)?;
    let status = response.status();
    let body = discovery::body(response).await?;
    match serde_json::from_slice(&body) {
        Ok(TokenResponse {
            access_token: Some(access_token),
            id_token,
            ..
        }) if status.is_success() => Ok(Tokens {
            access_token,
            id_token,
        }),
        Ok(TokenResponse {
            error: Some(code),
            error_description: description,
            ..
        }) => Err(OutboundError::new(TokenError { code, description })),
        Ok(_) | Err(_) => Err(OutboundError::new(format!(
            "the token endpoint answered {status} without tokens"
        ))),
    }
}

/// Encodes a value as `application/x-www-form-urlencoded`, as the Basic scheme needs it (RFC 6749,
/// section 2.3.1). Letters, digits, `-`, `.`, `_` and `~` are not encoded. Ordinary client ids have
/// only these characters, so they also work with a provider that does not decode client ids.
fn form_encoded(value: &str) -> String {
    percent_encode(value).replace("%20", "+")
}

#[cfg(test)]
mod tests {
    use tidegate_identity::{Secret, Timestamp};

    use super::*;

    /// The verifier and the challenge of RFC 7636, appendix B.
    const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

    fn endpoints(authorization_endpoint: &str) -> Discovery {
        Discovery {
            issuer: "https://id.example".to_owned(),
            authorization_endpoint: authorization_endpoint.to_owned(),
            token_endpoint: "https://id.example/token".to_owned(),
            jwks_uri: "https://id.example/keys".to_owned(),
        }
    }

    #[test]
    fn the_authorization_url_has_the_parameters_of_the_flow() {
        let login = LoginState {
            redirect_uri: "https://us.example/signin/openid/callback".to_owned(),
            state: "a state".to_owned(),
            nonce: "a nonce".to_owned(),
            verifier: Secret::new(VERIFIER),
            now: Timestamp::from_seconds(0),
        };
        let google = ProviderSettings::google("id&1", "secret");
        let endpoints = endpoints("https://id.example/auth?tenant=1");
        let url = authorization_url(&google, &endpoints, &login).unwrap();
        let url = Url::parse(&url).unwrap();
        let pairs: Vec<_> = url.query_pairs().collect();
        let expected = [
            ("tenant", "1"),
            ("response_type", "code"),
            ("client_id", "id&1"),
            ("redirect_uri", "https://us.example/signin/openid/callback"),
            ("scope", "openid email profile"),
            ("state", "a state"),
            ("code_challenge", CHALLENGE),
            ("code_challenge_method", "S256"),
            ("nonce", "a nonce"),
        ];
        let expected = expected.map(|(name, value)| (name.into(), value.into()));
        assert_eq!(pairs, expected);
    }

    #[test]
    fn credentials_are_form_encoded_and_ordinary_ids_stay_as_they_are() {
        for (value, encoded) in [
            ("123-a_b.apps.example~", "123-a_b.apps.example~"),
            ("a:b c%+ä", "a%3Ab+c%25%2B%C3%A4"),
        ] {
            assert_eq!(form_encoded(value), encoded);
        }
    }
}
