//! GitHub has no identity tokens: who signed in is asked of its REST API ("Users", "Emails").

use oauth2::TokenResponse as _;
use serde::Deserialize;
use tidegate_oauth::{ExternalIdentity, OutboundError};

use super::Tokens;
use super::discovery::{self, Discovery};

#[derive(Deserialize)]
struct Account {
    id: u64,
    login: String,
}

#[derive(Deserialize)]
struct Email {
    #[serde(rename = "email")]
    address: String,
    primary: bool,
    verified: bool,
}

/// Where people sign in; links between accounts are kept under this address.
pub(super) fn endpoints(site: &str) -> Discovery {
    let site = site.trim_end_matches('/');
    Discovery {
        issuer: site.to_owned(),
        authorization_endpoint: format!("{site}/login/oauth/authorize"),
        token_endpoint: format!("{site}/login/oauth/access_token"),
        jwks_uri: String::new(),
    }
}

/// Asks the REST API at `api` whose token this is. Only a primary address that GitHub has verified
/// counts: of the others anybody may have written any.
pub(super) async fn identity(
    http: &reqwest::Client,
    (issuer, api): (&str, &str),
    tokens: &Tokens,
) -> Result<ExternalIdentity, OutboundError> {
    let api = api.trim_end_matches('/');
    let ask = |path: &str| {
        http.get(format!("{api}{path}"))
            .bearer_auth(tokens.access_token().secret())
            .header("accept", "application/vnd.github+json")
            .send()
    };
    let account = ask("/user").await.map_err(OutboundError::new)?;
    let account: Account = discovery::read(account).await?;
    let emails = ask("/user/emails").await.map_err(OutboundError::new)?;
    let emails: Vec<Email> = discovery::read(emails).await?;
    let own = emails.into_iter().find(|e| e.primary && e.verified);
    Ok(ExternalIdentity {
        issuer: issuer.to_owned(),
        subject: account.id.to_string(),
        verified_email: own.map(|own| own.address),
        name: Some(account.login),
    })
}
