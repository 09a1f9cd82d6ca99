//! Sign-out that a client requests (OpenID Connect RP-Initiated Logout 1.0).

use super::Issuer;
use crate::token::subject;
use crate::{Error, Parameters, Result, redirect};
use tidegate_identity::{Error as IdentityError, User};

/// A request to end a browser session.
#[derive(Clone, Debug, Default)]
pub struct LogoutRequest {
    /// The subject of the ID token that the client sent.
    subject: Option<String>,
    /// The URL to which the browser goes after the sign-out, with the parameter `state` of the
    /// request.
    redirect: Option<String>,
}

impl LogoutRequest {
    /// Whether the client sent an ID token of this user. If it did, the user need not confirm the
    /// sign-out (RP-Initiated Logout, section 2).
    pub fn names_user(&self, user: &User) -> bool {
        self.subject.as_deref() == Some(&*subject(user))
    }

    /// The URL to which the browser goes after the sign-out, with the parameter `state` of the
    /// request. The client has registered it. `None` if the client is unknown or requested no
    /// redirect.
    pub fn redirect(&self) -> Option<&str> {
        self.redirect.as_deref()
    }
}

impl Issuer {
    /// Reads and checks a request to end a browser session. The client is named by the ID token in
    /// `id_token_hint`, or by `client_id`. If neither names a known client, there is no redirect
    /// (section 3). A hint that this issuer did not sign is ignored.
    ///
    /// Errors: [`Error::UnregisteredRedirect`] if `post_logout_redirect_uri` is present but is not
    /// a redirect URI of the client; `invalid_request` for malformed parameters and for a
    /// `client_id` that differs from the client of the ID token.
    pub async fn logout_request(&self, parameters: &Parameters) -> Result<LogoutRequest> {
        let hint = parameters.text("id_token_hint")?;
        let hint = hint.and_then(|token| self.id_token_hint(token));
        let named = parameters.text("client_id")?;
        let client_id = match (&hint, named) {
            (Some(hint), Some(named)) if hint.aud != named => {
                let expected = "the client of the ID token";
                let part = "client_id";
                return Err(IdentityError::Malformed { part, expected }.into());
            }
            (Some(hint), _) => Some(&*hint.aud),
            (None, named) => named,
        };
        let uri = parameters.text("post_logout_redirect_uri")?;
        let redirect = match client_id.zip(uri) {
            Some((client_id, uri)) => {
                let state = parameters.text("state")?;
                self.logout_redirect(client_id, uri, state).await?
            }
            None => None,
        };
        Ok(LogoutRequest {
            subject: hint.map(|hint| hint.sub),
            redirect,
        })
    }

    /// The URL `uri` with `state` added; `None` if the client does not exist. Fails if the client
    /// may not redirect to `uri`.
    async fn logout_redirect(
        &self,
        client_id: &str,
        uri: &str,
        state: Option<&str>,
    ) -> Result<Option<String>> {
        let Some(client) = self.known_client(client_id).await? else {
            return Ok(None);
        };
        if self.redirecting(client, uri).is_none() {
            return Err(Error::UnregisteredRedirect);
        }
        let state: Vec<_> = state.map(|state| ("state", state)).into_iter().collect();
        Ok(Some(redirect::with_parameters(uri, &state)))
    }
}
