//! The issuers of all tenants, in memory. The issuer of a token is found without I/O, so that
//! tokens of unknown issuers cause no requests.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use tidegate_identity::StoreError;
use tokio::sync::Mutex;

use crate::{DocumentClient, ExternalIssuerStore, Issuer, IssuerRecord, UnverifiedToken};

/// The issuers of all tenants, cached in this node. Share it in an `Arc`.
pub struct IssuerRegistry {
    store: Arc<dyn ExternalIssuerStore>,
    client: DocumentClient,
    known: RwLock<Arc<KnownIssuers>>,
    /// Serialises calls of [`IssuerRegistry::reload`].
    reload: Mutex<()>,
}

/// The issuers by their URL, the oldest first, as they were when the records in the store had
/// this `version`. `version` is `None` before the first load.
#[derive(Default)]
struct KnownIssuers {
    version: Option<String>,
    by_url: HashMap<String, Vec<Arc<TenantIssuer>>>,
}

/// An issuer of a tenant.
#[derive(Debug)]
pub struct TenantIssuer {
    record: IssuerRecord,
    issuer: Arc<Issuer>,
    is_retired: AtomicBool,
}

/// The reason why no issuer was selected to verify a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// No tenant accepts tokens of this issuer. If the request names a tenant, only the issuers of
    /// this tenant are considered.
    #[error("its issuer is not one that the database accepts")]
    Unknown,
    /// The issuer is known, but the token is for none of the expected audiences.
    #[error("it is for another audience")]
    Audience,
    /// Several tenants accept tokens of this issuer for this audience.
    #[error(
        "several databases accept tokens of its issuer for its audience; name one in the header `Tidegate-Database`"
    )]
    Ambiguous,
}

impl TenantIssuer {
    /// The record of the issuer.
    pub fn record(&self) -> &IssuerRecord {
        &self.record
    }

    /// The issuer, which verifies tokens.
    pub fn issuer(&self) -> &Issuer {
        &self.issuer
    }

    /// Whether the record, or another record with the same URL, has changed since this issuer was
    /// selected. If so, the issuer of a token must be selected again.
    pub fn is_retired(&self) -> bool {
        self.is_retired.load(Ordering::Acquire)
    }
}

impl IssuerRegistry {
    /// A registry that is empty until [`reload`](Self::reload).
    pub fn new(store: Arc<dyn ExternalIssuerStore>, client: DocumentClient) -> Self {
        Self {
            store,
            client,
            known: RwLock::default(),
            reload: Mutex::default(),
        }
    }

    /// The storage of the records.
    pub fn store(&self) -> &dyn ExternalIssuerStore {
        &*self.store
    }

    /// Selects the issuer that must verify a token, by the token's issuer URL and audience. If
    /// `database` is given, only issuers of this tenant are considered. Otherwise all issuers that
    /// match must belong to the same tenant. If several issuers of the tenant match, the oldest is
    /// selected: an issuer that is added later never takes over tokens of an older one. No claim of
    /// the token has been verified yet.
    pub fn select(
        &self,
        token: &UnverifiedToken,
        database: Option<&str>,
    ) -> Result<Arc<TenantIssuer>, SelectionError> {
        let known = self.known();
        let of_url = known.by_url.get(&token.issuer);
        let mut candidates = of_url
            .into_iter()
            .flatten()
            .filter(|known| database.is_none_or(|database| known.record.database == database))
            .peekable();
        if candidates.peek().is_none() {
            return Err(SelectionError::Unknown);
        }
        let mut candidates =
            candidates.filter(|known| known.issuer.accepts_audience(&token.claims));
        let first = candidates.next().ok_or(SelectionError::Audience)?;
        if candidates.any(|other| other.record.database != first.record.database) {
            return Err(SelectionError::Ambiguous);
        }
        Ok(Arc::clone(first))
    }

    /// The kind of failure of this node's most recent request for the keys of an issuer; `None` if
    /// it succeeded, or if no request has ended since the record was changed.
    pub fn problem(&self, record: &IssuerRecord) -> Option<String> {
        let known = self.known();
        let of_url = known.by_url.get(&record.settings.issuer)?;
        let same = of_url.iter().find(|known| known.record == *record)?;
        same.issuer.failure().map(|failure| failure.kind())
    }

    /// Reads the records again if they have changed. Issuers whose records are unchanged keep their
    /// keys.
    pub async fn reload(&self) -> Result<(), StoreError> {
        let _guard = self.reload.lock().await;
        // The version is read before the records. If the records change between the two reads, the
        // cached version is older than the cached records, and the next call reads the records
        // again.
        let version = self.store.issuers_version().await?;
        let known = self.known();
        if known.version.as_ref() == Some(&version) {
            return Ok(());
        }
        let mut by_url: HashMap<String, Vec<IssuerRecord>> = HashMap::new();
        for record in self.store.all_issuers().await? {
            let url = record.settings.issuer.clone();
            by_url.entry(url).or_default().push(record);
        }
        let next = KnownIssuers {
            version: Some(version),
            by_url: by_url
                .into_iter()
                .map(|(url, records)| {
                    let issuers = self.issuers(records, known.by_url.get(&url));
                    (url, issuers)
                })
                .collect(),
        };
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(next);
        retire(&known, &self.known());
        Ok(())
    }

    /// Creates the issuers of `records`, which have the same URL. `before` are the issuers with
    /// this URL before the reload. Issuers of unchanged records are reused, with their keys.
    fn issuers(
        &self,
        records: Vec<IssuerRecord>,
        before: Option<&Vec<Arc<TenantIssuer>>>,
    ) -> Vec<Arc<TenantIssuer>> {
        let before = before.map_or(&[][..], Vec::as_slice);
        if before.iter().map(|known| &known.record).eq(&records) {
            return before.to_vec();
        }
        let make = |record: IssuerRecord| {
            let same = before.iter().find(|known| known.record == record);
            let issuer = if let Some(known) = same {
                Ok(Arc::clone(&known.issuer))
            } else {
                warn_of_unknown_members(&record);
                Issuer::with_client(record.settings.clone(), &self.client).map(Arc::new)
            };
            match issuer {
                Ok(issuer) => Some(Arc::new(TenantIssuer {
                    record,
                    issuer,
                    is_retired: AtomicBool::new(false),
                })),
                Err(error) => {
                    let IssuerRecord { database, name, .. } = record;
                    tracing::warn!(database, name, %error, "the tokens of an issuer are refused");
                    None
                }
            }
        };
        records.into_iter().filter_map(make).collect()
    }

    fn known(&self) -> Arc<KnownIssuers> {
        Arc::clone(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Logs the settings that only a later release knows. They have no effect on this node.
fn warn_of_unknown_members(record: &IssuerRecord) {
    let unknown: Vec<_> = record.settings.unknown.keys().collect();
    if !unknown.is_empty() {
        let IssuerRecord { database, name, .. } = record;
        tracing::warn!(
            database,
            name,
            ?unknown,
            "settings of an issuer are ignored"
        );
    }
}

/// Marks the issuers of `before` that are not in `after` as retired.
fn retire(before: &KnownIssuers, after: &KnownIssuers) {
    for (url, issuers) in &before.by_url {
        let still = after.by_url.get(url).map_or(&[][..], Vec::as_slice);
        for issuer in issuers {
            if !still.iter().any(|other| Arc::ptr_eq(other, issuer)) {
                issuer.is_retired.store(true, Ordering::Release);
            }
        }
    }
}

impl fmt::Debug for IssuerRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IssuerRegistry").finish_non_exhaustive()
    }
}
