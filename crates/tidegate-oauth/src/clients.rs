//! The records of clients, for the command line and the management API: create, list, change,
//! rotate secrets, drop.

mod check;
mod members;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tidegate_identity::{
    AuditKind, EndReason, Error as IdentityError, Secret, SecretHash, StoreError, UserKey,
};

use crate::{Client, ClientAuthentication, ExpiringSecret, GrantKind, Ports, Result, SessionEnd};

pub use members::{ClientChange, NewClient};

/// How long the previous secret stays valid after a rotation.
const OVERLAP: Duration = Duration::from_hours(24);
/// The start of generated secrets.
const SECRET_PREFIX: &str = "tgc_";
/// A change of a client is attempted at most this many times. An attempt fails if another request
/// changes the client at the same time.
const MAX_TRIES: u32 = 20;

/// A client that was created or changed, with its new secret, which is shown only once.
#[derive(Clone, Debug)]
pub struct CreatedClient {
    /// The record of the client.
    pub client: Client,
    /// The client's new secret; `None` if the client is public or keeps its secret.
    pub secret: Option<Secret>,
}

/// The records of clients.
///
/// Changes of clients may end sessions. An [`Issuer`](crate::Issuer) refuses the tokens of an ended
/// session from its next `refresh_denylist` on.
#[derive(Clone, Debug)]
pub struct ClientDirectory {
    ports: Ports,
    actor: Option<String>,
    address: Option<IpAddr>,
    /// Ids that tenants cannot register, because built-in clients have them.
    reserved_ids: Arc<[String]>,
}

impl ClientDirectory {
    /// A directory that works on `ports`.
    pub fn new(ports: Ports) -> Self {
        Self {
            ports,
            actor: None,
            address: None,
            reserved_ids: Arc::default(),
        }
    }

    /// The same directory, but its audit events name the user `actor` and the `address` of the
    /// request instead of the operator.
    #[must_use]
    pub fn acting_as(self, actor: &str, address: Option<IpAddr>) -> Self {
        Self {
            actor: Some(actor.to_owned()),
            address,
            ..self
        }
    }

    /// The same directory, which also refuses to register clients with these ids, because they are
    /// the ids of built-in clients.
    #[must_use]
    pub fn reserving(self, ids: &[String]) -> Self {
        Self {
            reserved_ids: ids.into(),
            ..self
        }
    }

    /// Registers a client.
    ///
    /// Errors: [`IdentityError::InvalidField`] with the name of the invalid field,
    /// [`IdentityError::Taken`] when the id is taken.
    pub async fn create_client(&self, new: NewClient) -> Result<CreatedClient> {
        check::secret(new.secret.as_ref(), new.public)?;
        let id = match &new.id {
            Some(id) => id.clone(),
            None => URL_SAFE_NO_PAD.encode(self.ports.random.bytes::<16>()?),
        };
        let secret = match (&new.secret, new.public) {
            (_, true) => None,
            (Some(secret), false) => Some(secret.clone()),
            (None, false) => Some(self.new_secret()?),
        };
        let authentication = match &secret {
            None => ClientAuthentication::Public,
            Some(secret) => ClientAuthentication::Confidential {
                current: SecretHash::of(secret),
                previous: None,
            },
        };
        let client = Client {
            id,
            database: Some(new.database.to_string()),
            name: new.name,
            redirect_uris: new.redirect_uris,
            homepage: new.homepage,
            description: new.description,
            authentication,
            confirm: new.confirm,
            two_factor: new.two_factor,
            allow_signup: new.allow_signup,
            social_signup: new.social_signup,
            signup: new.signup,
            grants: new.grants,
            service_user: new.service_user,
            created_at: self.ports.clock.now(),
        };
        check::client(&client)?;
        self.check_service_user(&client).await?;
        let reserved = self.reserved_ids.contains(&client.id);
        if reserved || !self.ports.store.insert_client(&client).await? {
            return Err(IdentityError::Taken("client").into());
        }
        self.audit_client(AuditKind::ClientCreated, &client).await;
        Ok(CreatedClient { client, secret })
    }

    /// A new secret: 256 bits, with a prefix by which secret scanners find it.
    fn new_secret(&self) -> Result<Secret> {
        let secret = self.ports.random.secret()?;
        Ok(Secret::new(format!("{SECRET_PREFIX}{}", secret.expose())))
    }

    /// Checks the service user of a client. The user must exist and must not be the default user,
    /// and the client must be confidential.
    ///
    /// Errors: [`IdentityError::InvalidField`].
    async fn check_service_user(&self, client: &Client) -> Result<()> {
        let named = client
            .database
            .as_deref()
            .zip(client.service_user.as_deref());
        let Some((database, name)) = named else {
            return Ok(());
        };
        let user = self.ports.store.user(&UserKey::new(database, name)).await?;
        let expected = match (&client.authentication, user) {
            (ClientAuthentication::Public, _) => "no service user for a public client",
            (_, None) => "the name of a user of the database",
            (_, Some(user)) if user.default_user => "a user other than the default user",
            (_, Some(_)) => return Ok(()),
        };
        let field = "service_user";
        Err(IdentityError::InvalidField { field, expected }.into())
    }

