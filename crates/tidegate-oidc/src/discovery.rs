//! Loads the discovery document and the keys of a provider (OpenID Connect Discovery 1.0, section
//! 4).

use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tidegate_identity::{OutboundError, Timestamp};

use crate::id_token::KeySet;

/// How long a discovery document is cached.
const CACHE_TTL: Duration = Duration::from_hours(1);
/// The largest size of a response, in bytes.
const MAX_BODY: usize = 256 * 1024;

/// The members of a discovery document that this crate uses.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Discovery {
    pub(crate) issuer: String,
    pub(crate) authorization_endpoint: String,
    pub(crate) token_endpoint: String,
    pub(crate) jwks_uri: String,
}

/// Caches the discovery document of a provider.
#[derive(Debug, Default)]
pub(crate) struct DiscoveryCache(Mutex<Option<(Discovery, Timestamp)>>);

impl DiscoveryCache {
    /// The discovery document of an issuer. It is loaded at most once an hour.
    pub(crate) async fn get(
        &self,
        http: &reqwest::Client,
        issuer: &str,
        now: Timestamp,
    ) -> Result<Discovery, OutboundError> {
        if let Some((known, at)) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner)
            && now < at.plus(CACHE_TTL)
        {
            return Ok(known.clone());
        }
        let base = issuer.trim_end_matches('/');
        let url = format!("{base}/.well-known/openid-configuration");
        let found: Discovery = get(http, &url).await?;
        // The issuer must be the configured one (section 4.3). Otherwise one provider could
        // impersonate another.
        if found.issuer.trim_end_matches('/') != base {
            return Err(OutboundError::new(
                "the discovery document is of another issuer",
            ));
        }
        for endpoint in [
            &found.authorization_endpoint,
            &found.token_endpoint,
            &found.jwks_uri,
        ] {
            if !is_secure(endpoint) {
                return Err(OutboundError::new(
                    "an endpoint of the provider does not use https",
                ));
            }
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Some((found.clone(), now));
        Ok(found)
    }
}

/// Loads the provider's keys. They are not cached, because sign-ins are rare.
pub(crate) async fn keys(
    http: &reqwest::Client,
    discovery: &Discovery,
) -> Result<KeySet, OutboundError> {
    get(http, &discovery.jwks_uri).await
}

async fn get<T: DeserializeOwned>(http: &reqwest::Client, url: &str) -> Result<T, OutboundError> {
    let response = http.get(url).send().await.map_err(OutboundError::new)?;
    read(response).await
}

/// The JSON body of a response, which must be successful.
pub(crate) async fn read<T: DeserializeOwned>(
    response: reqwest::Response,
) -> Result<T, OutboundError> {
    let response = response.error_for_status().map_err(OutboundError::new)?;
    serde_json::from_slice(&body(response).await?).map_err(OutboundError::new)
}

/// The body of a response, which must not be too large.
pub(crate) async fn body(mut response: reqwest::Response) -> Result<Vec<u8>, OutboundError> {
    let mut text = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(OutboundError::new)? {
        text.extend_from_slice(&chunk);
        if text.len() > MAX_BODY {
            return Err(OutboundError::new("the provider's response is too large"));
        }
    }
    Ok(text)
}

/// Whether a URL is `https`, or `http` on this machine. Requests to such a URL cannot be read or
/// changed on a network.
pub(crate) fn is_secure(url: &str) -> bool {
    if let Some(rest) = url.strip_prefix("https://") {
        return !rest.is_empty();
    }
    let Some(rest) = url.strip_prefix("http://") else {
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
