//! What a feed asks of PostgreSQL, counted, and held back where a test says so.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_feed::Feed;
use tidegate_sql::{
    BoundStatement, BoxFuture, Completion, Description, Executor, Mode, Principal, Result, RowSink,
    Terms, Transaction,
};
use tokio::sync::{Notify, OwnedRwLockWriteGuard, RwLock};
use tokio::time::{sleep, timeout};

use crate::scene::{Scene, Setup, Source, executor, node_with};

/// A word that only the question for the rights of roles has.
pub(crate) const RIGHTS: &str = "has_table_privilege";

/// A word that only the question has how tables stand.
const STANDING: &str = match crate::SOURCE {
    Source::Log => "prrelid",
    Source::Outbox => "tgenabled",
};

/// A word that only the question has what types are.
pub(crate) const TYPES: &str = "rngsubtype";

/// How long something may take that comes.
const PATIENCE: Duration = Duration::from_secs(30);

/// The statements that were run: whether as a user, and their texts.
#[derive(Clone, Default)]
pub(crate) struct Asked {
    statements: Arc<Mutex<Vec<(bool, String)>>>,
    /// The next answer to a question with which word is to be held back, and as long as what.
    holds: Arc<Mutex<Option<&'static str>>>,
    gate: Arc<RwLock<()>>,
    held: Arc<Notify>,
}

impl Asked {
    /// A scene whose feed is counted.
    pub(crate) async fn scene(name: &str, setup: &Setup) -> (Scene, Self) {
        let mut scene = Scene::with(name, setup).await;
        let (feed, asked) = Self::node(setup);
        scene.feed = feed;
        (scene, asked)
    }

    /// A feed that is counted.
    pub(crate) fn node(setup: &Setup) -> (Feed, Self) {
        let asked = Self::default();
        let counting = Counting {
            inner: executor(setup),
            asked: asked.clone(),
        };
        (node_with(setup, Arc::new(counting)), asked)
    }

    /// How many statements had a word.
    pub(crate) fn count(&self, word: &str) -> usize {
        let asked = self.statements.lock();
        asked.iter().filter(|(_, text)| text.contains(word)).count()
    }

    /// How many statements there were, and what begins and ends transactions.
    pub(crate) fn statements(&self) -> usize {
        self.statements.lock().len()
    }

    /// Waits until it has been asked so many times how tables stand, from now on.
    pub(crate) async fn looked(&self, times: usize) {
        let looks = || self.count(STANDING);
        let wanted = looks() + times;
        let looked = async {
            while looks() < wanted {
                sleep(Duration::from_millis(5)).await;
            }
        };
        let looked = timeout(PATIENCE, looked).await;
        looked.expect("nobody looks how tables stand");
    }

    /// Holds back the next answer of how tables stand until what is returned is dropped.
    pub(crate) async fn hold(&self) -> OwnedRwLockWriteGuard<()> {
        self.hold_what_has(STANDING).await
    }

    /// Holds back the next answer to a question with a word.
    pub(crate) async fn hold_what_has(&self, word: &'static str) -> OwnedRwLockWriteGuard<()> {
        let gate = self.gate.clone().write_owned().await;
        *self.holds.lock() = Some(word);
        gate
    }

    /// Waits until that answer is there.
    pub(crate) async fn held(&self) {
        let held = timeout(PATIENCE, self.held.notified()).await;
        held.expect("nobody asks what is held back");
    }

    /// How many ran as a user.
    pub(crate) fn as_users(&self) -> usize {
        self.statements
            .lock()
            .iter()
            .filter(|(user, _)| *user)
            .count()
    }

    /// Stays as long as answers to these statements are held back.
    async fn pause(&self, texts: &[&str]) {
        let is_held = |word: &mut &str| texts.iter().any(|text| text.contains(*word));
        if self.holds.lock().take_if(is_held).is_some() {
            self.held.notify_one();
            drop(self.gate.read().await);
        }
    }

    fn note_end_and_beginning(&self, is_user: bool) {
        let both = ["BEGIN", "COMMIT"].map(|text| (is_user, text.to_owned()));
        self.statements.lock().extend(both);
    }

    fn note(&self, is_user: bool, statement: &BoundStatement) {
        let text = statement.statement.text().to_owned();
        self.statements.lock().push((is_user, text));
    }
}

struct Counting {
    inner: Arc<dyn Executor>,
    asked: Asked,
}

impl Executor for Counting {
    fn query<'a>(
        &'a self,
        who: &'a Principal,
        statement: &'a BoundStatement,
        terms: &'a Terms,
        sink: &'a mut dyn RowSink,
    ) -> BoxFuture<'a, Result<Completion>> {
        Box::pin(async move {
            self.asked.note(is_user(who), statement);
            let done = self.inner.query(who, statement, terms, sink).await;
            self.asked.pause(&[statement.statement.text()]).await;
            done
        })
    }

    fn begin<'a>(
        &'a self,
        who: &'a Principal,
        mode: Mode,
        terms: &'a Terms,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>>> {
        Box::pin(async move {
            let inner = self.inner.begin(who, mode, terms).await?;
            self.asked.note_end_and_beginning(is_user(who));
            let (asked, is_user) = (self.asked.clone(), is_user(who));
            let counted = Counted {
                inner,
                asked,
                is_user,
                texts: Vec::new(),
            };
            Ok(Box::new(counted) as Box<dyn Transaction>)
        })
    }

    fn describe<'a>(
        &'a self,
        who: &'a Principal,
        statement: &'a BoundStatement,
        terms: &'a Terms,
    ) -> BoxFuture<'a, Result<Description>> {
        self.inner.describe(who, statement, terms)
    }
}

fn is_user(who: &Principal) -> bool {
    matches!(who, Principal::Role(_))
}

struct Counted {
    inner: Box<dyn Transaction>,
    asked: Asked,
    is_user: bool,
    /// What was asked.
    texts: Vec<String>,
}

impl Transaction for Counted {
    fn query<'a>(
        &'a mut self,
        statement: &'a BoundStatement,
        sink: &'a mut dyn RowSink,
    ) -> BoxFuture<'a, Result<Completion>> {
        self.asked.note(self.is_user, statement);
        self.texts.push(statement.statement.text().to_owned());
        self.inner.query(statement, sink)
    }

    fn describe<'a>(
        &'a mut self,
        statement: &'a BoundStatement,
    ) -> BoxFuture<'a, Result<Description>> {
        self.inner.describe(statement)
    }

    fn commit(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            self.inner.commit().await?;
            let texts: Vec<&str> = self.texts.iter().map(String::as_str).collect();
            self.asked.pause(&texts).await;
            Ok(())
        })
    }
}
