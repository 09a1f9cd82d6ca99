//! Identity providers: OpenID Connect by discovery, and GitHub, which has an API of its own.

mod discovery;
mod github;
mod token;

use std::fmt;
use std::time::Duration;

use oauth2::basic::{BasicErrorResponse, BasicRevocationErrorResponse, BasicTokenType};
use oauth2::{
    AuthUrl, AuthorizationCode, Client, ClientId, ClientSecret, CsrfToken, EndpointNotSet,
    EndpointSet, ExtraTokenFields, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, Scope,
    StandardRevocableToken, StandardTokenIntrospectionResponse, StandardTokenResponse, TokenUrl,
};
use serde::{Deserialize, Serialize};
use tidegate_oauth::{
    ExternalIdentity, IdentityProviders, OutboundError, OutboundFuture, ProviderName, Trip,
};

use crate::error::{Error, Result};
use discovery::{Discovery, Known};

/// How long a provider may take for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// What an operator says of a provider.
#[derive(Clone)]
pub struct ProviderSettings {
    /// Its name in addresses: lower-case letters and digits.
    pub id: String,
    /// Its name for people.
    pub label: String,
    /// What kind of provider it is.
    pub kind: ProviderKind,
    /// The `client_id` that it gave us.
    pub client_id: String,
    /// The secret that it gave us.
    pub client_secret: String,
}

/// How to speak with a provider.
#[derive(Clone, Debug)]
pub enum ProviderKind {
    /// OpenID Connect, by the discovery document of this issuer.
    OpenId(String),
    /// GitHub's OAuth and REST API.
    GitHub {
        /// Where people sign in, such as `https://github.com`.
        site: String,
        /// Where the REST API is, such as `https://api.github.com`.
        api: String,
    },
}

impl ProviderSettings {
    /// GitHub, at github.com or a GitHub Enterprise Server: where people sign in, and where the REST
    /// API is.
    pub fn github((site, api): (&str, &str), client_id: &str, client_secret: &str) -> Self {
        let kind = ProviderKind::GitHub {
            site: site.to_owned(),
            api: api.to_owned(),
        };
        Self::new("github", "GitHub", kind, (client_id, client_secret))
    }

    /// Google.
    pub fn google(client_id: &str, client_secret: &str) -> Self {
        let kind = ProviderKind::OpenId("https://accounts.google.com".to_owned());
        Self::new("google", "Google", kind, (client_id, client_secret))
    }

    /// GitLab, at gitlab.com or at an address of one's own.
    pub fn gitlab(issuer: &str, client_id: &str, client_secret: &str) -> Self {
        let kind = ProviderKind::OpenId(issuer.to_owned());
        Self::new("gitlab", "GitLab", kind, (client_id, client_secret))
    }

    /// Any other provider that speaks OpenID Connect.
    pub fn openid(label: &str, issuer: &str, client_id: &str, client_secret: &str) -> Self {
        let kind = ProviderKind::OpenId(issuer.to_owned());
        Self::new("openid", label, kind, (client_id, client_secret))
    }

    fn new(id: &str, label: &str, kind: ProviderKind, (client, secret): (&str, &str)) -> Self {
        Self {
            id: id.to_owned(),
            label: label.to_owned(),
            kind,
            client_id: client.to_owned(),
            client_secret: secret.to_owned(),
        }
    }
}

impl fmt::Debug for ProviderSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderSettings")
            .field("id", &self.id)
            .field("kind", &self.kind)
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}

/// The providers that an operator has configured.
#[derive(Debug)]
pub struct Providers {
    names: Vec<ProviderName>,
    known: Vec<Provider>,
    http: reqwest::Client,
}

#[derive(Debug)]
struct Provider {
    settings: ProviderSettings,
    discovery: Known,
}

