//! The parameters that OpenID Connect adds to authorization requests (Core 1.0, section 3.1.2.1).
//! They are read only if the request has the scope `openid`, so other OAuth requests are not
//! affected.

use super::{AuthorizationRequest, Issuer};
use crate::token::{IdTokenHint, subject};
use crate::{Error, Parameters, Result, Scopes};
use tidegate_identity::{Browser, Error as IdentityError, Timestamp};

/// The maximum length of a `nonce` in characters. ID tokens repeat the `nonce`.
const MAX_NONCE: usize = 512;

/// A value of the parameter `prompt`: which pages the client requests from the authorization
/// endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// Show no page.
    None,
    /// Require a new sign-in.
    Login,
    /// Ask for consent again.
    Consent,
    /// Let the person choose an account.
    SelectAccount,
}

impl Prompt {
    /// All values, with their names on the wire.
    const NAMES: [(Self, &'static str); 4] = [
        (Self::None, "none"),
        (Self::Login, "login"),
        (Self::Consent, "consent"),
        (Self::SelectAccount, "select_account"),
    ];

    /// The names on the wire, for the metadata document.
    pub(super) fn names() -> [&'static str; 4] {
        Self::NAMES.map(|(_, name)| name)
    }
}

/// The parameters that OpenID Connect adds to an authorization request. Without the scope `openid`
/// all fields are empty.
#[derive(Clone, Debug, Default)]
pub struct OpenIdRequest {
    /// The value that the ID token repeats.
    pub(super) nonce: Option<String>,
    prompts: Vec<Prompt>,
    /// The maximum age of the sign-in, in seconds.
    max_age: Option<i64>,
    login_hint: Option<String>,
    hint: Hint,
}

/// The parameter `id_token_hint`.
#[derive(Clone, Debug, Default)]
enum Hint {
    #[default]
    Absent,
    /// The token is not an ID token of this issuer, or its key does not exist any more.
    Unknown,
    /// The subject of the user whom the client expects.
    Subject(String),
}

impl OpenIdRequest {
    /// Whether the request has this value in `prompt`.
    pub fn asks(&self, prompt: Prompt) -> bool {
        self.prompts.contains(&prompt)
    }

    /// The user name that the client suggests for the sign-in.
    pub fn login_hint(&self) -> Option<&str> {
        self.login_hint.as_deref()
    }

    /// Whether the request needs a new sign-in, because the sign-in of this browser is too old or
    /// because the client expects another user.
    fn rejects(&self, browser: &Browser, now: Timestamp) -> bool {
        let age = now.seconds() - browser.session.created_at.seconds();
        let is_expected = match &self.hint {
            Hint::Absent | Hint::Unknown => true,
            Hint::Subject(expected) => *expected == subject(&browser.user),
        };
        !is_expected || self.max_age.is_some_and(|most| age >= most)
    }
}

impl Issuer {
    /// Reads the parameters of OpenID Connect.
    ///
    /// Errors: `invalid_request` for a malformed `nonce`, `prompt` or `max_age`. An unknown value
    /// of `prompt` is ignored (section 3.1.2.1). An invalid `id_token_hint` is an error only with
    /// `prompt=none`; [`check_silent`](Self::check_silent) reports it.
    pub(super) fn openid_request(
        &self,
        scopes: Scopes,
        parameters: &Parameters,
    ) -> Result<OpenIdRequest> {
        if !scopes.has("openid") {
            return Ok(OpenIdRequest::default());
        }
        let hint = match parameters.text("id_token_hint")? {
            None => Hint::Absent,
            Some(token) => match self.id_token_hint(token) {
                Some(IdTokenHint { sub, .. }) => Hint::Subject(sub),
                None => Hint::Unknown,
            },
        };
        Ok(OpenIdRequest {
            nonce: nonce(parameters)?,
            prompts: prompts(parameters)?,
            max_age: max_age(parameters)?,
            login_hint: parameters.text("login_hint")?.map(str::to_owned),
            hint,
        })
    }

    /// Whether the person must sign in again for the request, although a user is already signed in
    /// in `browser`.
    pub fn needs_sign_in(&self, request: &AuthorizationRequest, browser: &Browser) -> bool {
        let openid = &request.openid;
        openid.asks(Prompt::Login) || openid.rejects(browser, self.ports.clock.now())
    }

    /// Checks whether a request with `prompt=none` can be granted without a page.
    ///
    /// Errors for the client (section 3.1.2.6): [`Error::LoginRequired`] if no user who may sign in
    /// for the request is signed in, if the user must sign in again, or if `id_token_hint` is
    /// invalid; [`Error::InteractionRequired`] if a second factor is missing;
    /// [`Error::ConsentRequired`] if the user must be asked for consent.
    pub async fn check_silent(
        &self,
        request: &AuthorizationRequest,
        browser: Option<&Browser>,
    ) -> Result<()> {
        let browser = browser
            .filter(|browser| request.admits(&browser.user.key))
            .filter(|browser| !self.needs_sign_in(request, browser))
            .filter(|_| !matches!(request.openid.hint, Hint::Unknown))
            .ok_or(Error::LoginRequired)?;
        let needs_second_factor = request.client.two_factor && !browser.session.second_factor;
        if browser.lacks_second_factor || needs_second_factor {
            return Err(Error::InteractionRequired);
        }
        if self.needs_consent(request, browser).await? {
            return Err(Error::ConsentRequired);
        }
        Ok(())
    }
}

/// Fails with [`Error::UnsupportedParameter`] if the request has a request object (section 6) or a
/// registration (section 7). Must be called before missing parameters are reported, because a
/// request object may contain parameters that the request itself lacks.
pub(super) fn refuse_unsupported(scopes: Scopes, parameters: &Parameters) -> Result<()> {
    if !scopes.has("openid") {
        return Ok(());
    }
    for name in ["request", "request_uri", "registration"] {
        if parameters.text(name)?.is_some() {
            return Err(Error::UnsupportedParameter(name));
        }
    }
    Ok(())
}

fn malformed(part: &'static str, expected: &'static str) -> Error {
    IdentityError::Malformed { part, expected }.into()
}

fn nonce(parameters: &Parameters) -> Result<Option<String>> {
    let Some(nonce) = parameters.text("nonce")? else {
        return Ok(None);
    };
    if nonce.chars().count() > MAX_NONCE || nonce.chars().any(char::is_control) {
        let expected = "up to 512 characters, none of them a control character";
        return Err(malformed("nonce", expected));
    }
    Ok(Some(nonce.to_owned()))
}

fn prompts(parameters: &Parameters) -> Result<Vec<Prompt>> {
    let names = parameters.text("prompt")?.unwrap_or_default().split(' ');
    let names: Vec<_> = names.filter(|name| !name.is_empty()).collect();
    if names.contains(&"none") && names.len() > 1 {
        return Err(malformed("prompt", "none without other values"));
    }
    let known = Prompt::NAMES.into_iter();
    let asked = known.filter(|(_, name)| names.contains(name));
    Ok(asked.map(|(prompt, _)| prompt).collect())
}

fn max_age(parameters: &Parameters) -> Result<Option<i64>> {
    let Some(text) = parameters.text("max_age")? else {
        return Ok(None);
    };
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let seconds = text.parse().ok().filter(|_| is_number);
    let seconds = seconds.ok_or_else(|| malformed("max_age", "a number of seconds"))?;
    Ok(Some(seconds))
}
