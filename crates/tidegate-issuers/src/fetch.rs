//! Requests the discovery document and the keys of an issuer.

use std::sync::Arc;
use std::time::Duration;

use reqwest::redirect;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::address::Resolver;
use crate::key_set::KeySet;
use crate::settings::check_url;
use crate::{FetchError, IssuerSettings, Network, SettingsError};

/// The timeout for a whole request.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The largest size of a response, in bytes. Real key sets have a few kilobytes.
const MAX_BODY: usize = 512 * 1024;

/// The HTTP client that loads the documents of issuers. Several issuers can share it: cloning is
/// cheap, and clones share their connections.
#[derive(Clone, Debug)]
pub struct DocumentClient {
    http: reqwest::Client,
    network: Network,
}

/// Loads the documents of one issuer.
#[derive(Debug)]
pub(crate) struct Fetch {
    client: DocumentClient,
    issuer: String,
    jwks_url: Option<String>,
}

#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
}

impl DocumentClient {
    /// A client whose requests go to the addresses that `network` allows.
    pub fn new(network: Network) -> Result<Self, SettingsError> {
        // No proxy is used, because a proxy would resolve names itself, without the check of
        // addresses.
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(redirect::Policy::none())
            .timeout(TIMEOUT)
            .dns_resolver(Arc::new(Resolver(network)))
            .build()
            .map_err(|error| SettingsError::Client(error.to_string()))?;
        Ok(Self { http, network })
    }

    /// A client for issuers that the operator chose. Its requests may go to any address, but
    /// unencrypted requests may go only to this machine. `http` should have a timeout and follow no
    /// redirects.
    pub fn trusted(http: reqwest::Client) -> Self {
        let network = Network::AllowPrivate;
        Self { http, network }
    }

    /// The networks to which requests may go.
    pub fn network(&self) -> Network {
        self.network
    }
}

impl Fetch {
    pub(crate) fn issuer(&self) -> &str {
        &self.issuer
    }

    pub(crate) fn new(settings: &IssuerSettings, client: &DocumentClient) -> Self {
        Self {
            client: client.clone(),
            issuer: settings.issuer.clone(),
            jwks_url: settings.jwks_url.clone(),
        }
    }

    pub(crate) async fn keys(&self) -> Result<KeySet, FetchError> {
        let url = match &self.jwks_url {
            Some(url) => url.clone(),
            None => self.discover().await?,
        };
        let document = self.get(&url, "a JSON Web Key Set").await?;
        KeySet::read(document).ok_or(FetchError::Document {
            url,
            expected: "a JSON Web Key Set with at least one usable key",
        })
    }

    /// The URL of the keys, from the discovery document of OpenID Connect, or else from the
    /// metadata document of OAuth (RFC 8414, section 3.1).
    async fn discover(&self) -> Result<String, FetchError> {
        let base = self.issuer.trim_end_matches('/');
        let url = format!("{base}/.well-known/openid-configuration");
        let expected = "a discovery document";
        let found: Result<Discovery, FetchError> = self.get(&url, expected).await;
        let found = match (found, oauth_metadata_url(base)) {
            (Err(error @ FetchError::Request { .. }), Some(url)) => {
                match self.get(&url, expected).await {
                    // If both requests fail, the first error is returned, because it names the
                    // document that most issuers have.
                    Err(FetchError::Request { .. }) => return Err(error),
                    found => found?,
                }
            }
            (found, _) => found?,
        };
        if found.issuer.trim_end_matches('/') != base {
            return Err(FetchError::Document {
                url,
                expected: "the discovery document of this issuer",
            });
        }
        Ok(found.jwks_uri)
    }

    async fn get<T: DeserializeOwned>(
        &self,
        url: &str,
        expected: &'static str,
    ) -> Result<T, FetchError> {
        let failed = |reason: String| FetchError::Request {
            url: url.to_owned(),
            reason,
        };
        // The URL may come from the discovery document, so it is checked like a URL in the
        // settings.
        check_url("jwks_url", url, self.client.network)
            .map_err(|error| failed(error.to_string()))?;
        let request_failed = |error: reqwest::Error| failed(root_cause(&error));
        let response = self.client.http.get(url).send().await;
        let mut response = response.map_err(request_failed)?;
        if !response.status().is_success() {
            return Err(failed(format!("the response is {}", response.status())));
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(request_failed)? {
            if body.len() + chunk.len() > MAX_BODY {
                return Err(FetchError::TooLarge {
                    url: url.to_owned(),
                    most: MAX_BODY,
                });
            }
            body.extend_from_slice(&chunk);
        }
        serde_json::from_slice(&body).map_err(|_| FetchError::Document {
            url: url.to_owned(),
            expected,
        })
    }
}

/// The URL of the OAuth metadata document. The well-known part of the path comes between the host
/// and the issuer's path.
fn oauth_metadata_url(issuer: &str) -> Option<String> {
    let mut url = reqwest::Url::parse(issuer).ok()?;
    let path = url.path().trim_end_matches('/').to_owned();
    url.set_path(&format!("/.well-known/oauth-authorization-server{path}"));
    Some(url.into())
}

/// The innermost cause of an error. The outer errors only repeat the URL.
fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.last().map(ToString::to_string).unwrap_or_default()
}
