//! What a node knows of one database.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use tidegate_sql::{DatabaseName, RoleName};

use super::Objection;
use super::decide::{Member, Source};

/// After a question that failed, the database is not asked again for so long.
const RETRY: Duration = Duration::from_secs(1);
/// A database in which connections are not shared is asked again after so long, also when nothing
/// tells that anything has changed.
const BACKSTOP: Duration = Duration::from_secs(30);

/// One database.
#[derive(Default)]
pub(super) struct Place {
    known: RwLock<Option<Arc<Known>>>,
    /// Counts the reasons to decide again.
    doubts: AtomicU64,
    /// Who asks holds this; the others share the answer.
    asking: tokio::sync::Mutex<()>,
}

/// An answer of the database.
pub(super) struct Known {
    /// Why connections are not shared; empty when they are.
    pub(super) objections: Vec<Objection>,
    members: Arc<HashMap<RoleName, Membership>>,
    /// The count of doubts that the answer settles.
    doubts: u64,
    /// When it must be asked again.
    until: Option<Instant>,
    /// Whether something was defined since that is no objection. It may change who is a member.
    outdated: bool,
}

/// A user's place among the authenticators.
#[derive(Clone)]
struct Membership {
    authenticator: RoleName,
    /// When the user may not log in any more.
    expires: Option<Instant>,
}

impl Known {
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

    /// The authenticators that users have.
    fn authenticators(&self) -> HashSet<&RoleName> {
        let members = self.members.values();
        members.map(|member| &member.authenticator).collect()
    }
}

impl Place {
    /// The answer, if nothing speaks for asking again.
    pub(super) fn fresh(&self) -> Option<Arc<Known>> {
        let known = self.known.read().clone()?;
        let in_time = known.until.is_none_or(|until| Instant::now() < until);
        (in_time && known.doubts == self.doubts.load(Ordering::Acquire)).then_some(known)
    }

    /// The last answer.
    pub(super) fn known(&self) -> Option<Arc<Known>> {
        self.known.read().clone()
    }

    /// Whether the members may have changed since the last answer.
    pub(super) fn is_outdated(&self) -> bool {
        self.known().is_some_and(|known| known.outdated)
    }

    pub(super) fn distrust(&self) {
        self.doubts.fetch_add(1, Ordering::AcqRel);
    }

    /// Asks the database, unless another caller has done so meanwhile.
    pub(super) async fn settle(&self, source: &Source<'_>) -> Arc<Known> {
        let _asking = self.asking.lock().await;
        if let Some(known) = self.fresh() {
            return known;
        }
        let doubts = self.doubts.load(Ordering::Acquire);
        // A doubt without an objection changes nothing.
        if let Some(known) = self.known().filter(|known| known.shares())
            && source.is_undisputed().await.unwrap_or(false)
        {
            return self.keep(source.database, known.again(doubts));
        }
        self.ask(source, doubts).await
    }

    /// Asks the database in any case; the last answer counts until the new one is there.
    pub(super) async fn renew(&self, source: &Source<'_>) {
        let _asking = self.asking.lock().await;
        let doubts = self.doubts.load(Ordering::Acquire);
        self.ask(source, doubts).await;
    }

    /// Adds plain users, to which the last decision applies. Decides again where that fails.
    pub(super) async fn add(&self, source: &Source<'_>, users: &[String]) {
        let _asking = self.asking.lock().await;
        let Some(known) = self.known().filter(|known| known.shares()) else {
            // Nothing is shared, with them or without.
            return;
        };
        match source.members(users).await {
            Ok(members) => {
                let mut all = HashMap::clone(&known.members);
                all.extend(index(members));
                self.keep(source.database, known.with(all));
            }
            Err(error) => {
                tracing::debug!(database = %source.database, %error, "new users were not read");
                self.ask(source, self.doubts.load(Ordering::Acquire)).await;
            }
        }
    }

    async fn ask(&self, source: &Source<'_>, doubts: u64) -> Arc<Known> {
        let (objections, members, until) = match source.decide().await {
            Ok((objections, members)) => {
                let until = (!objections.is_empty()).then(|| Instant::now() + BACKSTOP);
                (objections, members, until)
            }
            Err(error) => {
                let objection = Objection {
                    reason: error.to_string(),
                    remedy: String::new(),
                };
                let until = Some(Instant::now() + RETRY);
                (vec![objection], Vec::new(), until)
            }
        };
        let members = if objections.is_empty() {
            members
        } else {
            Vec::new()
        };
        self.keep(
            source.database,
            Known {
                objections,
                members: Arc::new(index(members)),
                doubts,
                until,
                outdated: false,
            },
        )
    }

    fn keep(&self, database: &DatabaseName, known: Known) -> Arc<Known> {
        let known = Arc::new(known);
        let before = self.known.write().replace(known.clone());
        tell(database, before.as_deref(), &known);
        known
    }
}

impl Known {
    /// The same answer with other members.
    fn with(&self, members: HashMap<RoleName, Membership>) -> Self {
        Self {
            objections: Vec::new(),
            members: Arc::new(members),
            doubts: self.doubts,
            until: self.until,
            outdated: self.outdated,
        }
    }

    /// The same answer, for more doubts.
    fn again(&self, doubts: u64) -> Self {
        Self {
            objections: Vec::new(),
            members: self.members.clone(),
            doubts,
            until: None,
            outdated: true,
        }
    }
}

fn index(members: Vec<Member>) -> HashMap<RoleName, Membership> {
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

/// Logs a decision that differs from the one before.
fn tell(database: &DatabaseName, before: Option<&Known>, known: &Known) {
    match (
        before.and_then(|before| before.objections.first()),
        known.objections.first(),
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
    if let Some(before) = before.filter(|before| before.shares() && known.shares()) {
        let now = known.authenticators();
        for authenticator in before.authenticators().difference(&now) {
            tracing::warn!(
                %database,
                %authenticator,
                "an authenticator was dropped or locked, or lacks a right, and its users log in on \
                 their own; `tidegate doctor` prints what sets it right"
            );
        }
    }
}
