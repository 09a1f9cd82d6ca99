//! Authorization requests (RFC 6749, section 4.1.1): validation, and the redirect with the result.

use std::net::IpAddr;

use super::openid_request::refuse_unsupported;
use super::{Issuer, OpenIdRequest};
use crate::pkce::Challenge;
use crate::request::scopes;
use crate::{
    AuthorizationCode, Client, Error, ErrorKind, GrantKind, Parameters, Result, Scopes, redirect,
};
use tidegate_identity::{AuditKind, Secret, SecretHash, User, UserKey};
use tidegate_identity::{Browser, Error as IdentityError};

/// A valid authorization request.
#[derive(Clone, Debug)]
pub struct AuthorizationRequest {
    /// The client that sent the request.
    pub client: Client,
    /// The redirect URI, which the client has registered.
    pub redirect_uri: String,
    /// The database whose users may sign in: the database of the client, or for a built-in client
    /// the database in the parameter `database`; `None` if users of any database may sign in.
    pub database: Option<String>,
    /// The requested scopes.
    pub scopes: Scopes,
    /// The parameters of OpenID Connect.
    pub openid: OpenIdRequest,
    state: Option<String>,
    challenge: Challenge,
}

impl AuthorizationRequest {
    /// Whether this user may sign in for the request.
    pub fn admits(&self, user: &UserKey) -> bool {
        self.database
            .as_deref()
            .is_none_or(|database| database == user.database)
    }
}

/// The response to an invalid authorization request.
#[derive(Debug)]
pub enum AuthorizationError {
    /// The client is not known, or its redirect URI is missing or not registered. Show the error
    /// to the person, and do not redirect.
    Display(Error),
    /// The browser goes to this URL, which carries the error to the client.
    Redirect(String),
}

impl Issuer {
    /// Validates an authorization request.
    ///
    /// Errors: [`AuthorizationError::Display`] unless the client and its redirect URI are known;
    /// otherwise [`AuthorizationError::Redirect`] with `invalid_request`,
    /// `unsupported_response_type`, `invalid_scope`, `invalid_target`, `unauthorized_client`, or an
    /// error of OpenID Connect for a parameter that is not supported.
    pub async fn authorization_request(
        &self,
        parameters: &Parameters,
    ) -> Result<AuthorizationRequest, AuthorizationError> {
        let (client, redirect_uri) = self
            .client_and_redirect_uri(parameters)
            .await
            .map_err(AuthorizationError::Display)?;
        let state = parameters.text("state");
        let kept = state.as_ref().ok().and_then(|state| *state);
        let named = parameters.text("database").ok().flatten();
        let named = named.map(str::to_owned);
        let checked = state.and_then(|_| check(&client, parameters));
        let checked = checked.and_then(|valid| {
            self.check_resource(parameters.text("resource")?)?;
            let openid = self.openid_request(valid.1, parameters)?;
            Ok((valid, openid))
        });
        match checked {
            Ok(((challenge, scopes), openid)) => Ok(AuthorizationRequest {
                scopes,
                openid,
                database: client.database.clone().or(named),
                state: kept.map(str::to_owned),
                client,
                redirect_uri,
                challenge,
            }),
            Err(error) => Err(AuthorizationError::Redirect(self.error_redirect(
                &redirect_uri,
                kept,
                &error,
            ))),
        }
    }

    /// The client and the redirect URI of an authorization request with these parameters. The
    /// client must have registered the redirect URI.
    ///
    /// Errors: [`Error::UnknownClient`], [`Error::UnregisteredRedirect`], and those of missing,
    /// repeated and ill-typed parameters.
    pub async fn client_and_redirect_uri(
        &self,
        parameters: &Parameters,
    ) -> Result<(Client, String)> {
        let client = self.client_of(parameters).await?;
        let redirect_uri = parameters.required("redirect_uri")?;
        let client = self.redirecting(client, redirect_uri);
        let client = client.ok_or(Error::UnregisteredRedirect)?;
        Ok((client, redirect_uri.to_owned()))
    }

    /// Returns the client for a request that redirects to `uri`; `None` if the client may not
    /// redirect to `uri`. For a built-in client, `confirm` and `description` depend on `uri`.
    pub(super) fn redirecting(&self, client: Client, uri: &str) -> Option<Client> {
        if client.database.is_none() {
            return self.settings.builtin.redirecting(client, uri);
        }
        let mut registered = client.redirect_uris.iter();
        let is_registered = registered.any(|known| redirect::matches(known, uri));
        is_registered.then_some(client)
    }

    /// Whether `uri` is a page of the built-in clients, or a redirect URI that any client of any
    /// tenant has registered. All tenants count, because after a sign-out the user and the
    /// tenant are unknown.
    pub async fn is_registered(&self, uri: &str) -> Result<bool> {
        if self.settings.builtin.is_page(uri) {
            return Ok(true);
        }
        let start = redirect::lookup_prefix(uri);
        let registered = self.ports.store.redirect_uris_from(start).await?;
        let mut registered = registered.iter();
        Ok(registered.any(|known| redirect::matches(known, uri)))
    }

    async fn client_of(&self, parameters: &Parameters) -> Result<Client> {
        let client = self.known_client(parameters.required("client_id")?).await?;
        client.ok_or(Error::UnknownClient)
    }

