//! GitHub has no identity tokens: who signed in is asked of its REST API ("Users", "Emails").

use oauth2::TokenResponse as _;
use serde::Deserialize;
use tidegate_oauth::{ExternalIdentity, OutboundError};

use super::Tokens;
use super::discovery::{self, Discovery};

const ISSUER: &str = "https://github.com";
const API: &str = "https://api.github.com";

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

pub(super) fn endpoints() -> Discovery {
    Discovery {
        issuer: ISSUER.to_owned(),
        authorization_endpoint: format!("{ISSUER}/login/oauth/authorize"),
        token_endpoint: format!("{ISSUER}/login/oauth/access_token"),
        jwks_uri: String::new(),
    }
}

pub(super) async fn identity(
    http: &reqwest::Client,
    tokens: &Tokens,
) -> Result<ExternalIdentity, OutboundError> {
    let ask = |path: &str| {
        http.get(format!("{API}{path}"))
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
        issuer: ISSUER.to_owned(),
        subject: account.id.to_string(),
        verified_email: own.map(|own| own.address),
        name: Some(account.login),
    })
}
