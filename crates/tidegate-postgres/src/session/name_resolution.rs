//! Tracks whether names still resolve as at the start of the session.
//!
//! Cached data of a statement (its tables, the types of its parameters) depends on the
//! `search_path`, on the role, and on the absence of temporary tables. A statement can change all
//! three for later statements of its transaction.

use tidegate_sql::Error;

use super::internal_query::InternalQuery;
use crate::connection::Connection;
use crate::statement::{NameResolution, StatementTask};

/// Selects whether names resolve as at the start of the session. The parameter `$1` is the initial
/// `search_path`, and `$2` the role as which statements run. The session has a temporary schema
/// only after it has created a temporary table.
const IS_INITIAL: &str = "SELECT pg_catalog.current_setting('search_path') OPERATOR(pg_catalog.=) $1 \
    AND CURRENT_USER OPERATOR(pg_catalog.=) $2::pg_catalog.name \
    AND pg_catalog.pg_my_temp_schema() OPERATOR(pg_catalog.=) 0::pg_catalog.oid";

impl Connection {
    /// Records how a statement may have changed name resolution.
    pub(crate) fn note_name_changes(&mut self, task: &StatementTask<'_>, impure: bool) {
        let after = NameResolution::after(task.bound, impure);
        // A statement may also have restored the initial name resolution.
        let may_be_restored = self.session.name_resolution == NameResolution::Changed
            && after == NameResolution::Unknown;
        self.session.name_resolution = if may_be_restored {
            NameResolution::Unknown
        } else {
            self.session.name_resolution.max(after)
        };
    }

    /// Whether cached descriptions may be used. Queries PostgreSQL if code that a statement called
    /// may have changed name resolution.
    pub(crate) async fn may_use_cached(&mut self, task: &StatementTask<'_>) -> Result<bool, Error> {
        match self.session.name_resolution {
            NameResolution::Initial | NameResolution::ProbablyInitial => Ok(true),
            NameResolution::Changed => Ok(false),
            NameResolution::Unknown => self.query_name_resolution(task).await,
        }
    }

    /// Whether new descriptions may be cached for other sessions. Queries PostgreSQL if any earlier
    /// statement, its triggers or its views may have changed name resolution.
    pub(crate) async fn may_cache(&mut self, task: &StatementTask<'_>) -> Result<bool, Error> {
        match self.session.name_resolution {
            NameResolution::Initial => Ok(true),
            NameResolution::Changed => Ok(false),
            NameResolution::ProbablyInitial | NameResolution::Unknown => {
                self.query_name_resolution(task).await
            }
        }
    }

    async fn query_name_resolution(&mut self, task: &StatementTask<'_>) -> Result<bool, Error> {
        let path = self.session.search_path.clone();
        let query = InternalQuery {
            text: IS_INITIAL,
            parameters: &[&path, task.role().as_str()],
            switch: task.switch,
            is_kept: false,
            deadline: task.deadline,
        };
        let mut is_initial = false;
        let mut take = |row: tidegate_values::RawRow<'_>| {
            is_initial = row.values().next()?? == [1];
            Some(())
        };
        // PostgreSQL refuses this query only in cases in which it also refuses the caller's
        // statement.
        let succeeded = self.run_internal_query(&query, 1, &mut take).await?.is_ok();
        if self.session.prefix.is_refused() {
            // PostgreSQL refused the switch to the caller, so the query did not run. It will also
            // refuse the switch before the caller's statement.
            return Ok(false);
        }
        let is_initial = succeeded && is_initial;
        self.session.name_resolution = if is_initial {
            NameResolution::Initial
        } else {
            NameResolution::Changed
        };
        Ok(is_initial)
    }
}
