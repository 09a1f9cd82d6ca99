//! Loads the discovery document of a provider (OpenID Connect Discovery 1.0, section 4).

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tidegate_identity::{OutboundError, Timestamp};
use tidegate_issuers::{DocumentClient, Issuer, IssuerSettings};

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

/// An OpenID provider, as its discovery document describes it.
#[derive(Clone, Debug)]
pub(crate) struct OpenIdProvider {
    pub(crate) endpoints: Discovery,
    /// Verifies the ID tokens that the provider issues for the OAuth client.
    pub(crate) issuer: Arc<Issuer>,
}

/// Caches the provider that a discovery document describes, and the time at which the document was
/// loaded.
#[derive(Debug, Default)]
pub(crate) struct DiscoveryCache(Mutex<Option<(OpenIdProvider, Timestamp)>>);

impl DiscoveryCache {
    /// The provider with this issuer URL, for the OAuth client `client_id`. The discovery document
    /// is loaded unless it was loaded in the last hour.
    pub(crate) async fn get(
        &self,
        http: &reqwest::Client,
        (issuer, client_id): (&str, &str),
        now: Timestamp,
    ) -> Result<OpenIdProvider, OutboundError> {
        if let Some((known, at)) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner)
            && now < at.plus(CACHE_TTL)
        {
            return Ok(known.clone());
        }
        let endpoints = load(http, issuer).await?;
        let settings = IssuerSettings {
            jwks_url: Some(endpoints.jwks_uri.clone()),
            ..IssuerSettings::new(endpoints.issuer.clone(), vec![client_id.to_owned()])
        };
        let client = DocumentClient::trusted(http.clone());
        let verifier = Issuer::with_client(settings, &client).map_err(OutboundError::new)?;
        let found = OpenIdProvider {
            endpoints,
            issuer: Arc::new(verifier),
        };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Some((found.clone(), now));
        Ok(found)
    }
}

async fn load(http: &reqwest::Client, issuer: &str) -> Result<Discovery, OutboundError> {
    let base = issuer.trim_end_matches('/');
    let url = format!("{base}/.well-known/openid-configuration");
    let found: Discovery = get(http, &url).await?;
    // The issuer must be the configured issuer (section 4.3). Otherwise one provider could
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
    Ok(found)
}

async fn get<T: DeserializeOwned>(http: &reqwest::Client, url: &str) -> Result<T, OutboundError> {
    let response = http.get(url).send().await.map_err(OutboundError::new)?;
    read(response).await
}

/// The JSON body of a response. Fails unless the response is successful.
pub(crate) async fn read<T: DeserializeOwned>(
    response: reqwest::Response,
) -> Result<T, OutboundError> {
    let response = response.error_for_status().map_err(OutboundError::new)?;
    serde_json::from_slice(&body(response).await?).map_err(OutboundError::new)
}

/// The body of a response. Fails if it is larger than [`MAX_BODY`].
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
    let host = match authority.strip_prefix('[') {
        Some(address) => address.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    let loopback = host.parse().is_ok_and(|host: IpAddr| host.is_loopback());
    // A URL with user info is refused: in `user:password@host`, the code above reads `user` as the
    // host.
    (loopback || host == "localhost") && !authority.contains('@')
}
