//! The management of issuers by the owner of a tenant and by the operator.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use tidegate_identity::{AuditEvent, AuditKind, Ports, StoreError, UserName};

use crate::{
    ClaimPath, ExternalIssuerStore, GroupLogins, IssuerRecord, IssuerSettings, NamedRole, Network,
    SettingsError, SignatureAlgorithm,
};

/// The maximum number of issuers of one tenant.
const MAX_ISSUERS: usize = 20;
/// The maximum length of an issuer's name, in bytes.
const MAX_NAME: usize = 64;
/// A change is attempted at most this many times. An attempt fails if another request changes the
/// issuer at the same time.
const MAX_TRIES: u32 = 20;

/// Changes to the settings of an issuer; `None` leaves a member unchanged, `Some(None)` removes it.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "the members are those of IssuerSettings")]
pub struct IssuerChange {
    pub issuer: Option<String>,
    pub jwks_url: Option<Option<String>>,
    pub audience: Option<Vec<String>>,
    pub audience_claim: Option<ClaimPath>,
    pub algorithms: Option<Vec<SignatureAlgorithm>>,
    pub user_claim: Option<Option<ClaimPath>>,
    pub role_claim: Option<Option<ClaimPath>>,
    pub default_role: Option<Option<String>>,
    pub create_members: Option<bool>,
    pub claims: Option<Option<Vec<ClaimPath>>>,
    pub clock_skew: Option<u64>,
}

impl IssuerChange {
    /// Overwrites the members of `settings` for which the change has a value.
    pub fn apply(self, settings: &mut IssuerSettings) {
        fn set<T>(member: &mut T, value: Option<T>) {
            if let Some(value) = value {
                *member = value;
            }
        }
        set(&mut settings.issuer, self.issuer);
        set(&mut settings.jwks_url, self.jwks_url);
        set(&mut settings.audience, self.audience);
        set(&mut settings.audience_claim, self.audience_claim);
        set(&mut settings.algorithms, self.algorithms);
        set(&mut settings.user_claim, self.user_claim);
        set(&mut settings.role_claim, self.role_claim);
        set(&mut settings.default_role, self.default_role);
        set(&mut settings.create_members, self.create_members);
        set(&mut settings.claims, self.claims);
        set(&mut settings.clock_skew, self.clock_skew);
    }
}