/// What a provider's token endpoint gives besides OAuth's own.
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
    /// Readies the providers; nobody is asked before a person wants to sign in.
    ///
    /// # Errors
    ///
    /// [`Error::IssuerInTheClear`] for an issuer that is neither at `https` nor on this machine,
    /// [`Error::Http`] when no connections can be made at all.
    pub fn new(settings: Vec<ProviderSettings>) -> Result<Self> {
        for provider in &settings {
            let mut addresses = provider.kind.addresses();
            if let Some(open) = addresses.find(|address| !discovery::is_private(address)) {
                return Err(Error::IssuerInTheClear(open.to_owned()));
            }
        }
        // A redirect of a token endpoint would carry secrets elsewhere.
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(PATIENCE)
            .user_agent("tidegate")
            .build()
            .map_err(|error| Error::Http(error.to_string()))?;
        let name = |provider: &ProviderSettings| ProviderName {
            id: provider.id.clone(),
            label: provider.label.clone(),
        };
        Ok(Self {
            names: settings.iter().map(name).collect(),
            known: settings
                .into_iter()
                .map(|settings| Provider {
                    settings,
                    discovery: Known::default(),
                })
                .collect(),
            http,
        })
    }

    fn find(&self, id: &str) -> Option<&Provider> {
        self.known.iter().find(|p| p.settings.id == id)
    }

    async fn address(&self, id: &str, trip: &Trip) -> Result<Option<String>, OutboundError> {
        let Some(provider) = self.find(id) else {
            return Ok(None);
        };
        let endpoints = self.endpoints(provider, trip).await?;
        let client = client(&provider.settings, &endpoints, trip)?;
        let verifier = PkceCodeVerifier::new(trip.verifier.expose().to_owned());
        let state = trip.state.clone();
        let mut request = client
            .authorize_url(|| CsrfToken::new(state))
            .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier));
        for scope in provider.settings.kind.scopes() {
            request = request.add_scope(Scope::new((*scope).to_owned()));
        }
        if matches!(provider.settings.kind, ProviderKind::OpenId(_)) {
            request = request.add_extra_param("nonce", trip.nonce.clone());
        }
        let (address, _) = request.url();
        Ok(Some(address.into()))
    }

    async fn endpoints(
        &self,
        provider: &Provider,
        trip: &Trip,
    ) -> Result<Discovery, OutboundError> {
        match &provider.settings.kind {
            ProviderKind::OpenId(issuer) => {
                provider.discovery.of(&self.http, issuer, trip.now).await
            }
            ProviderKind::GitHub { site, .. } => Ok(github::endpoints(site)),
        }
    }

    async fn who(
        &self,
        id: &str,
        code: &str,
        trip: &Trip,
    ) -> Result<ExternalIdentity, OutboundError> {
        let provider = self
            .find(id)
            .ok_or_else(|| refused("there is no such provider"))?;
        let endpoints = self.endpoints(provider, trip).await?;
        let tokens: Tokens = client(&provider.settings, &endpoints, trip)?
            .exchange_code(AuthorizationCode::new(code.to_owned()))
            .set_pkce_verifier(PkceCodeVerifier::new(trip.verifier.expose().to_owned()))
            .request_async(&self.http)
            .await
            .map_err(OutboundError::new)?;
        match &provider.settings.kind {
            ProviderKind::GitHub { api, .. } => {
                github::identity(&self.http, (&endpoints.issuer, api), &tokens).await
            }
            ProviderKind::OpenId(_) => {
                let id_token = tokens.extra_fields().id_token.as_deref();
                let id_token = id_token.ok_or_else(|| refused("there is no identity token"))?;
                let keys = discovery::keys(&self.http, &endpoints).await?;
                let expected = token::Expected {
                    issuer: &endpoints.issuer,
                    audience: &provider.settings.client_id,
                    nonce: &trip.nonce,
                    now: trip.now.seconds(),
                };
                token::read(id_token, &keys, &expected).map_err(OutboundError::new)
            }
        }
    }
}

impl ProviderKind {
    /// The addresses that an operator has set.
    fn addresses(&self) -> impl Iterator<Item = &str> {
        let (first, second) = match self {
            Self::OpenId(issuer) => (issuer, None),
            Self::GitHub { site, api } => (site, Some(api)),
        };
        std::iter::once(first).chain(second).map(String::as_str)
    }

    fn scopes(&self) -> &'static [&'static str] {
        match self {
            Self::OpenId(_) => &["openid", "email", "profile"],
            Self::GitHub { .. } => &["read:user", "user:email"],
        }
    }
}

fn client(
    settings: &ProviderSettings,
    endpoints: &Discovery,
    trip: &Trip,
) -> Result<ProviderClient, OutboundError> {
    let authorization = AuthUrl::new(endpoints.authorization_endpoint.clone());
    let token = TokenUrl::new(endpoints.token_endpoint.clone());
    let back = RedirectUrl::new(trip.redirect_uri.clone());
    Ok(Client::new(ClientId::new(settings.client_id.clone()))
        .set_client_secret(ClientSecret::new(settings.client_secret.clone()))
        .set_auth_uri(authorization.map_err(OutboundError::new)?)
        .set_token_uri(token.map_err(OutboundError::new)?)
        .set_redirect_uri(back.map_err(OutboundError::new)?))
}

fn refused(why: &'static str) -> OutboundError {
    OutboundError::new(why)
}

impl IdentityProviders for Providers {
    fn names(&self) -> &[ProviderName] {
        &self.names
    }

    fn begin<'a>(
        &'a self,
        provider: &'a str,
        trip: &'a Trip,
    ) -> OutboundFuture<'a, Option<String>> {
        Box::pin(self.address(provider, trip))
    }

    fn complete<'a>(
        &'a self,
        provider: &'a str,
        code: &'a str,
        trip: &'a Trip,
    ) -> OutboundFuture<'a, ExternalIdentity> {
        Box::pin(self.who(provider, code, trip))
    }
}
