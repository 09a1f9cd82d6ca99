//! One attempt to run a statement: what was sent, and what PostgreSQL has answered.

use std::sync::Arc;

use tidegate_sql::statement::Kind;
use tidegate_sql::{Error, InputError, RowSink};
use tidegate_wire::body::{self, FieldDescription};
use tidegate_wire::rejection::ServerError;
use tokio::time::Instant;

use crate::statement::{CallerSwitch, PreparedStatement, StatementTask};

/// One attempt to run a statement.
pub(super) struct Execution<'a> {
    pub(super) task: &'a StatementTask<'a>,
    pub(super) began: Instant,
    pub(super) prepared: Arc<PreparedStatement>,
    /// Whether the description comes from another connection and PostgreSQL has not confirmed it
    /// yet.
    pub(super) unconfirmed: bool,
    pub(super) deadline: Option<Instant>,
    pub(super) progress: Progress,
    /// How many parameter sets PostgreSQL has bound.
    pub(super) bound: usize,
    /// How many parameter sets PostgreSQL has run.
    pub(super) ended: usize,
    pub(super) announced: bool,
    pub(super) affected: Option<u64>,
    pub(super) failure: Option<ServerError>,
}

/// Which parameter sets of a statement have been queued.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The index of the next set to encode.
    pub(super) next: usize,
    /// Whether the Sync has been queued.
    pub(super) ended: bool,
    /// Whether the Sync waits until the sink has taken all rows.
    pub(super) held: bool,
    /// Why a set could not be encoded; `None` if all sets could be encoded so far.
    pub(super) invalid: Option<InputError>,
}

impl<'a> Execution<'a> {
    pub(super) fn new(
        task: &'a StatementTask<'a>,
        prepared: Arc<PreparedStatement>,
        unconfirmed: bool,
    ) -> Self {
        Self {
            task,
            began: Instant::now(),
            prepared,
            unconfirmed,
            deadline: task.deadline,
            progress: Progress::default(),
            bound: 0,
            ended: 0,
            announced: false,
            affected: (task.bound.statement.kind() == Kind::Write).then_some(0),
            failure: None,
        }
    }

    /// The place in the request of the value that PostgreSQL could not read. Returns `None` if the
    /// error is not about a value: it belongs to a Bind only if every bound set has already run.
    pub(super) fn unread(&self, error: &ServerError) -> Option<String> {
        let placeholder = error.parameter?.checked_sub(1)?;
        let binding = self.bound == self.ended;
        binding.then(|| self.task.bound.place(self.bound, placeholder))
    }

    /// Whether the columns are passed to the sink when the statement is bound. The columns of an
    /// unconfirmed description are passed only after PostgreSQL has described the portal.
    pub(super) fn announces_at_bind(&self) -> bool {
        !self.unconfirmed && self.announces_before_rows()
    }

    /// Whether the columns are passed to the sink before the first row. A statement with sealed
    /// claims may have to be repeated before its first row, so its columns are passed with that
    /// row.
    fn announces_before_rows(&self) -> bool {
        !matches!(self.task.switch, Some(CallerSwitch::Claims(_)))
    }

    /// Passes the columns to the sink, unless that was done before.
    pub(super) fn announce(&mut self, sink: &mut dyn RowSink) -> Result<(), Error> {
        if self.announced {
            return Ok(());
        }
        self.announced = true;
        sink.columns(&self.prepared.description.columns)
    }

    /// Waits until the sink is ready for more rows.
    ///
    /// During the wait nothing is read from PostgreSQL, so the statement pauses when the socket's
    /// buffers are full. The wait does not count against the statement's deadline, because a slow
    /// client causes it and the HTTP layer limits it.
    pub(super) async fn wait_for(&mut self, sink: &mut dyn RowSink) -> Result<(), Error> {
        let began = Instant::now();
        sink.ready().await?;
        let waited = began.elapsed();
        self.deadline = self.deadline.map(|deadline| deadline + waited);
        self.began += waited;
        Ok(())
    }

    /// Compares an unconfirmed description with the columns that PostgreSQL described. If they
    /// match, passes the columns to the sink, unless these are passed only with the first row.
    /// Otherwise records that the description is stale. Columns of writes are not compared, because
    /// only writes without columns run unconfirmed.
    pub(super) fn confirm(
        &mut self,
        fields: &[FieldDescription],
        sink: &mut dyn RowSink,
    ) -> Result<(), Error> {
        let matches = fields == self.prepared.description.fields;
        if matches || self.task.bound.statement.kind() != Kind::Read {
            return if self.announces_before_rows() {
                self.announce(sink)
            } else {
                Ok(())
            };
        }
        self.failure.get_or_insert_with(ServerError::stale);
        Ok(())
    }

    /// Whether the error may only mean that cached data of the statement was stale.
    pub(super) fn may_be_stale(&self, error: &ServerError) -> bool {
        error.is_stale_statement()
            || self.task.has_stale_hint(error)
            || (self.unconfirmed && error.is_bad_guess())
    }

    /// Counts a parameter set that has run, and its affected rows. `body` is the body of its
    /// `CommandComplete`. Returns whether the set is the last one.
    pub(super) fn complete_set(&mut self, body: &[u8]) -> bool {
        self.ended += 1;
        let (command, rows) = body::command_tag(body);
        match (&mut self.affected, command, rows) {
            (Some(sum), "INSERT" | "UPDATE" | "DELETE" | "MERGE", Some(rows)) => *sum += rows,
            // For a SELECT with data-modifying CTEs, PostgreSQL counts the rows that it returns and
            // not those that it writes.
            (affected, _, _) => *affected = None,
        }
        self.ended == self.task.bound.sets.len()
    }
}
