//! Statements that go out together, and whether they may.

use tidegate_sql::statement::Kind;
use tidegate_sql::{Commit, Mode};
use tokio::time::Instant;

use super::reset::is_stateless;
use super::task::Task;

/// Statements that go out together.
pub(crate) struct Batch<'a> {
    /// Each as if it were alone.
    pub(crate) tasks: Vec<Task<'a>>,
    pub(crate) mode: Mode,
    pub(crate) commit: Commit,
}

impl Batch<'_> {
    /// Whether the statements may go out before the answers of those in front of them. None may
    /// end the transaction, and none but the last may change what names mean: nobody could ask
    /// PostgreSQL in between.
    pub(crate) fn is_fit(&self, trusted: bool) -> bool {
        let count = self.tasks.len();
        self.tasks.iter().enumerate().all(|(index, task)| {
            let statement = &task.bound.statement;
            let keeps_names = trusted || statement.is_plain() || index + 1 == count;
            matches!(statement.kind(), Kind::Read | Kind::Write)
                && keeps_names
                && !task.bound.sets.is_empty()
        })
    }

    /// Whether a rollback would undo something.
    pub(super) fn has_effects(&self) -> bool {
        self.mode == Mode::ReadWrite && !self.tasks.iter().all(|task| is_stateless(task.bound))
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.tasks.first().and_then(|task| task.deadline)
    }
}
