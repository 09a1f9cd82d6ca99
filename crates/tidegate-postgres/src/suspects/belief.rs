//! How long suspects are believed, and who looks for them again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::RwLock;
use tidegate_sql::statement::UntrustedNames;
use tidegate_sql::{DatabaseName, Executor, QueryOptions, Result, Statement};
use tokio::time::{Instant, timeout};

use super::find::{self, find};
use super::load::Source;

/// After this time the database is asked again, if statements come.
const DUE: Duration = Duration::from_millis(400);
/// So long is believed what was found: a definition that came by another way counts after it.
const BELIEVED: Duration = Duration::from_secs(1);
/// Asking is followed by so many times as much rest.
const REST: u32 = 4;
/// The rest after a failure.
const FAILED: Duration = Duration::from_secs(1);
/// A caller waits so long for an answer. Without one its statement runs on the caller's own login.
const LEARNING: Duration = Duration::from_millis(500);
/// Asking ends within this time or fails.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is believed of a database's suspects.
#[derive(Debug, Default)]
pub(crate) struct Belief {
    found: RwLock<Found>,
    asking: AtomicBool,
    /// Held while a caller waits for the answer; the others share it.
    learning: tokio::sync::Mutex<()>,
    /// Counts the statements through this node that may have changed a definition.
    redefined: AtomicU64,
    /// How many of them run.
    redefining: AtomicU64,
}

#[derive(Debug, Default)]
struct Found {
    suspects: find::Found,
    fingerprint: String,
    /// Counts from 1, with each set of suspects.
    version: u64,
    /// What [`Belief::redefined`] was before the database was asked, and when that was.
    redefined: u64,
    asked: Option<Instant>,
    /// When it may be asked again.
    rested: Option<Instant>,
    /// When a caller waited and got no answer.
    failed: Option<Instant>,
}

/// Where the suspects of a statement stand that is kept prepared.
#[derive(Debug, Default)]
pub(crate) struct Verdict(AtomicU64);

/// A statement that may change a definition, from before it runs until it has ended: meanwhile,
/// and until the database was asked again, every read is suspect.
#[derive(Debug)]
pub(crate) struct Redefinition(Arc<Belief>);

impl Redefinition {
    pub(crate) fn begin(belief: &Arc<Belief>) -> Self {
        belief.redefining.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(belief))
    }
}

impl Drop for Redefinition {
    fn drop(&mut self) {
        self.0.redefined.fetch_add(1, Ordering::SeqCst);
        self.0.redefining.fetch_sub(1, Ordering::SeqCst);
        self.0.postpone();
    }
}

impl Belief {
    /// Whether a read or write whose text is harmless may run code of the database's own all the
    /// same. It may, as long as nothing is known.
    pub(crate) fn suspects(&self, statement: &Statement, verdict: &Verdict) -> bool {
        let found = self.found.read();
        if !self.believes(&found, Instant::now()) {
            return true;
        }
        let suspects = if statement.is_read() {
            &found.suspects.reads
        } else {
            &found.suspects.writes
        };
        !suspects.is_empty() && verdict.of(statement.text(), suspects, found.version)
    }

    /// Whether a statement may read under row level security, so that PostgreSQL plans it again
    /// whenever the role changes. `false` as long as that is not known.
    pub(crate) fn is_restricted(&self, statement: &Statement, verdict: &Verdict) -> bool {
        let found = self.found.read();
        let restricted = &found.suspects.restricted;
        !restricted.is_empty() && verdict.of(statement.text(), restricted, found.version)
    }

    /// Whether a statement calls no function that could hand a value of the caller's to SQL or to a
    /// setting. The database is asked first where nothing is known or a definition may have
    /// changed; one that is made elsewhere counts within a second.
    pub(crate) async fn may_call(
        self: &Arc<Self>,
        statement: &Statement,
        service: &Arc<dyn Executor>,
        database: &DatabaseName,
    ) -> bool {
        if self.redefining.load(Ordering::SeqCst) > 0 {
            return false;
        }
        if !self.is_known() {
            let learning = timeout(LEARNING, self.learn(service, database));
            if learning.await.is_err() {
                self.found.write().failed = Some(Instant::now());
                self.refresh(service, database);
            }
        }
        let found = self.found.read();
        self.believes(&found, Instant::now()) && !found.suspects.calls.are_in(statement.text())
    }

    /// Asks the database, unless another caller has or it did not answer a moment ago.
    async fn learn(&self, service: &Arc<dyn Executor>, database: &DatabaseName) {
        let _learning = self.learning.lock().await;
        let failed = self.found.read().failed;
        if self.is_known() || failed.is_some_and(|failed| failed.elapsed() < FAILED) {
            return;
        }
        if let Err(error) = self.ask(&**service, database).await {
            tracing::debug!(%database, %error, "functions are not known");
            self.found.write().failed = Some(Instant::now());
        }
    }

