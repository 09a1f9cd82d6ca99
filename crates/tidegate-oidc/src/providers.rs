//! Signs users in with identity providers by the authorization code flow, in which this service is
//! the OAuth client.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use tidegate_identity::{
    ExternalIdentity, IdentityProviders, LoginState, OutboundError, OutboundResult, ProviderName,
};
use tidegate_issuers::Issuer;

use crate::discovery::{self, Discovery, DiscoveryCache, OpenIdProvider};
use crate::error::{Error, Result};
use crate::settings::{ProviderKind, ProviderSettings};
use crate::{code_flow, github, id_token};

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
        // Redirects are not followed, because a redirected request would send secrets to another
        // server.
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
        let (endpoints, _) = self.endpoints(provider, login).await?;
        code_flow::authorization_url(&provider.settings, &endpoints, login).map(Some)
    }

    /// The endpoints of a provider, and the issuer that verifies its ID tokens. The issuer is
    /// `None` for GitHub, which issues no ID tokens.
    async fn endpoints(
        &self,
        provider: &Provider,
        login: &LoginState,
    ) -> Result<(Discovery, Option<Arc<Issuer>>), OutboundError> {
        match &provider.settings.kind {
            ProviderKind::OpenId(issuer) => {
                let client = (issuer.as_str(), provider.settings.client_id.as_str());
                let found = provider
                    .discovery
                    .get(&self.http, client, login.now)
                    .await?;
                let OpenIdProvider { endpoints, issuer } = found;
                Ok((endpoints, Some(issuer)))
            }
            ProviderKind::GitHub { site, .. } => Ok((github::endpoints(site), None)),
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
        let settings = &provider.settings;
        let (endpoints, issuer) = self.endpoints(provider, login).await?;
        let tokens = code_flow::exchange(&self.http, settings, &endpoints, login, code).await?;
        if let ProviderKind::GitHub { api, .. } = &settings.kind {
            let issuer = (&*endpoints.issuer, &**api);
            return github::identity(&self.http, issuer, &tokens.access_token).await;
        }
        let (Some(id_token), Some(issuer)) = (tokens.id_token, issuer) else {
            return Err(OutboundError::new("the token response has no ID token"));
        };
        let seconds = u64::try_from(login.now.seconds()).unwrap_or_default();
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let verified = issuer.verify(&id_token, now).await;
        let verified = verified.map_err(OutboundError::new)?;
        id_token::identity(verified, &settings.client_id, &login.nonce).map_err(OutboundError::new)
    }
}

#[async_trait]
impl IdentityProviders for Providers {
    fn names(&self) -> &[ProviderName] {
        &self.names
    }

    async fn begin(&self, provider: &str, login: &LoginState) -> OutboundResult<Option<String>> {
        self.authorization_url(provider, login).await
    }

    async fn complete(
        &self,
        provider: &str,
        code: &str,
        login: &LoginState,
    ) -> OutboundResult<ExternalIdentity> {
        self.identity(provider, code, login).await
    }
}
