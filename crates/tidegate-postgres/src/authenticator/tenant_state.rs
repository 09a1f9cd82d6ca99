//! The cached decision whether the users of a database share connections.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use tidegate_sql::{DatabaseName, Error, RoleName};

use super::Objection;
use super::decide::{AuthenticatorMember, DecisionOutcome, DecisionQuery};

/// The delay before the database is queried again after a decision has failed.
const RETRY: Duration = Duration::from_secs(1);
/// A database without shared connections is queried again after this time, even if no change was
/// reported.
const BACKSTOP: Duration = Duration::from_secs(30);
/// How long a refused login of an authenticator is reported. Requests of the authenticator's users
/// try the login again, and another refusal extends the report. After a change of the
/// authenticator's role a new decision is made, which ends the report.
const REFUSAL: Duration = Duration::from_mins(5);

/// The cached decision about one database, and the lock under which it is made.
#[derive(Default)]
pub(super) struct TenantState {
    cached: RwLock<Option<Arc<CachedDecision>>>,
    invalidations: AtomicU64,
    /// Whether a request has needed the decision since the previous call of
    /// [`TenantState::take_used`].
    used: AtomicBool,
    /// Whether roles have changed since the decision. If so, the next request makes a new decision.
    expired: AtomicBool,
    /// Held by the task that queries the database. Other tasks wait for the lock and share the
    /// result.
    deciding: tokio::sync::Mutex<()>,
}

/// The decision whether the users of a database share connections.
pub(super) struct CachedDecision {
    /// The reasons for which connections are not shared; empty if they are shared.
    objections: Vec<Objection>,
    /// Entries for authenticators that cannot be used or are missing. The users of such an
    /// authenticator log in as themselves.
    unusable: Vec<Objection>,
    /// The authenticator whose login PostgreSQL refused most recently, and the time of the refusal;
    /// `None` if no login was refused.
    refused: Arc<Mutex<Option<(RoleName, Instant)>>>,
    /// Whether PostgreSQL was unavailable, so that no decision could be made.
    unavailable: bool,
    members: Arc<HashMap<RoleName, Membership>>,
    /// The value of [`TenantState::invalidations`] when the decision was made.
    invalidations: u64,
    /// When the decision expires; `None` if it is valid until it is invalidated.
    until: Option<Instant>,
    /// Whether the decision was renewed although a definition may have changed. A change that
    /// inserts no objection does not make sharing unsafe, but it may affect which users have an
    /// authenticator.
    outdated: bool,
}

/// The authenticator of a user.
#[derive(Clone)]
struct Membership {
    authenticator: RoleName,
    /// The time from which the user may no longer log in; `None` if there is no limit.
    expires: Option<Instant>,
}

impl CachedDecision {
    pub(super) fn authenticator(&self, role: &RoleName) -> Option<RoleName> {
        let membership = self.members.get(role)?;
        let valid = membership
            .expires
            .is_none_or(|expires| Instant::now() < expires);
        valid.then(|| membership.authenticator.clone())
    }

    fn shares(&self) -> bool {
        self.objections.is_empty()
    }

    /// The reasons for which some or all users do not share connections; empty if all users share
    /// them.
    pub(super) fn reasons(&self) -> Vec<Objection> {
        let refused = self.refused.lock().clone();
        let refused = refused.filter(|(_, at)| at.elapsed() < REFUSAL);
        let refused = refused.map(|(role, _)| Objection {
            reason: format!("PostgreSQL refuses the login of the authenticator {role}"),
            remedy: String::new(),
        });
        let known = self.objections.iter().chain(&self.unusable).cloned();
        known.chain(refused).collect()
    }

    pub(super) fn note_refused_login(&self, authenticator: &RoleName) {
        *self.refused.lock() = Some((authenticator.clone(), Instant::now()));
    }
}

impl TenantState {
    /// The cached decision, if it is valid.
    pub(super) fn fresh(&self) -> Option<Arc<CachedDecision>> {
        let cached = self.cached.read().clone()?;
        let in_time = cached.until.is_none_or(|until| Instant::now() < until);
        (in_time
            && !self.is_expired()
            && cached.invalidations == self.invalidations.load(Ordering::Acquire))
        .then_some(cached)
    }

    /// The cached decision, valid or not.
    pub(super) fn cached(&self) -> Option<Arc<CachedDecision>> {
        self.cached.read().clone()
    }

    /// Whether a changed definition may affect which users have an authenticator.
    pub(super) fn is_outdated(&self) -> bool {
        self.cached().is_some_and(|cached| cached.outdated)
    }

    pub(super) fn invalidate(&self) {
        self.invalidations.fetch_add(1, Ordering::AcqRel);
    }

    /// Records that a request needs the decision.
    pub(super) fn note_use(&self) {
        // The flag is read first. If every request of a tenant wrote to it, the processors would
        // contend for the cache line.
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
    }

    /// Returns whether a request has needed the decision since the previous call.
    pub(super) fn take_used(&self) -> bool {
        self.used.swap(false, Ordering::Relaxed)
    }

    /// Marks the decision as expired, so that the next request makes a new one.
    pub(super) fn expire(&self) {
        self.expired.store(true, Ordering::Release);
    }

    fn is_expired(&self) -> bool {
        self.expired.load(Ordering::Acquire)
    }

