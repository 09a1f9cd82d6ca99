//! Creates the identity providers in the settings.

use std::sync::Arc;

use tidegate_identity::IdentityProviders;
use tidegate_oidc::{ProviderSettings, Providers};

use crate::cli_error::{CliError, Result};
use crate::settings::{Secret, Settings};

/// The identity providers in the settings; `None` if the settings have none.
pub(crate) fn providers(settings: &Settings) -> Result<Option<Arc<dyn IdentityProviders>>> {
    let mut found = Vec::new();
    let (id, secret) = (&settings.github_client_id, &settings.github_client_secret);
    if let Some((id, secret)) = both((id, "github_client_id"), (secret, "github_client_secret"))? {
        let addresses = (&*settings.github_url.0, &*settings.github_api_url.0);
        found.push(ProviderSettings::github(addresses, id, secret));
    }
    let (id, secret) = (&settings.google_client_id, &settings.google_client_secret);
    if let Some((id, secret)) = both((id, "google_client_id"), (secret, "google_client_secret"))? {
        found.push(ProviderSettings::google(id, secret));
    }
    let (id, secret) = (&settings.gitlab_client_id, &settings.gitlab_client_secret);
    if let Some((id, secret)) = both((id, "gitlab_client_id"), (secret, "gitlab_client_secret"))? {
        found.push(ProviderSettings::gitlab(&settings.gitlab_url.0, id, secret));
    }
    let (id, secret) = (&settings.openid_client_id, &settings.openid_client_secret);
    let openid = both((id, "openid_client_id"), (secret, "openid_client_secret"))?;
    match (openid, &settings.openid_issuer) {
        (Some((id, secret)), Some(issuer)) => {
            let label = &settings.openid_label;
            found.push(ProviderSettings::openid(label, &issuer.0, id, secret));
        }
        (None, None) => {}
        (Some(_), None) => return Err(CliError::incomplete("openid_client_id", "openid_issuer")),
        (None, Some(_)) => return Err(CliError::incomplete("openid_issuer", "openid_client_id")),
    }
    if found.is_empty() {
        return Ok(None);
    }
    let providers = Providers::new(found).map_err(|error| CliError::Usage(error.to_string()))?;
    Ok(Some(Arc::new(providers)))
}

/// The values of two settings that belong together; `None` if neither is given, an error if only
/// one is given.
fn both<'s>(
    (id, id_name): (&'s Option<String>, &str),
    (secret, secret_name): (&'s Option<Secret>, &str),
) -> Result<Option<(&'s str, &'s str)>> {
    match (id, secret) {
        (Some(id), Some(secret)) => Ok(Some((id, &secret.0))),
        (None, None) => Ok(None),
        (Some(_), None) => Err(CliError::incomplete(id_name, secret_name)),
        (None, Some(_)) => Err(CliError::incomplete(secret_name, id_name)),
    }
}