/// Why an issuer cannot be created, changed or found.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// The name is not allowed.
    #[error("`name`: expected 1 to 64 characters of A-Z a-z 0-9 _ . -, not . or ..")]
    Name,
    /// The settings are not allowed.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The default role is the owner, or is not a valid name of a user or group.
    #[error("`default_role`: expected the name of a user or group of the database, not its owner")]
    DefaultRole,
    /// The tenant has the maximum number of issuers.
    #[error("the database has 20 issuers already")]
    TooMany,
    /// The tenant has an issuer of this name.
    #[error("the issuer {0} exists already")]
    Taken(String),
    /// Another issuer of the tenant, with this name, already accepts the same tokens.
    #[error(
        "the issuer {0} accepts tokens of the same `issuer` for the same `audience` already; change {0}, or choose another audience"
    )]
    Overlap(String),
    /// The tenant has no issuer of this name.
    #[error("there is no issuer {0}")]
    NotFound(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The issuers of tenants, for the management API and the command line. The store notifies all
/// nodes of changes.
#[derive(Clone)]
pub struct IssuerDirectory {
    issuers: Arc<dyn ExternalIssuerStore>,
    groups: Arc<dyn GroupLogins>,
    ports: Ports,
    network: Network,
    actor: Option<String>,
    address: Option<IpAddr>,
}

impl IssuerDirectory {
    /// A directory in the store `issuers`. `network` limits the addresses from which keys may be
    /// loaded.
    pub fn new(
        issuers: Arc<dyn ExternalIssuerStore>,
        groups: Arc<dyn GroupLogins>,
        ports: Ports,
        network: Network,
    ) -> Self {
        Self {
            issuers,
            groups,
            ports,
            network,
            actor: None,
            address: None,
        }
    }

    /// The same directory, but its audit events name the user `actor` and the `address` of the
    /// request instead of the operator.
    #[must_use]
    pub fn acting_as(&self, actor: &str, address: Option<IpAddr>) -> Self {
        Self {
            actor: Some(actor.to_owned()),
            address,
            ..self.clone()
        }
    }

    /// The issuers of a tenant, sorted by name. Issuers whose settings this release of the program
    /// cannot read are left out.
    pub async fn list(&self, database: &str) -> Result<Vec<IssuerRecord>, DirectoryError> {
        Ok(self.issuers.issuers(database).await?)
    }

    /// An issuer of a tenant; [`DirectoryError::NotFound`] if the tenant has no issuer of this
    /// name.
    pub async fn find(&self, database: &str, name: &str) -> Result<IssuerRecord, DirectoryError> {
        let all = self.list(database).await?;
        let found = all.into_iter().find(|record| record.name == name);
        found.ok_or_else(|| DirectoryError::NotFound(name.to_owned()))
    }

    /// Fails with [`DirectoryError::NotFound`] unless the tenant has an issuer of this name. An
    /// issuer whose settings this release cannot read counts too.
    pub async fn require(&self, database: &str, name: &str) -> Result<(), DirectoryError> {
        let names = self.issuers.issuer_names(database).await?;
        if names.iter().any(|known| known == name) {
            Ok(())
        } else {
            Err(DirectoryError::NotFound(name.to_owned()))
        }
    }

    /// Adds an issuer. If the default role in the settings is not the name of a user, it is treated
    /// as the name of a group. The group is then created if it does not exist, and its role is
    /// enabled to log in.
    pub async fn create(
        &self,
        database: &str,
        name: &str,
        settings: IssuerSettings,
    ) -> Result<IssuerRecord, DirectoryError> {
        check_name(name)?;
        self.check(database, &settings).await?;
        if self.issuers.issuer_names(database).await?.len() >= MAX_ISSUERS {
            return Err(DirectoryError::TooMany);
        }
        let record = IssuerRecord {
            database: database.to_owned(),
            name: name.to_owned(),
            settings,
            created_at: self.ports.clock.now(),
        };
        self.require_no_overlap(&record).await?;
        if !self.issuers.insert_issuer(&record).await? {
            return Err(DirectoryError::Taken(name.to_owned()));
        }
        self.audit(AuditKind::IssuerCreated, database, name).await;
        Ok(record)
    }

    /// Changes the settings of an issuer. A default role is handled as in [`create`](Self::create).
    pub async fn change(
        &self,
        database: &str,
        name: &str,
        change: IssuerChange,
    ) -> Result<IssuerRecord, DirectoryError> {
        for _ in 0..MAX_TRIES {
            let read = self.find(database, name).await?;
            let mut record = read.clone();
            change.clone().apply(&mut record.settings);
            self.check(database, &record.settings).await?;
            // An overlap that was stored by an earlier release does not prevent other changes.
            if record.settings.accepted() != read.settings.accepted() {
                self.require_no_overlap(&record).await?;
            }
            if self.issuers.update_issuer(&read, &record).await? {
                self.audit(AuditKind::IssuerChanged, database, name).await;
                return Ok(record);
            }
        }
        let reason = "too many concurrent changes of the issuer";
        Err(StoreError::Unavailable(reason.into()).into())
    }

    /// Drops an issuer without reading its settings, which a later release may have stored. All
    /// nodes refuse the issuer's tokens within seconds.
    pub async fn drop_issuer(&self, database: &str, name: &str) -> Result<(), DirectoryError> {
        if !self.issuers.delete_issuer(database, name).await? {
            return Err(DirectoryError::NotFound(name.to_owned()));
        }
        self.audit(AuditKind::IssuerDropped, database, name).await;
        Ok(())
    }

    async fn check(&self, database: &str, settings: &IssuerSettings) -> Result<(), DirectoryError> {
        settings.check(self.network)?;
        let Some(role) = &settings.default_role else {
            return Ok(());
        };
        if role == database || UserName::parse(role).is_err() {
            return Err(DirectoryError::DefaultRole);
        }
        let names = std::slice::from_ref(role);
        match self.issuers.named_role(database, names).await? {
            Some(NamedRole::User(_)) => Ok(()),
            Some(NamedRole::Group { .. }) | None => Ok(self.groups.enable(database, role).await?),
        }
    }

    /// Refuses a record if another record of the tenant accepts the same tokens, because the two
    /// records can give one person different ids and groups. Concurrent requests can still store
    /// two such records. Then only the older one is used for these tokens.
    async fn require_no_overlap(&self, record: &IssuerRecord) -> Result<(), DirectoryError> {
        let all = self.list(&record.database).await?;
        let other = all
            .into_iter()
            .find(|other| other.name != record.name && other.settings.overlaps(&record.settings));
        other.map_or(Ok(()), |other| Err(DirectoryError::Overlap(other.name)))
    }

    async fn audit(&self, kind: AuditKind, database: &str, name: &str) {
        let now = self.ports.clock.now();
        let event = AuditEvent::new(now, kind, Some(database))
            .with_detail(name)
            .with_acting_user(self.actor.clone())
            .with_address(self.address);
        self.ports.store.append_audit_or_log(&[event]).await;
    }
}

impl fmt::Debug for IssuerDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IssuerDirectory")
            .field("network", &self.network)
            .finish_non_exhaustive()
    }
}

fn check_name(name: &str) -> Result<(), DirectoryError> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"_.-".contains(&b);
    let length = 1..=MAX_NAME;
    if length.contains(&name.len()) && name.bytes().all(allowed) && !matches!(name, "." | "..") {
        Ok(())
    } else {
        Err(DirectoryError::Name)
    }
}
