//! Client lookup and authentication.

use std::net::IpAddr;

use super::Issuer;
use super::grant::GrantContext;
use crate::rate_limit;
use crate::{Client, ClientAuthentication, ClientCredentials, Error, Result};
use tidegate_identity::AuditKind;

/// The maximum length in bytes of the id of a client. Longer ids are not looked up.
const MAX_ID_LENGTH: usize = 255;

impl Issuer {
    /// The built-in or registered client with this id; `None` if there is none.
    pub(crate) async fn client(&self, id: &str) -> Result<Option<Client>> {
        match self.settings.builtin.find(id) {
            Some(client) => Ok(Some(client)),
            None => Ok(self.ports.store.client(id).await?),
        }
    }

    /// The client with this id; `None` if there is no such client. The id comes from a request and
    /// may have any length.
    pub(super) async fn known_client(&self, id: &str) -> Result<Option<Client>> {
        if id.len() > MAX_ID_LENGTH {
            return Ok(None);
        }
        self.client(id).await
    }

    /// The client that the credentials name, if it exists.
    pub(crate) async fn find_client(
        &self,
        credentials: &ClientCredentials,
    ) -> Result<Option<Client>> {
        for id in credentials.ids() {
            if let Some(client) = self.known_client(id).await? {
                return Ok(Some(client));
            }
        }
        Ok(None)
    }

    /// The client that the credentials name; [`Error::UnknownClient`] if it does not exist.
    pub(crate) async fn require_client(&self, credentials: &ClientCredentials) -> Result<Client> {
        let client = self.find_client(credentials).await?;
        client.ok_or(Error::UnknownClient)
    }

    pub(crate) fn grant_context<'a>(
        &'a self,
        client: &'a Client,
        address: Option<IpAddr>,
    ) -> GrantContext<'a> {
        GrantContext {
            issuer: self,
            client,
            address,
        }
    }

    /// Authenticates a client: accepts a public client, and a confidential client with a valid
    /// secret.
    ///
    /// A valid secret is never rate limited, because otherwise an attacker who sends wrong secrets
    /// could lock the client out. So secrets are compared first, and only wrong secrets are
    /// counted, by client and address. The count only bounds the cost of wrong secrets: a generated
    /// secret has 256 random bits and cannot be guessed.
    ///
    /// Errors: [`Error::ClientNotAuthenticated`], [`IdentityError::TooManyAttempts`].
    pub(crate) async fn authenticate(
        &self,
        client: &Client,
        credentials: &ClientCredentials,
        address: Option<IpAddr>,
    ) -> Result<()> {
        let secrets = credentials.secrets_for(&client.id);
        if client
            .authentication
            .accepts(secrets, self.ports.clock.now())
        {
            return Ok(());
        }
        if credentials.secrets_for(&client.id).next().is_some() {
            self.count_wrong_secret(client, address).await?;
        }
        let event = self
            .ports
            .event(AuditKind::ClientRefused, client.database.as_deref());
        self.ports
            .audit(event.with_client(Some(&client.id)).with_address(address))
            .await;
        Err(Error::ClientNotAuthenticated)
    }

    async fn count_wrong_secret(&self, client: &Client, address: Option<IpAddr>) -> Result<()> {
        let mut attempts = self.identity.attempts_from(address).await?;
        let key = rate_limit::client(&client.id, address);
        attempts.count(key, &self.settings.limits.client).await?;
        Ok(())
    }

    /// Does the same as [`authenticate`](Self::authenticate), but refuses public clients with
    /// [`Error::PublicClient`].
    pub(crate) async fn authenticate_confidential(
        &self,
        client: &Client,
        credentials: &ClientCredentials,
        address: Option<IpAddr>,
    ) -> Result<()> {
        if client.authentication == ClientAuthentication::Public {
            return Err(Error::PublicClient);
        }
        self.authenticate(client, credentials, address).await
    }
}
