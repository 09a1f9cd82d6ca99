//! Whether a statement may change what names refer to.

use tidegate_sql::statement::Kind;

use super::side_effects::is_stateless;
use super::task::StatementTask;

/// Whether names resolve as at the start of the session: with the same `search_path`, the same
/// role, and no temporary tables. Each variant is further from the initial state than the one
/// before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NameResolution {
    /// Names resolve as at the start of the session.
    #[default]
    Initial,
    /// Names resolve as at the start of the session, unless a trigger or a view changed name
    /// resolution. Cached descriptions are used, but new descriptions are cached only after a
    /// check.
    ProbablyInitial,
    /// A statement called code that may have changed name resolution.
    Unknown,
    /// A query has shown that name resolution has changed, or the query failed.
    Changed,
}

impl NameResolution {
    /// The state after a statement, if the state before it was `Initial`.
    pub(crate) fn after(task: &StatementTask<'_>, impure: bool) -> Self {
        let statement = &task.bound.statement;
        match statement.kind() {
            Kind::Read | Kind::Write if !statement.is_plain() => Self::Unknown,
            // A hint can name a domain, whose check may call user-defined code.
            Kind::Read if !impure && is_stateless(task.bound) => Self::Initial,
            Kind::Read | Kind::Write => Self::ProbablyInitial,
            Kind::Procedural | Kind::Other => Self::Unknown,
        }
    }
}
