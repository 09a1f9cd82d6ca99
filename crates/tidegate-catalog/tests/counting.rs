//! An executor that counts the queries of a catalog.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tidegate_sql::{
    BoundStatement, BoxFuture, Completion, Description, Error, Executor, Mode, Principal,
    QueryOptions, Result, RowSink, Transaction,
};

use crate::fixture::Fixture;

/// Forwards statements to another executor and counts them. A test can make it fail.
pub(crate) struct Counting {
    inner: Arc<dyn Executor>,
    loads: AtomicUsize,
    keys: AtomicUsize,
    comparisons: AtomicUsize,
    pub(crate) broken: AtomicBool,
    pub(crate) broken_loads: AtomicBool,
    /// A future that runs once, before the next load of a schema.
    before_load: Mutex<Option<BoxFuture<'static, ()>>>,
}

impl Counting {
    pub(crate) fn of(fixture: &Fixture) -> Arc<Self> {
        Arc::new(Self {
            inner: fixture.control.clone(),
            loads: AtomicUsize::new(0),
            keys: AtomicUsize::new(0),
            comparisons: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
            broken_loads: AtomicBool::new(false),
            before_load: Mutex::default(),
        })
    }

    pub(crate) fn before_load(&self, work: impl Future<Output = ()> + Send + 'static) {
        *self.before_load.lock().unwrap() = Some(Box::pin(work));
    }

    pub(crate) fn loads(&self) -> usize {
        self.loads.load(Ordering::Relaxed)
    }

    pub(crate) fn keys(&self) -> usize {
        self.keys.load(Ordering::Relaxed)
    }

    pub(crate) fn comparisons(&self) -> usize {
        self.comparisons.load(Ordering::Relaxed)
    }
}

impl Executor for Counting {
    fn query<'a>(
        &'a self,
        who: &'a Principal,
        statement: &'a BoundStatement,
        options: &'a QueryOptions,
        sink: &'a mut dyn RowSink,
    ) -> BoxFuture<'a, Result<Completion>> {
        let text = statement.statement.text();
        let is_load = text.contains("relation_document");
        let counter = if is_load {
            &self.loads
        } else if text.contains("signature") {
            &self.keys
        } else {
            &self.comparisons
        };
        counter.fetch_add(1, Ordering::Relaxed);
        let broken = self.broken.load(Ordering::Relaxed);
        if broken || is_load && self.broken_loads.load(Ordering::Relaxed) {
            return Box::pin(std::future::ready(Err(Error::Deadline)));
        }
        let before = is_load.then(|| self.before_load.lock().unwrap().take());
        Box::pin(async move {
            if let Some(before) = before.flatten() {
                before.await;
            }
            self.inner.query(who, statement, options, sink).await
        })
    }

    fn begin<'a>(
        &'a self,
        _: &'a Principal,
        _: Mode,
        _: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>>> {
        unimplemented!("a catalog needs no transaction")
    }

    fn describe<'a>(
        &'a self,
        _: &'a Principal,
        _: &'a BoundStatement,
        _: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<Description>> {
        unimplemented!("a catalog describes nothing")
    }
}
