//! Whether names mean in a session what they mean at its beginning.
//!
//! What was learnt of a statement (which table a name is, which types its parameters have) holds
//! for the `search_path` that it was learnt with, for the role, and where no temporary table
//! stands in front. A statement can change all that for those behind it in its transaction.

use tidegate_sql::Error;
use tidegate_sql::statement::Kind;

use super::lookup::Lookup;
use super::reset::is_stateless;
use super::task::Task;
use crate::connection::Connection;

/// Whether names mean what they do at the beginning of the session. The parameters are the
/// `search_path` that the session began with and the role as which statements run. A temporary
/// schema is there from the first temporary table on.
const ASK: &str = "SELECT pg_catalog.current_setting('search_path') OPERATOR(pg_catalog.=) $1 \
    AND CURRENT_USER OPERATOR(pg_catalog.=) $2::pg_catalog.name \
    AND pg_catalog.pg_my_temp_schema() OPERATOR(pg_catalog.=) 0::pg_catalog.oid";

/// What names mean in a session. The greater is the less certain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Names {
    /// What they do at its beginning.
    #[default]
    Own,
    /// The same, unless code behind a statement has changed that of which its text tells nothing:
    /// a trigger, a view. What is known is used, and nothing is learnt without asking.
    Likely,
    /// A statement has called what may have changed that.
    Open,
    /// Something else.
    Other,
}

impl Names {
    /// What they mean behind a statement, where they meant what they do at the beginning.
    fn behind(task: &Task<'_>, suspect: bool) -> Self {
        let statement = &task.bound.statement;
        match statement.kind() {
            Kind::Read | Kind::Write if !statement.is_plain() => Self::Open,
            // A hint can name a domain, whose check is code too.
            Kind::Read if !suspect && is_stateless(task.bound) => Self::Own,
            Kind::Read | Kind::Write => Self::Likely,
            Kind::Procedural | Kind::Other => Self::Open,
        }
    }
}

impl Connection {
    /// Notes what a statement that ran may have done to names.
    pub(crate) fn ran(&mut self, task: &Task<'_>, suspect: bool) {
        let behind = Names::behind(task, suspect);
        // It may also have changed them back.
        let again = self.session.names == Names::Other && behind == Names::Open;
        self.session.names = if again {
            Names::Open
        } else {
            self.session.names.max(behind)
        };
    }

    /// Whether what is known of statements may be used. PostgreSQL is asked where a statement may
    /// have changed what names mean.
    pub(crate) async fn may_use_what_is_known(&mut self, task: &Task<'_>) -> Result<bool, Error> {
        match self.session.names {
            Names::Own | Names::Likely => Ok(true),
            Names::Other => Ok(false),
            Names::Open => self.ask_for_names(task).await,
        }
    }

    /// Whether what is learnt now may be kept for others. PostgreSQL is asked where a statement
    /// may have changed what names mean, whatever its text says.
    pub(crate) async fn may_keep_what_is_learnt(&mut self, task: &Task<'_>) -> Result<bool, Error> {
        match self.session.names {
            Names::Own => Ok(true),
            Names::Other => Ok(false),
            Names::Likely | Names::Open => self.ask_for_names(task).await,
        }
    }

    async fn ask_for_names(&mut self, task: &Task<'_>) -> Result<bool, Error> {
        let path = self.session.search_path.clone();
        let lookup = Lookup {
            text: ASK,
            parameters: &[&path, task.role().as_str()],
            switch: task.switch,
            deadline: task.deadline,
        };
        let mut own = false;
        let mut take = |row: tidegate_values::RawRow<'_>| {
            own = row.values().next()?? == [1];
            Some(())
        };
        // Where PostgreSQL refuses to say, the statement that follows is refused too.
        let said = self.look_up(&lookup, 1, &mut take).await?.is_ok();
        if self.session.prefix.is_refused() {
            // Nothing was asked; the statement that follows is refused too.
            return Ok(false);
        }
        let own = said && own;
        self.session.names = if own { Names::Own } else { Names::Other };
        Ok(own)
    }
}
