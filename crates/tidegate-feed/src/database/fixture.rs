//! The fixture of unit tests.

use std::sync::Arc;

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

impl ChangeLog for Unused {
    fn open<'a>(
        &'a self,
        _: &'a DatabaseName,
        _: LogStart,
    ) -> BoxFuture<'a, LogResult<Box<dyn LogStream>>> {
        unreachable!()
    }

    fn capture<'a>(
        &'a self,
        _: &'a DatabaseName,
        _: &'a Demand,
    ) -> BoxFuture<'a, LogResult<Captured>> {
        unreachable!()
    }

    fn partitions<'a>(
        &'a self,
        _: &'a DatabaseName,
        _: u32,
        _: &'a [u32],
    ) -> BoxFuture<'a, LogResult<Option<LogPosition>>> {
        unreachable!()
    }

    fn health_query(&self) -> &'static str {
        unreachable!()
    }

    fn release<'a>(&'a self, _: &'a DatabaseName, _: &'a [u32]) -> BoxFuture<'a, LogResult<()>> {
        unreachable!()
    }

    fn retain<'a>(
        &'a self,
        _: &'a DatabaseName,
        _: LogPosition,
    ) -> BoxFuture<'a, LogResult<LogPosition>> {
        unreachable!()
    }

    fn abandon<'a>(&'a self, _: &'a DatabaseName) -> BoxFuture<'a, LogResult<()>> {
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
