//! Signs users in with identity providers by the authorization code flow, in which this service is
//! the OAuth client.

use std::time::Duration;

use oauth2::basic::{BasicErrorResponse, BasicRevocationErrorResponse, BasicTokenType};
use oauth2::{
    AuthUrl, AuthorizationCode, Client, ClientId, ClientSecret, CsrfToken, EndpointNotSet,
    EndpointSet, ExtraTokenFields, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, Scope,
    StandardRevocableToken, StandardTokenIntrospectionResponse, StandardTokenResponse,
    TokenResponse as _, TokenUrl,
};
use serde::{Deserialize, Serialize};
use tidegate_identity::{
    ExternalIdentity, IdentityProviders, LoginState, OutboundError, OutboundFuture, ProviderName,
};

use crate::discovery::{self, Discovery, DiscoveryCache};
use crate::error::{Error, Result};
use crate::settings::{ProviderKind, ProviderSettings};
use crate::{github, id_token};

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

/// The member that OpenID Connect adds to a token response.
#[derive(Debug, Deserialize, Serialize)]
struct IdToken {
    id_token: Option<String>,
}

impl ExtraTokenFields for IdToken {}

type Tokens = StandardTokenResponse<IdToken, BasicTokenType>;

type ProviderClient = Client<
    BasicErrorResponse,
    Tokens,
    StandardTokenIntrospectionResponse<IdToken, BasicTokenType>,
    StandardRevocableToken,
    BasicRevocationErrorResponse,
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointSet,
>;

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
        let client = client(&provider.settings, &endpoints, login)?;
        let verifier = PkceCodeVerifier::new(login.verifier.expose().to_owned());
        let state = login.state.clone();
        let mut request = client
            .authorize_url(|| CsrfToken::new(state))
            .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier));
        for scope in provider.settings.kind.scopes() {
            request = request.add_scope(Scope::new((*scope).to_owned()));
        }
        if matches!(provider.settings.kind, ProviderKind::OpenId(_)) {
            request = request.add_extra_param("nonce", login.nonce.clone());
        }
        let (url, _) = request.url();
        Ok(Some(url.into()))
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
        let tokens: Tokens = client(&provider.settings, &endpoints, login)?
            .exchange_code(AuthorizationCode::new(code.to_owned()))
            .set_pkce_verifier(PkceCodeVerifier::new(login.verifier.expose().to_owned()))
            .request_async(&self.http)
            .await
            .map_err(OutboundError::new)?;
        match &provider.settings.kind {
            ProviderKind::GitHub { api, .. } => {
                let token = tokens.access_token().secret();
                github::identity(&self.http, (&endpoints.issuer, api), token).await
            }
            ProviderKind::OpenId(_) => {
                let id_token = tokens.extra_fields().id_token.as_deref();
                let id_token = id_token
                    .ok_or_else(|| OutboundError::new("the token response has no ID token"))?;
                let keys = discovery::keys(&self.http, &endpoints).await?;
                let expected = id_token::Expected {
                    issuer: &endpoints.issuer,
                    audience: &provider.settings.client_id,
                    nonce: &login.nonce,
                    now: login.now.seconds(),
                };
                id_token::verify(id_token, &keys, &expected).map_err(OutboundError::new)
            }
        }
    }
}

fn client(
    settings: &ProviderSettings,
    endpoints: &Discovery,
    login: &LoginState,
) -> Result<ProviderClient, OutboundError> {
    let authorization = AuthUrl::new(endpoints.authorization_endpoint.clone());
    let token = TokenUrl::new(endpoints.token_endpoint.clone());
    let redirect = RedirectUrl::new(login.redirect_uri.clone());
    Ok(Client::new(ClientId::new(settings.client_id.clone()))
        .set_client_secret(ClientSecret::new(settings.client_secret.clone()))
        .set_auth_uri(authorization.map_err(OutboundError::new)?)
        .set_token_uri(token.map_err(OutboundError::new)?)
        .set_redirect_uri(redirect.map_err(OutboundError::new)?))
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
