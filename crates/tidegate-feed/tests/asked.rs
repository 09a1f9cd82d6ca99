//! What a feed asks of PostgreSQL, counted.

use std::sync::Arc;

use parking_lot::Mutex;
use tidegate_feed::Feed;
use tidegate_sql::{
    BoundStatement, BoxFuture, Completion, Description, Executor, Mode, Principal, Result, RowSink,
    Terms, Transaction,
};

use crate::scene::{Scene, Setup, executor, node_with};

/// A word that only the question for the rights of roles has.
pub(crate) const RIGHTS: &str = "has_table_privilege";

/// The statements that were run: whether as a user, and their texts.
#[derive(Clone, Default)]
pub(crate) struct Asked(Arc<Mutex<Vec<(bool, String)>>>);

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
        let asked = self.0.lock();
        asked.iter().filter(|(_, text)| text.contains(word)).count()
    }

    /// How many ran as a user.
    pub(crate) fn as_users(&self) -> usize {
        self.0.lock().iter().filter(|(user, _)| *user).count()
    }

    fn note(&self, is_user: bool, statement: &BoundStatement) {
        let text = statement.statement.text().to_owned();
        self.0.lock().push((is_user, text));
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
        self.asked.note(is_user(who), statement);
        self.inner.query(who, statement, terms, sink)
    }

    fn begin<'a>(
        &'a self,
        who: &'a Principal,
        mode: Mode,
        terms: &'a Terms,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>>> {
        Box::pin(async move {
            let inner = self.inner.begin(who, mode, terms).await?;
            let (asked, is_user) = (self.asked.clone(), is_user(who));
            let counted = Counted {
                inner,
                asked,
                is_user,
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
}

impl Transaction for Counted {
    fn query<'a>(
        &'a mut self,
        statement: &'a BoundStatement,
        sink: &'a mut dyn RowSink,
    ) -> BoxFuture<'a, Result<Completion>> {
        self.asked.note(self.is_user, statement);
        self.inner.query(statement, sink)
    }

    fn describe<'a>(
        &'a mut self,
        statement: &'a BoundStatement,
    ) -> BoxFuture<'a, Result<Description>> {
        self.inner.describe(statement)
    }

    fn commit(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        self.inner.commit()
    }
}