    /// A tenant's clients, sorted by id.
    pub async fn clients(&self, database: &str) -> Result<Vec<Client>> {
        Ok(self.ports.store.clients(database).await?)
    }

    /// A tenant's client; [`IdentityError::NotFound`] also for a client of another tenant.
    pub async fn client(&self, database: &str, id: &str) -> Result<Client> {
        let client = self.ports.store.client(id).await?;
        client
            .filter(|client| client.belongs_to(database))
            .ok_or(IdentityError::NotFound("client").into())
    }

    /// Changes a client and returns it. The client gets a new secret if `rotate_secret` is set, or
    /// if it was public and becomes confidential.
    ///
    /// After a rotation the previous secret stays valid for 24 hours. Older secrets become invalid
    /// immediately. If the client becomes public, all its secrets become invalid immediately. The
    /// sessions of the grant `client_credentials` end if the client loses the grant or gets another
    /// service user.
    ///
    /// Errors: [`IdentityError::NotFound`]; [`IdentityError::InvalidField`] with the name of the
    /// invalid field. The field `rotate_secret` is invalid if the client is public after the
    /// change.
    pub async fn change_client(
        &self,
        database: &str,
        id: &str,
        change: ClientChange,
    ) -> Result<CreatedClient> {
        for _ in 0..MAX_TRIES {
            if let Some(changed) = self.try_change(database, id, change.clone()).await? {
                self.audit_client(AuditKind::ClientChanged, &changed.client)
                    .await;
                if changed.secret.is_some() {
                    self.audit_client(AuditKind::ClientSecretRotated, &changed.client)
                        .await;
                }
                return Ok(changed);
            }
        }
        let reason = "too many concurrent changes of the client";
        Err(StoreError::Unavailable(reason.into()).into())
    }

    /// Attempts the change once, and returns the changed client; `None` if another request changed
    /// the client at the same time.
    async fn try_change(
        &self,
        database: &str,
        id: &str,
        change: ClientChange,
    ) -> Result<Option<CreatedClient>> {
        let read = self.client(database, id).await?;
        let mut client = read.clone();
        let (rotate, public) = (change.rotate_secret, change.public);
        change.apply(&mut client);
        check::client(&client)?;
        let secret = self.change_authentication(&mut client, rotate, public)?;
        self.check_service_user(&client).await?;
        let done = self.ports.store.update_client(&read, &client).await?;
        let grant = GrantKind::ClientCredentials;
        if done && (client.service_user != read.service_user || !client.grants.allows(grant)) {
            let end = SessionEnd {
                at: self.ports.clock.now(),
                reason: EndReason::Ended,
            };
            let store = &self.ports.store;
            store.end_sessions_of_client(id, grant, end).await?;
        }
        Ok(done.then_some(CreatedClient { client, secret }))
    }

    /// Makes the client public or confidential. Returns a new secret if the client becomes
    /// confidential, or if it stays confidential and `rotate` is set. Fails if `rotate` is set and
    /// the client is public after the change.
    fn change_authentication(
        &self,
        client: &mut Client,
        rotate: bool,
        public: Option<bool>,
    ) -> Result<Option<Secret>> {
        let before = match &client.authentication {
            ClientAuthentication::Confidential { current, .. } => Some(*current),
            ClientAuthentication::Public => None,
        };
        if public.unwrap_or(before.is_none()) {
            client.authentication = ClientAuthentication::Public;
            let expected = "a confidential client";
            let refused = IdentityError::InvalidField {
                field: "rotate_secret",
                expected,
            };
            return if rotate {
                Err(refused.into())
            } else {
                Ok(None)
            };
        }
        if before.is_some() && !rotate {
            return Ok(None);
        }
        let secret = self.new_secret()?;
        let expires_at = self.ports.clock.now().plus(OVERLAP);
        client.authentication = ClientAuthentication::Confidential {
            current: SecretHash::of(&secret),
            previous: before.map(|hash| ExpiringSecret { hash, expires_at }),
        };
        Ok(Some(secret))
    }

    /// Drops a client and ends its sessions; [`IdentityError::NotFound`] if it does not exist.
    pub async fn drop_client(&self, database: &str, id: &str) -> Result<()> {
        let client = self.client(database, id).await?;
        if !self
            .ports
            .store
            .delete_client(id, self.ports.clock.now())
            .await?
        {
            return Err(IdentityError::NotFound("client").into());
        }
        self.audit_client(AuditKind::ClientDropped, &client).await;
        Ok(())
    }

    async fn audit_client(&self, kind: AuditKind, client: &Client) {
        let event = self.ports.event(kind, client.database.as_deref());
        let event = event
            .with_client(Some(&client.id))
            .with_acting_user(self.actor.clone())
            .with_address(self.address);
        self.ports.audit(event).await;
    }
}