    /// Returns a valid decision. Makes a new one, unless another task has just done so.
    pub(super) async fn decide_if_stale(&self, query: &DecisionQuery<'_>) -> Arc<CachedDecision> {
        let _deciding = self.deciding.lock().await;
        if let Some(cached) = self.fresh() {
            return cached;
        }
        let invalidations = self.invalidations.load(Ordering::Acquire);
        // If no objection is stored, no changed definition has made sharing unsafe. The old
        // decision is then renewed.
        if let Some(cached) = self.cached().filter(|cached| cached.shares())
            && !self.is_expired()
            && query.is_undisputed().await.unwrap_or(false)
        {
            return self.keep(query.database, cached.renewed(invalidations));
        }
        self.query(query, invalidations).await
    }

    /// Makes a new decision. The cached one stays valid until then.
    pub(super) async fn decide_now(&self, query: &DecisionQuery<'_>) {
        let _deciding = self.deciding.lock().await;
        let invalidations = self.invalidations.load(Ordering::Acquire);
        self.query(query, invalidations).await;
    }

    /// Adds plain users to the members of the cached decision. Makes a new decision if the users
    /// cannot be read. Does nothing if the decision is against shared connections.
    pub(super) async fn add(&self, query: &DecisionQuery<'_>, users: &[String]) {
        let _deciding = self.deciding.lock().await;
        let Some(cached) = self.cached().filter(|cached| cached.shares()) else {
            // Connections are not shared, so the decision does not depend on these users.
            return;
        };
        match query.members(users).await {
            Ok(members) => {
                let mut all = HashMap::clone(&cached.members);
                all.extend(index(members));
                self.keep(query.database, cached.with_members(all));
            }
            Err(error) => {
                tracing::debug!(database = %query.database, %error, "new users could not be read; deciding again");
                self.query(query, self.invalidations.load(Ordering::Acquire))
                    .await;
            }
        }
    }

    async fn query(&self, query: &DecisionQuery<'_>, invalidations: u64) -> Arc<CachedDecision> {
        self.expired.store(false, Ordering::Release);
        let (outcome, retry, unavailable) = match query.decide().await {
            Ok(outcome) => (outcome, BACKSTOP, false),
            Err(error) => {
                let objection = Objection {
                    reason: error.to_string(),
                    remedy: String::new(),
                };
                let unavailable = matches!(error, Error::Unavailable { .. });
                (DecisionOutcome::against(objection), RETRY, unavailable)
            }
        };
        let shares = outcome.objections.is_empty();
        let members = if shares { outcome.members } else { Vec::new() };
        self.keep(
            query.database,
            CachedDecision {
                objections: outcome.objections,
                unusable: outcome.unusable,
                refused: Arc::default(),
                unavailable,
                members: Arc::new(index(members)),
                invalidations,
                until: (!shares).then(|| Instant::now() + retry),
                outdated: false,
            },
        )
    }

    fn keep(&self, database: &DatabaseName, cached: CachedDecision) -> Arc<CachedDecision> {
        let cached = Arc::new(cached);
        let before = self.cached.write().replace(cached.clone());
        log_change(database, before.as_deref(), &cached);
        cached
    }
}

impl CachedDecision {
    /// The same decision with other `members`.
    fn with_members(&self, members: HashMap<RoleName, Membership>) -> Self {
        Self {
            objections: Vec::new(),
            unusable: self.unusable.clone(),
            refused: self.refused.clone(),
            unavailable: false,
            members: Arc::new(members),
            invalidations: self.invalidations,
            until: self.until,
            outdated: self.outdated,
        }
    }

    /// The same decision, marked as outdated. It is valid while [`TenantState::invalidations`]
    /// equals `invalidations`.
    fn renewed(&self, invalidations: u64) -> Self {
        Self {
            objections: Vec::new(),
            unusable: self.unusable.clone(),
            refused: self.refused.clone(),
            unavailable: false,
            members: self.members.clone(),
            invalidations,
            until: None,
            outdated: true,
        }
    }
}

fn index(members: Vec<AuthenticatorMember>) -> HashMap<RoleName, Membership> {
    let mut names: HashMap<String, RoleName> = HashMap::new();
    let mut index = HashMap::with_capacity(members.len());
    let now = Instant::now();
    for member in members {
        let authenticator = names
            .entry(member.authenticator)
            .or_insert_with_key(|name| RoleName::new(name))
            .clone();
        let expires = member.valid_for.map(|valid_for| now + valid_for);
        let membership = Membership {
            authenticator,
            expires,
        };
        index.insert(RoleName::new(member.user), membership);
    }
    index
}

/// Logs a decision that differs from the previous one.
fn log_change(database: &DatabaseName, before: Option<&CachedDecision>, cached: &CachedDecision) {
    // Nothing was decided during an outage, and other modules log outages.
    if cached.unavailable {
        return;
    }
    let before = before.filter(|before| !before.unavailable);
    log_unusable(database, before, cached);
    match (
        before.and_then(|before| before.objections.first()),
        cached.objections.first(),
    ) {
        (before, Some(objection)) if before != Some(objection) => tracing::warn!(
            %database,
            reason = objection.reason,
            sql = objection.remedy,
            "shared connections are off for this tenant; each user logs in on its own, which is slower with many users"
        ),
        (Some(_), None) => tracing::info!(%database, "shared connections are on again"),
        _ => {}
    }
}

/// Logs authenticators that have become unusable.
fn log_unusable(database: &DatabaseName, before: Option<&CachedDecision>, cached: &CachedDecision) {
    let known = before.map_or(&[][..], |before| &before.unusable);
    for unusable in cached.unusable.iter().filter(|one| !known.contains(one)) {
        tracing::warn!(
            %database,
            reason = unusable.reason,
            "not all users of this tenant share connections; some log in on their own"
        );
    }
}
