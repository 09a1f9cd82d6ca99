//! The state of one attempt to run a statement: the parameter sets that are queued, and the
//! responses of PostgreSQL so far.

use std::sync::Arc;

use bytes::BytesMut;
use postgres_protocol::message::frontend::{self, BindError};
use tidegate_sql::statement::Kind;
use tidegate_sql::{Error, InputError, RowSink};
use tidegate_values::Type;
use tidegate_values::parameter::{self, IsNull};
use tidegate_wire::body::{self, FieldDescription};
use tidegate_wire::server_error::ServerError;
use tokio::time::Instant;

use crate::connection::Connection;
use crate::statement::{CallerSwitch, PreparedStatement, StatementTask, TransactionPosition};

/// The limit on the bytes in the send buffer. When it is reached, no further parameter sets are
/// encoded until the socket has taken some bytes.
pub(super) const SEND_AHEAD: usize = 64 << 10;

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

/// How far the parameter sets of a statement have been queued.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The index of the next set to encode.
    pub(super) next: usize,
    /// Whether the Sync has been queued.
    pub(super) ended: bool,
    /// Whether the Sync waits until the sink has taken all rows.
    pub(super) held: bool,
    /// Why a set could not be encoded; `None` if no set has failed.
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

    /// The path, in the request, of the value that PostgreSQL could not read. Returns `None` if the
    /// error is not about a value. If a bound set has not run yet, the error belongs to the
    /// execution of this set and not to a value.
    pub(super) fn path_of_unreadable_value(&self, error: &ServerError) -> Option<String> {
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
    /// claims may have to be repeated before its first row, so its columns are passed together with
    /// the first row.
    fn announces_before_rows(&self) -> bool {
        !matches!(self.task.switch, Some(CallerSwitch::Claims(_)))
    }

    /// Passes the columns to the sink, unless they were passed before.
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
    /// differ, records that the description is stale. If they match, passes the columns to the
    /// sink, unless the columns are passed only with the first row. The columns of a write always
    /// count as matching, because only writes without columns run unconfirmed.
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

    /// Whether a stale description or type hint may be the cause of the error, so that a second
    /// attempt could succeed.
    pub(super) fn may_be_stale(&self, error: &ServerError) -> bool {
        error.is_stale_statement()
            || self.task.has_stale_hint(error)
            || (self.unconfirmed && error.may_be_stale_description())
    }

    /// Counts a parameter set that has run, and its affected rows. `body` is the body of its
    /// `CommandComplete`. Returns whether the set is the final set of the statement.
    pub(super) fn complete_set(&mut self, body: &[u8]) -> bool {
        self.ended += 1;
        let (command, rows) = body::command_tag(body);
        match (&mut self.affected, command, rows) {
            (Some(sum), "INSERT" | "UPDATE" | "DELETE" | "MERGE", Some(rows)) => *sum += rows,
            // For a SELECT with data-modifying CTEs, PostgreSQL counts the rows that it returns and
            // not those that it writes, so the number of written rows is unknown.
            (affected, _, _) => *affected = None,
        }
        self.ended == self.task.bound.sets.len()
    }
}

impl Connection {
    /// Queues parameter sets until [`SEND_AHEAD`] is reached. After the last set, queues the end of
    /// the pipeline.
    pub(super) fn fill(&mut self, run: &mut Execution<'_>) -> Result<(), Error> {
        while !run.progress.ended && !run.progress.held && self.channel.outbound.len() < SEND_AHEAD
        {
            if run.progress.next == run.task.bound.sets.len() {
                if commits_after_rows(run.task, &run.prepared) {
                    run.progress.held = true;
                    frontend::flush(&mut self.channel.outbound);
                } else {
                    self.end_pipeline(run);
                }
                break;
            }
            match self.push_next_set(run) {
                Ok(()) => {}
                Err(SetError::Input(invalid)) if run.progress.next == 0 && !run.unconfirmed => {
                    // No byte of the pipeline has been sent, so it can be withdrawn.
                    self.withdraw();
                    return Err(Error::Input(invalid));
                }
                Err(SetError::Input(invalid)) => {
                    run.progress.invalid = Some(invalid);
                    self.abort();
                    run.progress.ended = true;
                }
                Err(SetError::Internal(error)) => return Err(error),
            }
        }
        Ok(())
    }

