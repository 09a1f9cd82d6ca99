//! The statements of a pipeline.

use tidegate_sql::statement::Kind;
use tidegate_sql::{Commit, Mode};
use tokio::time::Instant;

use crate::statement::{StatementTask, is_stateless};

/// The statements of a pipeline.
pub(crate) struct PipelineRequest<'a> {
    /// The statements, each as a task outside of an explicit transaction.
    pub(crate) tasks: Vec<StatementTask<'a>>,
    pub(crate) mode: Mode,
    pub(crate) commit: Commit,
}

impl PipelineRequest<'_> {
    /// Whether all statements may be sent in one write. Each must be a read or a write, because
    /// other statements may end the transaction. Each must have at least one parameter set. Only
    /// the last statement may change name resolution, because PostgreSQL cannot be queried about
    /// name resolution between two statements. If `trusted` is true, the statements are assumed to
    /// keep name resolution unchanged.
    pub(crate) fn can_pipeline(&self, trusted: bool) -> bool {
        let count = self.tasks.len();
        self.tasks.iter().enumerate().all(|(index, task)| {
            let statement = &task.bound.statement;
            let keeps_names = trusted || statement.is_plain() || index + 1 == count;
            matches!(statement.kind(), Kind::Read | Kind::Write)
                && keeps_names
                && !task.bound.sets.is_empty()
        })
    }

    /// Whether the statements may have effects that a rollback undoes.
    pub(super) fn has_effects(&self) -> bool {
        self.mode == Mode::ReadWrite && !self.tasks.iter().all(|task| is_stateless(task.bound))
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.tasks.first().and_then(|task| task.deadline)
    }
}
