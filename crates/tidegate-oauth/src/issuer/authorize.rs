//! Authorization requests (RFC 6749, section 4.1.1): what a client sends a browser with, and where
//! the browser goes next.

use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::{Browser, Issuer};
use crate::flow::Challenge;
use crate::{
    AuditKind, AuthorizationCode, Client, Error, Fault, GrantKind, Parameters, Result, Secret,
    SecretHash, User, random, redirect,
};

/// Longer ids are none of ours; they are not looked for.
const LONGEST_ID: usize = 255;

/// A request that is in order. Whoever signs in, the answer goes to its address.
#[derive(Clone, Debug)]
pub struct AuthorizationRequest {
    /// The client that asks.
    pub client: Client,
    /// Where the answer goes; registered by the client.
    pub redirect_uri: String,
    state: Option<String>,
    challenge: Challenge,
}

/// What becomes of a request that is not in order.
#[derive(Debug)]
pub enum Refusal {
    /// The address to return to is not trustworthy: the person reads about it, and the browser goes
    /// nowhere.
    Shown(Error),
    /// The browser takes the error to the client: the address with the error in its query.
    Sent(String),
}

impl Issuer {
    /// Checks an authorization request. `scope` is accepted and means nothing.
    ///
    /// [`Refusal::Shown`] unless the client and its address are known, [`Refusal::Sent`] with
    /// `invalid_request`, `unsupported_response_type` or `unauthorized_client`, else.
    pub async fn authorization_request(
        &self,
        parameters: &Parameters,
    ) -> Result<AuthorizationRequest, Refusal> {
        let (client, redirect_uri) = self
            .returning_client(parameters)
            .await
            .map_err(Refusal::Shown)?;
        let state = parameters.text("state");
        let kept = state.as_ref().ok().and_then(|state| *state);
        let checked = state.and_then(|_| check(&client, parameters));
        match checked {
            Ok(challenge) => Ok(AuthorizationRequest {
                state: kept.map(str::to_owned),
                client,
                redirect_uri,
                challenge,
            }),
            Err(error) => Err(Refusal::Sent(self.refused(&redirect_uri, kept, &error))),
        }
    }

    /// The client of a request and the address that a browser may go back to.
    ///
    /// [`Error::UnknownClient`], [`Error::UnregisteredRedirect`], and the errors of parameters.
    pub async fn returning_client(&self, parameters: &Parameters) -> Result<(Client, String)> {
        let client = self.client_of(parameters).await?;
        let redirect_uri = parameters.required("redirect_uri")?;
        let registered = client
            .redirect_uris
            .iter()
            .any(|registered| redirect::matches(registered, redirect_uri));
        if registered {
            Ok((client, redirect_uri.to_owned()))
        } else {
            Err(Error::UnregisteredRedirect)
        }
    }

    async fn client_of(&self, parameters: &Parameters) -> Result<Client> {
        let id = parameters.required("client_id")?;
        if id.len() > LONGEST_ID {
            return Err(Error::UnknownClient);
        }
        let client = self.ports.store.client(id).await?;
        client.ok_or(Error::UnknownClient)
    }

    /// Gives a code to a user who signed in and, where the client wants it, consented; returns the
    /// address at which the browser brings it to the client. When no code can be made, the address
    /// holds the error. The code is good no longer than the user is signed in in this browser.
    pub async fn grant_code(
        &self,
        request: &AuthorizationRequest,
        browser: &Browser,
        address: Option<IpAddr>,
    ) -> String {
        match self.new_code(request, browser).await {
            Ok(code) => {
                let user = &browser.user;
                let event = self.event(AuditKind::ConsentGiven, Some(&user.key.database));
                let event = event.of_user(&user.key.name).of_client(&request.client.id);
                self.ports.audit(event.from(address)).await;
                let first = [("code", code.expose())];
                self.location(&request.redirect_uri, request.state.as_deref(), &first)
            }
            Err(error) => {
                tracing::warn!(%error, "no authorization code could be given");
                self.refused(&request.redirect_uri, request.state.as_deref(), &error)
            }
        }
    }

    /// The address at which the browser tells the client that the user said no.
    pub async fn deny_code(
        &self,
        request: &AuthorizationRequest,
        user: &User,
        address: Option<IpAddr>,
    ) -> String {
        let event = self.event(AuditKind::ConsentDenied, Some(&user.key.database));
        let event = event.of_user(&user.key.name).of_client(&request.client.id);
        self.ports.audit(event.from(address)).await;
        let state = request.state.as_deref();
        self.refused(&request.redirect_uri, state, &Error::AccessDenied)
    }

    async fn new_code(&self, request: &AuthorizationRequest, browser: &Browser) -> Result<Secret> {
        let user = &browser.user;
        if user.key.database != request.client.database {
            return Err(Error::ForeignDatabase);
        }
        let bytes: [u8; 32] = random::bytes(&*self.ports.random)?;
        let code = Secret::new(URL_SAFE_NO_PAD.encode(bytes));
        let now = self.ports.clock.now();
        let record = AuthorizationCode {
            hash: SecretHash::of(&code),
            client_id: request.client.id.clone(),
            redirect_uri: request.redirect_uri.clone(),
            challenge: request.challenge.as_str().to_owned(),
            user: user.key.clone(),
            browser: Some(browser.session.id),
            expires_at: now.plus(self.settings.lifetimes.authorization_code),
            session: None,
        };
        self.ports.store.insert_code(&record).await?;
        Ok(code)
    }

    fn refused(&self, redirect_uri: &str, state: Option<&str>, error: &Error) -> String {
        // A redirect has no status, so that the fault is told by the name (RFC 6749, 4.1.2.1).
        let name = match error.fault() {
            Fault::Internal => "server_error",
            _ => error.code(),
        };
        let text = error.description();
        let first = [("error", name), ("error_description", &*text)];
        self.location(redirect_uri, state, &first)
    }

    /// The address with an answer: what is told, `state` as it came, and who tells it (RFC 9207).
    fn location(&self, redirect_uri: &str, state: Option<&str>, first: &[(&str, &str)]) -> String {
        let mut parameters = first.to_vec();
        parameters.extend(state.map(|state| ("state", state)));
        parameters.push(("iss", self.settings.issuer()));
        redirect::with_parameters(redirect_uri, &parameters)
    }
}

fn check(client: &Client, parameters: &Parameters) -> Result<Challenge> {
    let malformed = |part, expected| Error::Malformed { part, expected };
    parameters.each_once()?;
    if parameters.required("response_type")? != "code" {
        return Err(Error::UnsupportedResponseType);
    }
    if parameters
        .text("response_mode")?
        .is_some_and(|mode| mode != "query")
    {
        return Err(malformed("response_mode", "query"));
    }
    parameters.text("scope")?;
    let challenge = parameters.required("code_challenge")?;
    if parameters.required("code_challenge_method")? != "S256" {
        return Err(malformed("code_challenge_method", "S256"));
    }
    let challenge = Challenge::parse(challenge)
        .ok_or(malformed("code_challenge", "43 characters of base64url"))?;
    if client.grants.allows(GrantKind::AuthorizationCode) {
        Ok(challenge)
    } else {
        Err(Error::GrantNotAllowed)
    }
}
