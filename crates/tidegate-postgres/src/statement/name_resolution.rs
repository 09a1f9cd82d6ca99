//! What the names in a statement refer to.

use tidegate_sql::statement::Kind;

use super::side_effects::is_stateless;
use super::task::StatementTask;

/// Whether names resolve as they did when the session started: same `search_path`, same role, no
/// temporary tables. The variants are ordered by uncertainty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NameResolution {
    /// As at the start of the session.
    #[default]
    Initial,
    /// As at the start of the session, unless a trigger or a view changed it. Cached descriptions
    /// are used; new ones are cached only after a check.
    ProbablyInitial,
    /// A statement called code that may have changed the resolution.
    Unknown,
    /// PostgreSQL confirmed that the resolution has changed.
    Changed,
}

impl NameResolution {
    /// The state after a statement that ran in the state `Initial`.
    pub(crate) fn after(task: &StatementTask<'_>, impure: bool) -> Self {
        let statement = &task.bound.statement;
        match statement.kind() {
            Kind::Read | Kind::Write if !statement.is_plain() => Self::Unknown,
            // A hint can name a domain, and the check of a domain is code.
            Kind::Read if !impure && is_stateless(task.bound) => Self::Initial,
            Kind::Read | Kind::Write => Self::ProbablyInitial,
            Kind::Procedural | Kind::Other => Self::Unknown,
        }
    }
}
