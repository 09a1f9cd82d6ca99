//! Signs users in with identity providers by the authorization code flow, in which this service is
//! the OAuth client.

use std::time::Duration;

use tidegate_identity::{
    ExternalIdentity, IdentityProviders, LoginState, OutboundError, OutboundFuture, ProviderName,
};

use crate::discovery::{self, Discovery, DiscoveryCache};
use crate::error::{Error, Result};
use crate::settings::{ProviderKind, ProviderSettings};
use crate::{code_flow, github, id_token};

/// How long a request to a provider may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The configured identity providers.
#[derive(Debug)]
pub struct Providers {
    names: Vec<ProviderName>,
    configured: Vec<Provider>,
    http: reqwest::Client,
}

#[derive(Debug)]
struct Provider {
    settings: ProviderSettings,
    discovery: DiscoveryCache,
}

impl Providers {
    /// Creates the providers with these settings. No request is sent before the first sign-in.
    ///
    /// # Errors
    ///
    /// [`Error::InsecureUrl`] for a URL that is neither `https` nor on this machine,
    /// [`Error::HttpClient`] when the HTTP client cannot be created.
    pub fn new(settings: Vec<ProviderSettings>) -> Result<Self> {
        for provider in &settings {
            let mut urls = provider.kind.urls();
            if let Some(insecure) = urls.find(|url| !discovery::is_secure(url)) {
                return Err(Error::InsecureUrl(insecure.to_owned()));
            }
        }
        // A redirect is not followed, because that would send secrets to another server.
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(REQUEST_TIMEOUT)
            .user_agent("tidegate")
            .build()
            .map_err(|error| Error::HttpClient(error.to_string()))?;
        let name = |provider: &ProviderSettings| ProviderName {
            id: provider.id.clone(),
            label: provider.label.clone(),
        };
        Ok(Self {
            names: settings.iter().map(name).collect(),
            configured: settings
                .into_iter()
                .map(|settings| Provider {
                    settings,
                    discovery: DiscoveryCache::default(),
                })
                .collect(),
            http,
        })
    }

    fn find(&self, id: &str) -> Option<&Provider> {
        self.configured.iter().find(|p| p.settings.id == id)
    }

    async fn authorization_url(
        &self,
        id: &str,
        login: &LoginState,
    ) -> Result<Option<String>, OutboundError> {
        let Some(provider) = self.find(id) else {
            return Ok(None);
        };
        let endpoints = self.endpoints(provider, login).await?;
        code_flow::authorization_url(&provider.settings, &endpoints, login).map(Some)
    }

    async fn endpoints(
        &self,
        provider: &Provider,
        login: &LoginState,
    ) -> Result<Discovery, OutboundError> {
        match &provider.settings.kind {
            ProviderKind::OpenId(issuer) => {
                provider.discovery.get(&self.http, issuer, login.now).await
            }
            ProviderKind::GitHub { site, .. } => Ok(github::endpoints(site)),
        }
    }

    async fn identity(
        &self,
        id: &str,
        code: &str,
        login: &LoginState,
    ) -> Result<ExternalIdentity, OutboundError> {
        let provider = self
            .find(id)
            .ok_or_else(|| OutboundError::new("unknown identity provider"))?;
        let endpoints = self.endpoints(provider, login).await?;
        let tokens =
            code_flow::exchange(&self.http, &provider.settings, &endpoints, login, code).await?;
        match &provider.settings.kind {
            ProviderKind::GitHub { api, .. } => {
                let issuer = (&*endpoints.issuer, &**api);
                github::identity(&self.http, issuer, &tokens.access_token).await
            }
            ProviderKind::OpenId(_) => {
                let id_token = tokens
                    .id_token
                    .ok_or_else(|| OutboundError::new("the token response has no ID token"))?;
                let keys = discovery::keys(&self.http, &endpoints).await?;
                let expected = id_token::Expected {
                    issuer: &endpoints.issuer,
                    audience: &provider.settings.client_id,
                    nonce: &login.nonce,
                    now: login.now.seconds(),
                };
                id_token::verify(&id_token, &keys, &expected).map_err(OutboundError::new)
            }
        }
    }
}

impl IdentityProviders for Providers {
    fn names(&self) -> &[ProviderName] {
        &self.names
    }

    fn begin<'a>(
        &'a self,
        provider: &'a str,
        login: &'a LoginState,
    ) -> OutboundFuture<'a, Option<String>> {
        Box::pin(self.authorization_url(provider, login))
    }

    fn complete<'a>(
        &'a self,
        provider: &'a str,
        code: &'a str,
        login: &'a LoginState,
    ) -> OutboundFuture<'a, ExternalIdentity> {
        Box::pin(self.identity(provider, code, login))
    }
}
