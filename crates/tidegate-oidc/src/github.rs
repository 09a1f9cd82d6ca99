//! Signs users in with GitHub. GitHub issues no ID tokens, so the identity comes from its REST API
//! ("Users", "Emails").

use serde::Deserialize;
use tidegate_identity::{ExternalIdentity, OutboundError};

use crate::discovery::{self, Discovery};

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

/// The endpoints of a GitHub site. The URL of the site serves as the issuer of linked accounts.
pub(crate) fn endpoints(site: &str) -> Discovery {
    let site = site.trim_end_matches('/');
    Discovery {
        issuer: site.to_owned(),
        authorization_endpoint: format!("{site}/login/oauth/authorize"),
        token_endpoint: format!("{site}/login/oauth/access_token"),
        jwks_uri: String::new(),
    }
}

/// The identity of the user who owns a token, from the REST API at `api`. The email address is the
/// user's primary address at GitHub, or absent if GitHub has not verified that address.
pub(crate) async fn identity(
    http: &reqwest::Client,
    (issuer, api): (&str, &str),
    token: &str,
) -> Result<ExternalIdentity, OutboundError> {
    let api = api.trim_end_matches('/');
    let get = |path: &str| {
        http.get(format!("{api}{path}"))
            .bearer_auth(token)
            .header("accept", "application/vnd.github+json")
            .send()
    };
    let account = get("/user").await.map_err(OutboundError::new)?;
    let account: Account = discovery::read(account).await?;
    let emails = get("/user/emails").await.map_err(OutboundError::new)?;
    let emails: Vec<Email> = discovery::read(emails).await?;
    let primary = emails.into_iter().find(|e| e.primary && e.verified);
    Ok(ExternalIdentity {
        issuer: issuer.to_owned(),
        subject: account.id.to_string(),
        verified_email: primary.map(|email| email.address),
        name: Some(account.login),
    })
}
