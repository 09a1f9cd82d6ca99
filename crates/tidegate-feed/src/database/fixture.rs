//! The fixture of unit tests.

use std::sync::Arc;

use async_trait::async_trait;
use tidegate_changelog::{
    Captured, ChangeLog, Demand, LogPosition, LogResult, LogStart, LogStream,
};
use tidegate_sql::{
    BoundStatement, BoxFuture, Completion, DatabaseName, Description, Executor, Mode, Principal,
    QueryOptions, RowSink, Transaction,
};

use crate::database::database_feed::DatabaseFeed;
use crate::settings::FeedSettings;

/// A change log and an executor whose methods must not be called.
struct Unused;

#[async_trait]
impl ChangeLog for Unused {
    async fn open(&self, _: &DatabaseName, _: LogStart) -> LogResult<Box<dyn LogStream>> {
        unreachable!()
    }

    async fn capture(&self, _: &DatabaseName, _: &Demand) -> LogResult<Captured> {
        unreachable!()
    }

    async fn partitions(
        &self,
        _: &DatabaseName,
        _: u32,
        _: &[u32],
    ) -> LogResult<Option<LogPosition>> {
        unreachable!()
    }

    fn health_query(&self) -> &'static str {
        unreachable!()
    }

    async fn release(&self, _: &DatabaseName, _: &[u32]) -> LogResult<()> {
        unreachable!()
    }

    async fn retain(&self, _: &DatabaseName, _: LogPosition) -> LogResult<LogPosition> {
        unreachable!()
    }

    async fn abandon(&self, _: &DatabaseName) -> LogResult<()> {
        unreachable!()
    }
}

impl Executor for Unused {
    fn query<'a>(
        &'a self,
        _: &'a Principal,
        _: &'a BoundStatement,
        _: &'a QueryOptions,
        _: &'a mut dyn RowSink,
    ) -> BoxFuture<'a, tidegate_sql::Result<Completion>> {
        unreachable!()
    }

    fn begin<'a>(
        &'a self,
        _: &'a Principal,
        _: Mode,
        _: &'a QueryOptions,
    ) -> BoxFuture<'a, tidegate_sql::Result<Box<dyn Transaction>>> {
        unreachable!()
    }

    fn describe<'a>(
        &'a self,
        _: &'a Principal,
        _: &'a BoundStatement,
        _: &'a QueryOptions,
    ) -> BoxFuture<'a, tidegate_sql::Result<Description>> {
        unreachable!()
    }
}

/// A database feed without a stream.
pub(crate) fn database_feed() -> DatabaseFeed {
    let (name, unused) = (DatabaseName::new("d"), Arc::new(Unused));
    DatabaseFeed::new(name, unused.clone(), unused, FeedSettings::default())
}