    /// Issues an authorization code to a user who was asked for consent and gave it, and writes the
    /// audit event. Returns the same URL as [`Self::grant_code`].
    pub async fn allow_code(
        &self,
        request: &AuthorizationRequest,
        browser: &Browser,
        address: Option<IpAddr>,
    ) -> String {
        let code = self.new_code(request, browser).await;
        if code.is_ok() {
            let user = &browser.user.key;
            let event = self
                .ports
                .event(AuditKind::ConsentGiven, Some(&user.database));
            let event = event
                .with_user(&user.name)
                .with_client(Some(&request.client.id));
            self.ports.audit(event.with_address(address)).await;
        }
        self.code_redirect(request, code)
    }

    /// Issues an authorization code to a user who signed in and need not be asked for consent.
    /// Returns the redirect URL. The URL carries the code, or an error if no code could be issued.
    /// The code is void when the browser session ends.
    pub async fn grant_code(&self, request: &AuthorizationRequest, browser: &Browser) -> String {
        self.code_redirect(request, self.new_code(request, browser).await)
    }

    fn code_redirect(&self, request: &AuthorizationRequest, code: Result<Secret>) -> String {
        match code {
            Ok(code) => {
                let first = [("code", code.expose())];
                self.redirect_url(&request.redirect_uri, request.state.as_deref(), &first)
            }
            Err(error) => {
                tracing::warn!(%error, client_id = request.client.id, "authorization code could not be issued");
                self.refuse(request, &error)
            }
        }
    }

    /// Writes the audit event of a denied request. Returns the redirect URL that reports the denial
    /// to the client.
    pub async fn deny_code(
        &self,
        request: &AuthorizationRequest,
        user: &User,
        address: Option<IpAddr>,
    ) -> String {
        let event = self
            .ports
            .event(AuditKind::ConsentDenied, Some(&user.key.database));
        let event = event
            .with_user(&user.key.name)
            .with_client(Some(&request.client.id));
        self.ports.audit(event.with_address(address)).await;
        self.refuse(request, &Error::AccessDenied)
    }

    /// The redirect URL that reports an error to the client.
    pub fn refuse(&self, request: &AuthorizationRequest, error: &Error) -> String {
        self.error_redirect(&request.redirect_uri, request.state.as_deref(), error)
    }

    async fn new_code(&self, request: &AuthorizationRequest, browser: &Browser) -> Result<Secret> {
        let user = &browser.user;
        if !request.admits(&user.key) {
            return Err(Error::ForeignDatabase);
        }
        let code = self.ports.random.secret()?;
        let now = self.ports.clock.now();
        let record = AuthorizationCode {
            hash: SecretHash::of(&code),
            client_id: request.client.id.clone(),
            redirect_uri: request.redirect_uri.clone(),
            challenge: request.challenge.as_str().to_owned(),
            scopes: request.scopes,
            nonce: request.openid.nonce.clone(),
            user: user.key.clone(),
            browser: Some(browser.session.id),
            expires_at: now.plus(self.settings.lifetimes.authorization_code),
            session: None,
        };
        self.remember_consent(request, browser).await?;
        self.ports.store.insert_code(&record).await?;
        Ok(code)
    }

    fn error_redirect(&self, redirect_uri: &str, state: Option<&str>, error: &Error) -> String {
        // A redirect cannot carry the HTTP status of an internal error, so the error code
        // `server_error` reports it (RFC 6749, section 4.1.2.1).
        let name = match error.kind() {
            ErrorKind::Internal => "server_error",
            _ => error.code(),
        };
        let text = error.description();
        let first = [("error", name), ("error_description", &*text)];
        self.redirect_url(redirect_uri, state, &first)
    }

    /// The redirect URL with the parameters `first`, then `state` as the client sent it, and `iss`
    /// (RFC 9207).
    fn redirect_url(
        &self,
        redirect_uri: &str,
        state: Option<&str>,
        first: &[(&str, &str)],
    ) -> String {
        let mut parameters = first.to_vec();
        parameters.extend(state.map(|state| ("state", state)));
        parameters.push(("iss", self.settings.issuer()));
        redirect::with_parameters(redirect_uri, &parameters)
    }
}

fn check(client: &Client, parameters: &Parameters) -> Result<(Challenge, Scopes)> {
    let malformed = |part, expected| IdentityError::Malformed { part, expected };
    parameters.reject_duplicates()?;
    if parameters.required("response_type")? != "code" {
        return Err(Error::UnsupportedResponseType);
    }
    if parameters
        .text("response_mode")?
        .is_some_and(|mode| mode != "query")
    {
        return Err(malformed("response_mode", "query").into());
    }
    let scopes = scopes(parameters)?;
    refuse_unsupported(scopes, parameters)?;
    let challenge = parameters.required("code_challenge")?;
    if parameters.required("code_challenge_method")? != "S256" {
        return Err(malformed("code_challenge_method", "S256").into());
    }
    let challenge = Challenge::parse(challenge)
        .ok_or(malformed("code_challenge", "43 characters of base64url"))?;
    if client.grants.allows(GrantKind::AuthorizationCode) {
        Ok((challenge, scopes))
    } else {
        Err(Error::GrantNotAllowed)
    }
}