    fn is_known(&self) -> bool {
        self.believes(&self.found.read(), Instant::now())
    }

    fn believes(&self, found: &Found, now: Instant) -> bool {
        found.asked.is_some_and(|asked| now < asked + BELIEVED) && self.is_settled(found)
    }

    fn is_settled(&self, found: &Found) -> bool {
        self.redefining.load(Ordering::SeqCst) == 0
            && self.redefined.load(Ordering::SeqCst) == found.redefined
    }

    /// Lets the database answer first what the next requests need after a definition, and lets more
    /// definitions follow. Meanwhile every read is suspect, and followed by a reset.
    fn postpone(&self) {
        let now = Instant::now();
        let mut found = self.found.write();
        // Not again while it is postponed: definitions in a row must not put it off for ever.
        if found.rested.is_none_or(|rested| rested <= now) {
            found.rested = Some(now + DUE);
        }
    }

    /// Whether the database is to be asked, by whoever is told so.
    fn takes_turn(&self, now: Instant) -> bool {
        // What a definition that still runs changes cannot be seen yet.
        if self.redefining.load(Ordering::SeqCst) > 0 {
            return false;
        }
        let due = {
            let found = self.found.read();
            let old = found.asked.is_none_or(|asked| now >= asked + DUE);
            found.rested.is_none_or(|rested| now >= rested) && (old || !self.is_settled(&found))
        };
        due && !self.asking.swap(true, Ordering::AcqRel)
    }

    /// Asks the database in the background when that is due.
    pub(crate) fn refresh(self: &Arc<Self>, service: &Arc<dyn Executor>, database: &DatabaseName) {
        if !self.takes_turn(Instant::now()) {
            return;
        }
        let (belief, service, database) = (self.clone(), service.clone(), database.clone());
        tokio::spawn(async move {
            let _turn = Turn(&belief.asking);
            if let Err(error) = belief.ask(&*service, &database).await {
                tracing::debug!(%database, %error, "every read is reset: no definitions");
                belief.found.write().rested = Some(Instant::now() + FAILED);
            }
        });
    }

    async fn ask(&self, service: &dyn Executor, database: &DatabaseName) -> Result<()> {
        let redefined = self.redefined.load(Ordering::SeqCst);
        let began = Instant::now();
        let source = Source {
            service,
            database,
            options: options(began),
        };
        let fingerprint = source.fingerprint().await?;
        let known = {
            let found = self.found.read();
            found.version > 0 && found.fingerprint == fingerprint
        };
        let suspects = if known {
            None
        } else {
            Some(find(&source.definitions().await?))
        };
        let mut found = self.found.write();
        if let Some(suspects) = suspects {
            tracing::debug!(%database, ?suspects, "suspects");
            found.suspects = suspects;
            found.fingerprint = fingerprint;
            found.version += 1;
        }
        found.redefined = redefined;
        found.asked = Some(began);
        found.rested = Some(Instant::now() + began.elapsed() * REST);
        Ok(())
    }
}

/// How long a question that begins now may take.
fn options(began: Instant) -> QueryOptions {
    QueryOptions {
        deadline: Some((began + PATIENCE).into_std()),
        ..QueryOptions::default()
    }
}

impl Verdict {
    /// Whether the text mentions one of the suspects; looked for once for each set of them.
    fn of(&self, text: &str, suspects: &UntrustedNames, version: u64) -> bool {
        let [innocent, guilty] = [version * 2, version * 2 + 1];
        match self.0.load(Ordering::Relaxed) {
            known if known == innocent => false,
            known if known == guilty => true,
            _ => {
                let mentioned = suspects.are_in(text);
                let verdict = if mentioned { guilty } else { innocent };
                self.0.store(verdict, Ordering::Relaxed);
                mentioned
            }
        }
    }
}

/// Ends with the one who asks, however that ends.
struct Turn<'a>(&'a AtomicBool);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_database_is_asked_some_time_after_a_definition_has_ended() {
        let belief = Arc::new(Belief::default());
        let began = Instant::now();
        let definition = Redefinition::begin(&belief);
        assert!(!belief.takes_turn(began + BELIEVED));
        drop(definition);
        assert!(!belief.takes_turn(began));
        let postponed = belief.found.read().rested.unwrap();
        // Definitions that follow do not put it off again.
        drop(Redefinition::begin(&belief));
        assert_eq!(belief.found.read().rested, Some(postponed));
        assert!(belief.takes_turn(postponed));
    }
}
