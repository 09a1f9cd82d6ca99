//! Which client asks, and whether it is the one.

use std::net::IpAddr;

use super::Issuer;
use crate::grant::Exchange;
use crate::throttle::{self, Attempts};
use crate::{
    AttemptScope, AuditKind, Client, ClientAuthentication, ClientCredentials, Error, Result,
};

/// Longer ids are none of ours; they are not looked for.
const LONGEST_ID: usize = 255;

impl Issuer {
    /// The client that the credentials name.
    pub(crate) async fn known_client(
        &self,
        credentials: &ClientCredentials,
    ) -> Result<Option<Client>> {
        for id in credentials.ids().filter(|id| id.len() <= LONGEST_ID) {
            if let Some(client) = self.ports.store.client(id).await? {
                return Ok(Some(client));
            }
        }
        Ok(None)
    }

    /// The client that the credentials name; [`Error::UnknownClient`] when there is none.
    pub(crate) async fn asking_client(&self, credentials: &ClientCredentials) -> Result<Client> {
        let client = self.known_client(credentials).await?;
        client.ok_or(Error::UnknownClient)
    }

    /// What a grant works with.
    pub(crate) fn exchange<'a>(
        &'a self,
        client: &'a Client,
        address: Option<IpAddr>,
    ) -> Exchange<'a> {
        Exchange {
            issuer: self,
            client,
            address,
        }
    }

    /// Accepts a public client, and a confidential one that shows a secret that works.
    ///
    /// A right secret is never refused: it has 256 random bits, so the limit protects no secret. It
    /// bounds what wrong ones cost, and must not let others lock a client out. So the secret is
    /// compared first, and only wrong ones are counted, by client and address.
    ///
    /// [`Error::ClientNotAuthenticated`], [`Error::TooManyAttempts`].
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
        let event = self.event(AuditKind::ClientRefused, Some(&client.database));
        self.ports
            .audit(event.of_client(&client.id).from(address))
            .await;
        Err(Error::ClientNotAuthenticated)
    }

    async fn count_wrong_secret(&self, client: &Client, address: Option<IpAddr>) -> Result<()> {
        let limits = &self.settings.limits;
        let mut attempts = self.attempts();
        if let Some(address) = address {
            let key = throttle::address(AttemptScope::Address, address);
            attempts.count(key, &limits.address).await?;
        }
        let key = throttle::client(&client.id, address);
        attempts.count(key, &limits.client).await
    }

    /// As [`authenticate`](Self::authenticate), for what a client without a secret may not ask.
    pub(crate) async fn authenticate_confidential(
        &self,
        client: &Client,
        credentials: &ClientCredentials,
        address: Option<IpAddr>,
    ) -> Result<()> {
        if client.authentication == ClientAuthentication::Public {
            return Err(Error::ClientNotAuthenticated);
        }
        self.authenticate(client, credentials, address).await
    }

    pub(crate) fn attempts(&self) -> Attempts<'_> {
        Attempts::new(&*self.ports.store, &*self.ports.clock, &self.in_flight)
    }
}
