//! Clients: registered, listed, given new secrets, dropped.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::Directory;
use crate::{
    AuditKind, Client, ClientAuthentication, Error, ExpiringSecret, GrantSet, Result, Secret,
    SecretHash, TenantName, Written, random, redirect,
};

/// How long a secret works after it was replaced.
const OVERLAP: Duration = Duration::from_hours(24);
const LONGEST_ID: usize = 64;
const LONGEST_TEXT: usize = 1024;

/// A client to register. [`NewClient::new`] has the defaults of the wire.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are the flags of the wire"
)]
pub struct NewClient {
    /// The tenant that it belongs to.
    pub database: TenantName,
    /// Its id: 1 to 64 characters of `[A-Za-z0-9_.-]`; made if absent.
    pub id: Option<String>,
    /// The name that people see.
    pub name: String,
    /// Where the browser may be sent back to; at least one.
    pub redirect_uris: Vec<String>,
    /// The application's own page.
    pub homepage: Option<String>,
    /// What the application is.
    pub description: Option<String>,
    /// Whether it cannot keep a secret.
    pub public: bool,
    /// The secret of a confidential client; 256 bits are made if absent.
    pub secret: Option<Secret>,
    /// Whether a person is asked to consent.
    pub confirm: bool,
    /// Whether signing in needs a second factor.
    pub two_factor: bool,
    /// Whether people may sign up.
    pub allow_signup: bool,
    /// Whether people may sign up with an account elsewhere.
    pub social_signup: bool,
    /// The grants that it may use.
    pub grants: GrantSet,
}

impl NewClient {
    /// A confidential client with a made id and secret, all grants, consent asked, no sign-up.
    pub fn new(database: TenantName, name: &str, redirect_uris: Vec<String>) -> Self {
        Self {
            database,
            id: None,
            name: name.to_owned(),
            redirect_uris,
            homepage: None,
            description: None,
            public: false,
            secret: None,
            confirm: true,
            two_factor: false,
            allow_signup: false,
            social_signup: false,
            grants: GrantSet::All,
        }
    }
}

/// A client that was registered.
#[derive(Clone, Debug)]
pub struct CreatedClient {
    /// The record.
    pub client: Client,
    /// The secret of a confidential client, to be shown this once.
    pub secret: Option<Secret>,
}

impl Directory {
    /// Registers a client.
    ///
    /// [`Error::InvalidMember`] naming the member, [`Error::Taken`] when the id is.
    pub async fn create_client(&self, new: NewClient) -> Result<CreatedClient> {
        check(&new)?;
        let id = match &new.id {
            Some(id) => id.clone(),
            None => URL_SAFE_NO_PAD.encode(random::bytes::<16>(&*self.ports.random)?),
        };
        let secret = match (&new.secret, new.public) {
            (_, true) => None,
            (Some(secret), false) => Some(secret.clone()),
            (None, false) => Some(self.make_secret()?),
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
            database: new.database.to_string(),
            name: new.name,
            redirect_uris: new.redirect_uris,
            homepage: new.homepage,
            description: new.description,
            authentication,
            confirm: new.confirm,
            two_factor: new.two_factor,
            allow_signup: new.allow_signup,
            social_signup: new.social_signup,
            grants: new.grants,
            created_at: self.ports.clock.now(),
        };
        if self.ports.store.insert_client(&client).await? != Written::Done {
            return Err(Error::Taken("client"));
        }
        self.audit_client(AuditKind::ClientCreated, &client).await;
        Ok(CreatedClient { client, secret })
    }

    /// A tenant's clients, by id.
    pub async fn clients(&self, database: &str) -> Result<Vec<Client>> {
        Ok(self.ports.store.clients(database).await?)
    }

    /// A tenant's client; [`Error::NotFound`] also when it is another tenant's.
    pub async fn client(&self, database: &str, id: &str) -> Result<Client> {
        let client = self.ports.store.client(id).await?;
        client
            .filter(|client| client.database == database)
            .ok_or(Error::NotFound("client"))
    }

    /// Gives a confidential client a new secret. The one before works for another 24 hours, one
    /// before that no more.
    ///
    /// [`Error::NotFound`], [`Error::InvalidMember`] for a public client.
    pub async fn rotate_client_secret(&self, database: &str, id: &str) -> Result<Secret> {
        let mut client = self.client(database, id).await?;
        let ClientAuthentication::Confidential { current, .. } = client.authentication else {
            return Err(Error::InvalidMember {
                member: "rotate_secret",
                expected: "a confidential client",
            });
        };
        let secret = self.make_secret()?;
        let expires_at = self.ports.clock.now().plus(OVERLAP);
        client.authentication = ClientAuthentication::Confidential {
            current: SecretHash::of(&secret),
            previous: Some(ExpiringSecret {
                hash: current,
                expires_at,
            }),
        };
        if self.ports.store.update_client(&client).await? != Written::Done {
            return Err(Error::NotFound("client"));
        }
        self.audit_client(AuditKind::ClientSecretRotated, &client)
            .await;
        Ok(secret)
    }

    /// Drops a client and ends its sessions; [`Error::NotFound`].
    pub async fn drop_client(&self, database: &str, id: &str) -> Result<()> {
        let client = self.client(database, id).await?;
        if !self
            .ports
            .store
            .delete_client(id, self.ports.clock.now())
            .await?
        {
            return Err(Error::NotFound("client"));
        }
        self.audit_client(AuditKind::ClientDropped, &client).await;
        Ok(())
    }

    fn make_secret(&self) -> Result<Secret> {
        let bytes: [u8; 32] = random::bytes(&*self.ports.random)?;
        Ok(Secret::new(URL_SAFE_NO_PAD.encode(bytes)))
    }

    async fn audit_client(&self, kind: AuditKind, client: &Client) {
        self.ports
            .audit(self.event(kind, &client.database).of_client(&client.id))
            .await;
    }
}

fn check(new: &NewClient) -> Result<()> {
    let invalid = |member, expected| Err(Error::InvalidMember { member, expected });
    let short = |text: &str| !text.trim().is_empty() && text.len() <= LONGEST_TEXT;
    let id = |id: &str| {
        (1..=LONGEST_ID).contains(&id.len())
            && id
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
    };
    if !new.id.as_deref().is_none_or(id) {
        return invalid("id", "1 to 64 characters of A-Z a-z 0-9 _ . -");
    }
    if !short(&new.name) {
        return invalid("name", "a text of at most 1024 bytes");
    }
    if !new.homepage.as_deref().is_none_or(short) {
        return invalid("homepage", "a text of at most 1024 bytes");
    }
    if !new.description.as_deref().is_none_or(short) {
        return invalid("description", "a text of at most 1024 bytes");
    }
    if new.redirect_uris.is_empty() || !new.redirect_uris.iter().all(|uri| redirect::may_be(uri)) {
        return invalid(
            "redirect_uri",
            "at least one absolute address without a fragment",
        );
    }
    match &new.secret {
        Some(_) if new.public => invalid("secret", "no secret for a public client"),
        Some(secret) if !short(secret.expose()) => {
            invalid("secret", "a text of at most 1024 bytes")
        }
        _ => Ok(()),
    }
}
