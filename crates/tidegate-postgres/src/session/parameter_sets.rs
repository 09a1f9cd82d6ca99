//! Encodes and queues parameter sets.

use std::sync::Arc;

use bytes::BytesMut;
use postgres_protocol::message::frontend::{self, BindError};
use tidegate_sql::statement::Kind;
use tidegate_sql::{Error, InputError};
use tidegate_values::parameter::{self, IsNull};

use super::prepare::push_parse;
use crate::connection::{Connection, push_prepared_switch};
use crate::statement::{PreparedStatement, StatementCache, StatementTask, TransactionPosition};

/// The most bytes of parameter sets that are encoded ahead. Further sets wait until the socket has
/// taken some.
pub(super) const SEND_AHEAD: usize = 64 << 10;

/// Which parameter sets of a statement have been queued.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The index of the next set to encode.
    pub(super) next: usize,
    /// Whether the Sync has been queued.
    ended: bool,
    /// Whether the Sync waits until the sink has taken all rows.
    held: bool,
    /// Why a set could not be encoded.
    pub(super) wrong: Option<InputError>,
}

impl Connection {
    /// Queues sets up to [`SEND_AHEAD`], and the end of the pipeline after the last set.
    pub(super) fn fill(
        &mut self,
        task: &StatementTask<'_>,
        prepared: &PreparedStatement,
        progress: &mut Progress,
        unconfirmed: bool,
    ) -> Result<(), Error> {
        while !progress.ended && !progress.held && self.channel.outbound.len() < SEND_AHEAD {
            if progress.next == task.bound.sets.len() {
                if commits_after_rows(task, prepared) {
                    progress.held = true;
                    frontend::flush(&mut self.channel.outbound);
                } else {
                    self.finish_pipeline(task, progress);
                }
                break;
            }
            let set = ParameterSet {
                task,
                prepared,
                index: progress.next,
                describe: unconfirmed && progress.next == 0,
            };
            match set.push(&mut self.channel.outbound) {
                Ok(()) => progress.next += 1,
                Err(SetError::Input(wrong)) if progress.next == 0 && !unconfirmed => {
                    // No byte of the pipeline has been sent.
                    self.withdraw();
                    return Err(Error::Input(wrong));
                }
                Err(SetError::Input(wrong)) => {
                    progress.wrong = Some(wrong);
                    self.abort();
                    progress.ended = true;
                }
                Err(SetError::Internal(error)) => return Err(error),
            }
        }
        Ok(())
    }

    /// Ends the pipeline before its last set, because a set failed or the sink has taken all rows.
    pub(super) fn cut(&mut self, task: &StatementTask<'_>, progress: &mut Progress) {
        if !progress.ended {
            self.finish_pipeline(task, progress);
        }
    }

    fn finish_pipeline(&mut self, task: &StatementTask<'_>, progress: &mut Progress) {
        progress.ended = true;
        self.sync();
        // The reset is sent in the same write, so it costs the caller no time.
        if task.position == TransactionPosition::Alone && self.session.side_effects().is_reset_due()
        {
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
    /// Whether the pipeline also prepares the statement, with the description from another
    /// connection.
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
        let types = types.map(tidegate_values::Type::oid);
        push_parse(statements, out, self.task, (&self.prepared.name, types)).ok()
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
    let behind_switch = out.len();
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
        let sets = out.split_off(behind_switch);
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
pub(super) struct ParameterSet<'a> {
    pub(super) task: &'a StatementTask<'a>,
    pub(super) prepared: &'a PreparedStatement,
    pub(super) index: usize,
    /// Whether to request a description of the portal, to confirm the cached one.
    pub(super) describe: bool,
}

impl ParameterSet<'_> {
    /// Queues the parameter set. On failure, queues nothing.
    pub(super) fn push(&self, out: &mut BytesMut) -> Result<(), SetError> {
        let start = out.len();
        if let Err(wrong) = self.bind(out) {
            out.truncate(start);
            return Err(wrong);
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
        let mut wrong = None;
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
                    wrong = Some(error);
                    Err("a value that does not fit".into())
                }
            }
        };
        let (name, formats) = (&self.prepared.name, description.formats.iter().copied());
        let outcome = frontend::bind("", name, [], 0..values.len(), encode, formats, out);
        match (outcome, wrong) {
            (Ok(()), _) => Ok(()),
            (Err(_), Some(wrong)) => Err(SetError::Input(wrong.into())),
            (Err(BindError::Conversion(error)), None) => {
                Err(SetError::Internal(Error::Internal(error)))
            }
            (Err(BindError::Serialization(error)), None) => {
                Err(SetError::Internal(Error::internal(error)))
            }
        }
    }
}