    /// Queues the next parameter set. Before the first set of an unconfirmed statement, queues the
    /// statement's Parse.
    pub(super) fn push_next_set(&mut self, run: &mut Execution<'_>) -> Result<(), SetError> {
        let index = run.progress.next;
        let describe = run.unconfirmed && index == 0;
        if describe {
            let types = run.prepared.description.parameters.iter().map(Type::oid);
            let queued = self.push_parse(run.task, &run.prepared.name, types);
            queued.map_err(SetError::Internal)?;
        }
        let set = ParameterSet {
            task: run.task,
            prepared: &run.prepared,
            index,
            describe,
        };
        set.push(&mut self.channel.outbound)?;
        run.progress.next += 1;
        Ok(())
    }

    /// Ends the pipeline after its final set, after an error, or when the sink has taken all rows.
    /// Does nothing if the pipeline has ended already. If a reset is due, it is queued too.
    pub(super) fn end_pipeline(&mut self, run: &mut Execution<'_>) {
        if run.progress.ended {
            return;
        }
        run.progress.ended = true;
        self.sync();
        // The reset is sent in the same write, so it costs the caller no time.
        let ends_transaction = run.task.position == TransactionPosition::Alone;
        if ends_transaction && self.session.side_effects().is_reset_due() {
            self.push_reset();
        }
    }
}

/// Whether the Sync is sent only after the sink has taken all rows. PostgreSQL commits at the
/// Sync. Until then, a write can be rolled back if the sink refuses a row.
fn commits_after_rows(task: &StatementTask<'_>, prepared: &PreparedStatement) -> bool {
    task.position == TransactionPosition::Alone
        && task.bound.statement.kind() == Kind::Write
        && !prepared.description.columns.is_empty()
}

/// Why a parameter set cannot be sent.
pub(crate) enum SetError {
    /// A value does not fit its type.
    Input(InputError),
    Internal(Error),
}

pub(crate) struct ParameterSet<'a> {
    pub(crate) task: &'a StatementTask<'a>,
    pub(crate) prepared: &'a PreparedStatement,
    pub(crate) index: usize,
    /// Whether to request a description of the portal, to confirm the cached description.
    pub(crate) describe: bool,
}

impl ParameterSet<'_> {
    /// Queues the parameter set. On failure, queues nothing.
    pub(crate) fn push(&self, out: &mut BytesMut) -> Result<(), SetError> {
        let start = out.len();
        if let Err(invalid) = self.bind(out) {
            out.truncate(start);
            return Err(invalid);
        }
        let described = if self.describe {
            frontend::describe(b'P', "", out)
        } else {
            Ok(())
        };
        described
            .and_then(|()| frontend::execute("", 0, out))
            .map_err(|error| SetError::Internal(Error::internal(error)))
    }

    fn bind(&self, out: &mut BytesMut) -> Result<(), SetError> {
        let (bound, description) = (self.task.bound, &self.prepared.description);
        let values = &bound.sets[self.index];
        if values.len() != description.parameters.len() {
            let miscounted = "PostgreSQL counts other parameters than we do";
            return Err(SetError::Internal(Error::internal(miscounted)));
        }
        let mut invalid = None;
        let encode = |index: usize, out: &mut BytesMut| {
            let format = bound.formats.get(index).and_then(Option::as_ref);
            let place = || bound.place(self.index, index);
            match parameter::encode(
                &values[index],
                &description.parameters[index],
                format,
                &place,
                out,
            ) {
                Ok(IsNull::Yes) => Ok(postgres_protocol::IsNull::Yes),
                Ok(IsNull::No) => Ok(postgres_protocol::IsNull::No),
                Err(error) => {
                    invalid = Some(error);
                    Err("a value that does not fit".into())
                }
            }
        };
        let (name, formats) = (&self.prepared.name, description.formats.iter().copied());
        let outcome = frontend::bind("", name, [], 0..values.len(), encode, formats, out);
        match (outcome, invalid) {
            (Ok(()), _) => Ok(()),
            (Err(_), Some(invalid)) => Err(SetError::Input(invalid.into())),
            (Err(BindError::Conversion(error)), None) => {
                Err(SetError::Internal(Error::Internal(error)))
            }
            (Err(BindError::Serialization(error)), None) => {
                Err(SetError::Internal(Error::internal(error)))
            }
        }
    }
}
