//! The link with which a browser signs in to the console. It can be used once.

use std::time::Duration;

use tidegate_identity::UserKey;

use super::Node;
use crate::cli_error::Result;
use crate::settings::Settings;

/// How long the sign-in link is valid.
const SIGN_IN_LINK: Duration = Duration::from_mins(15);

impl Node {
    /// Creates a URL with which a browser can sign in to the console once, as the owner of
    /// `database`; `None` if the console is switched off.
    pub(crate) async fn sign_in_url(
        &self,
        settings: &Settings,
        service_url: &str,
        database: &str,
    ) -> Result<Option<String>> {
        if !settings.console {
            return Ok(None);
        }
        let identity = self.maintenance.issuer.identity();
        let owner = UserKey::owner(database);
        let token = identity.sign_in_link(&owner, SIGN_IN_LINK).await?;
        let token = token.expose();
        Ok(Some(format!("{service_url}/console/sign-in?token={token}")))
    }
}
