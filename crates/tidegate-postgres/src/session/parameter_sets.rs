//! Encodes and queues parameter sets.

use std::sync::Arc;

use bytes::BytesMut;
use postgres_protocol::message::frontend::{self, BindError};
use tidegate_sql::statement::Kind;
use tidegate_sql::{Error, InputError};
use tidegate_values::Type;
use tidegate_values::parameter::{self, IsNull};

use super::execution::Execution;
use super::prepare::push_parse;
use crate::connection::{Connection, push_prepared_switch};
use crate::statement::{PreparedStatement, StatementCache, StatementTask, TransactionPosition};

/// The most bytes of parameter sets that are encoded ahead. Further sets wait until the socket has
/// taken some.
pub(super) const SEND_AHEAD: usize = 64 << 10;

impl Connection {
    /// Queues sets up to [`SEND_AHEAD`], and the end of the pipeline after the last set.
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
                    // No byte of the pipeline has been sent.
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

    /// Queues the next parameter set, and before the first one the Parse of an unconfirmed
    /// statement.
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

    /// Ends the pipeline: after its last set, after an error, or when the sink has taken all rows.
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

/// Whether the commit waits until the sink has taken all rows: if the sink refuses one, the write
/// is undone. Outside of a transaction PostgreSQL commits at the Sync.
fn commits_after_rows(task: &StatementTask<'_>, prepared: &PreparedStatement) -> bool {
    task.position == TransactionPosition::Alone
        && task.bound.statement.kind() == Kind::Write
        && !prepared.description.columns.is_empty()
}

/// A read with one parameter set, for a pipeline of a multiplexed connection.
pub(crate) struct PipelinedRead<'a> {
    pub(crate) task: &'a StatementTask<'a>,
    pub(crate) prepared: Arc<PreparedStatement>,
    /// Whether the description comes from another connection. The pipeline then also prepares the
    /// statement.
    pub(crate) unconfirmed: bool,
}

impl PipelinedRead<'_> {
    /// Queues the parameter set. Returns `None` if a value does not fit its type; the request then
    /// runs on a connection of its own, which reports the error.
    fn push(&self, out: &mut BytesMut) -> Option<()> {
        let set = ParameterSet {
            task: self.task,
            prepared: &self.prepared,
            index: 0,
            describe: self.unconfirmed,
        };
        set.push(out).ok()
    }

    fn push_parse(&self, statements: &mut StatementCache, out: &mut BytesMut) -> Option<()> {
        let types = self.prepared.description.parameters.iter();
        let types = types.map(Type::oid);
        push_parse(statements, out, self.task, &self.prepared.name, types).ok()
    }
}

/// Appends a pipeline of reads to a buffer: the switch to the caller, the reads, a Sync. Returns
/// `None` and appends nothing if a value does not fit its type, or if the pipeline would be longer
/// than `longest` bytes. `backend` is the process id of the connection.
pub(crate) fn push_reads(
    statements: &mut StatementCache,
    out: &mut BytesMut,
    reads: &[PipelinedRead<'_>],
    backend: i32,
    longest: usize,
) -> Option<()> {
    let start = out.len();
    if push_switch_and_reads(statements, out, reads, backend, longest).is_none() {
        out.truncate(start);
        return None;
    }
    frontend::sync(out);
    Some(())
}

fn push_switch_and_reads(
    statements: &mut StatementCache,
    out: &mut BytesMut,
    reads: &[PipelinedRead<'_>],
    backend: i32,
    longest: usize,
) -> Option<()> {
    let start = out.len();
    if let Some(switch) = reads.first()?.task.switch {
        push_prepared_switch(statements, &switch, backend, out)?;
    }
    let after_switch = out.len();
    reads.iter().try_for_each(|read| read.push(out))?;
    let unconfirmed = reads.iter().filter(|read| read.unconfirmed);
    let texts = unconfirmed
        .clone()
        .map(|read| read.task.bound.statement.text().len());
    if out.len() - start + texts.sum::<usize>() > longest {
        return None;
    }
    let mut unconfirmed = unconfirmed.peekable();
    if unconfirmed.peek().is_some() {
        // The steps that can fail come before the Parse: it is preceded by the Close of dropped
        // statements, which cannot be taken back.
        let sets = out.split_off(after_switch);
        unconfirmed.try_for_each(|read| read.push_parse(statements, out))?;
        out.unsplit(sets);
    }
    Some(())
}

/// Why a parameter set cannot be sent.
pub(super) enum SetError {
    /// A value does not fit its type.
    Input(InputError),
    Internal(Error),
}

/// One parameter set of a statement.
struct ParameterSet<'a> {
    task: &'a StatementTask<'a>,
    prepared: &'a PreparedStatement,
    index: usize,
    /// Whether to request a description of the portal, to confirm the cached one.
    describe: bool,
}

impl ParameterSet<'_> {
    /// Queues the parameter set. On failure, queues nothing.
    fn push(&self, out: &mut BytesMut) -> Result<(), SetError> {
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
