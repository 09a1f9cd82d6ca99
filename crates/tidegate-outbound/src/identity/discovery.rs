//! Where a provider's endpoints and keys are (OpenID Connect Discovery 1.0, section 4).

use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tidegate_oauth::{OutboundError, Timestamp};

use super::refused;
use super::token::KeySet;

/// How long a document is taken for true.
const FRESH: Duration = Duration::from_hours(1);
/// No document of ours is larger.
const LARGEST: usize = 256 * 1024;

/// What of a discovery document we use.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Discovery {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: String,
    pub(super) token_endpoint: String,
    pub(super) jwks_uri: String,
}

/// The last document of a provider.
#[derive(Debug, Default)]
pub(super) struct Known(Mutex<Option<(Discovery, Timestamp)>>);

impl Known {
    /// The document of an issuer, asked for once an hour.
    pub(super) async fn of(
        &self,
        http: &reqwest::Client,
        issuer: &str,
        now: Timestamp,
    ) -> Result<Discovery, OutboundError> {
        if let Some((known, at)) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner)
            && now < at.plus(FRESH)
        {
            return Ok(known.clone());
        }
        let base = issuer.trim_end_matches('/');
        let address = format!("{base}/.well-known/openid-configuration");
        let found: Discovery = get(http, &address).await?;
        // Section 4.3: otherwise one provider could pass for another.
        if found.issuer.trim_end_matches('/') != base {
            return Err(refused("the provider's document names another issuer"));
        }
        for endpoint in [
            &found.authorization_endpoint,
            &found.token_endpoint,
            &found.jwks_uri,
        ] {
            if !is_private(endpoint) {
                return Err(refused("an endpoint of the provider is not at https"));
            }
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Some((found.clone(), now));
        Ok(found)
    }
}

/// The provider's keys. People sign in rarely, so that they are asked for each time.
pub(super) async fn keys(
    http: &reqwest::Client,
    discovery: &Discovery,
) -> Result<KeySet, OutboundError> {
    get(http, &discovery.jwks_uri).await
}

async fn get<T: DeserializeOwned>(
    http: &reqwest::Client,
    address: &str,
) -> Result<T, OutboundError> {
    let answer = http.get(address).send().await.map_err(OutboundError::new)?;
    read(answer).await
}

/// Reads an answer of 200 with JSON.
pub(super) async fn read<T: DeserializeOwned>(
    answer: reqwest::Response,
) -> Result<T, OutboundError> {
    let mut answer = answer.error_for_status().map_err(OutboundError::new)?;
    let mut text = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(OutboundError::new)? {
        text.extend_from_slice(&chunk);
        if text.len() > LARGEST {
            return Err(refused("the provider's answer is too large"));
        }
    }
    serde_json::from_slice(&text).map_err(OutboundError::new)
}

/// Whether nobody on the way can read what goes to this address.
pub(super) fn is_private(address: &str) -> bool {
    if let Some(rest) = address.strip_prefix("https://") {
        return !rest.is_empty();
    }
    let Some(rest) = address.strip_prefix("http://") else {
        return false;
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority
        .rsplit_once(':')
        .map_or(authority, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let loopback = host.parse().is_ok_and(|host: IpAddr| host.is_loopback());
    loopback || host == "localhost"
}
