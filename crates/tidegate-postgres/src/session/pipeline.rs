//! Parameter sets on their way to PostgreSQL.

use std::sync::Arc;

use bytes::BytesMut;
use postgres_protocol::message::frontend::{self, BindError};
use tidegate_sql::statement::Kind;
use tidegate_sql::{Error, InputError};
use tidegate_values::parameter::{self, IsNull};

use super::cache::{Prepared, StatementCache};
use super::own::push_prepared;
use super::prepare::push_parse;
use super::task::{Place, Task};
use crate::connection::Connection;

/// How much is encoded ahead: sets beyond it wait until PostgreSQL has taken some.
pub(super) const AHEAD: usize = 64 << 10;

/// How far the sets of a statement have come.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The next set to be encoded.
    pub(super) next: usize,
    /// Whether the Sync has been queued.
    ended: bool,
    /// Whether the Sync waits until the sink has taken all rows.
    held: bool,
    /// What is wrong with a set.
    pub(super) wrong: Option<InputError>,
}

impl Connection {
    /// Queues sets up to the limit, and the end of the pipeline behind the last.
    pub(super) fn fill(
        &mut self,
        task: &Task<'_>,
        prepared: &Prepared,
        progress: &mut Progress,
        guessed: bool,
    ) -> Result<(), Error> {
        while !progress.ended && !progress.held && self.channel.outbound.len() < AHEAD {
            if progress.next == task.bound.sets.len() {
                if is_undone_for_rows(task, prepared) {
                    progress.held = true;
                    frontend::flush(&mut self.channel.outbound);
                } else {
                    self.finish_pipeline(task, progress);
                }
                break;
            }
            let set = Set {
                task,
                prepared,
                index: progress.next,
                describe: guessed && progress.next == 0,
            };
            match set.push(&mut self.channel.outbound) {
                Ok(()) => progress.next += 1,
                Err(Wrong::Input(wrong)) if progress.next == 0 && !guessed => {
                    // Nothing of the pipeline has left this process.
                    self.withdraw();
                    return Err(Error::Input(wrong));
                }
                Err(Wrong::Input(wrong)) => {
                    progress.wrong = Some(wrong);
                    self.abort();
                    progress.ended = true;
                }
                Err(Wrong::Ours(error)) => return Err(error),
            }
        }
        Ok(())
    }

    /// Ends the pipeline: early, because a set has failed, or because the sink has all rows.
    pub(super) fn cut(&mut self, task: &Task<'_>, progress: &mut Progress) {
        if !progress.ended {
            self.finish_pipeline(task, progress);
        }
    }

    fn finish_pipeline(&mut self, task: &Task<'_>, progress: &mut Progress) {
        progress.ended = true;
        self.sync();
        // Behind the answer, in the same write: it costs the caller no time.
        if task.place == Place::Alone && self.session.residue().is_reset_due() {
            self.push_reset();
        }
    }
}

/// Whether what the statement did must be undone when the sink refuses a row of it: PostgreSQL
/// ends the transaction of a statement alone at its Sync, which must then come behind the rows.
fn is_undone_for_rows(task: &Task<'_>, prepared: &Prepared) -> bool {
    task.place == Place::Alone
        && task.bound.statement.kind() == Kind::Write
        && !prepared.shape.columns.is_empty()
}

/// A read of a pipeline that is put together by others, with one set.
pub(crate) struct Read<'a> {
    pub(crate) task: &'a Task<'a>,
    pub(crate) prepared: Arc<Prepared>,
    /// Whether the pipeline prepares it, by what was known of it elsewhere.
    pub(crate) guessed: bool,
}

impl Read<'_> {
    /// Queues the set; `None` when a value does not fit, which a connection of its own reports.
    fn push(&self, out: &mut BytesMut) -> Option<()> {
        let set = Set {
            task: self.task,
            prepared: &self.prepared,
            index: 0,
            describe: self.guessed,
        };
        set.push(out).ok()
    }

    fn push_parse(&self, statements: &mut StatementCache, out: &mut BytesMut) -> Option<()> {
        let types = self.prepared.shape.parameters.iter();
        let types = types.map(tidegate_values::Type::oid);
        push_parse(statements, out, self.task, (&self.prepared.name, types)).ok()
    }
}

/// Queues a pipeline of reads into a buffer that holds others: the role switch, the reads, a Sync.
/// `None`, and nothing is queued, when a value does not fit or it would be longer than `longest`.
pub(crate) fn push_reads(
    statements: &mut StatementCache,
    out: &mut BytesMut,
    reads: &[Read<'_>],
    longest: usize,
) -> Option<()> {
    let start = out.len();
    if push_switch_and_reads(statements, out, reads, longest).is_none() {
        out.truncate(start);
        return None;
    }
    frontend::sync(out);
    Some(())
}

fn push_switch_and_reads(
    statements: &mut StatementCache,
    out: &mut BytesMut,
    reads: &[Read<'_>],
    longest: usize,
) -> Option<()> {
    let start = out.len();
    if let Some(switch) = reads.first()?.task.switch {
        push_prepared(statements, (switch.text, switch.role.as_str()), out)?;
    }
    let behind_switch = out.len();
    reads.iter().try_for_each(|read| read.push(out))?;
    let guessed = reads.iter().filter(|read| read.guessed);
    let texts = guessed
        .clone()
        .map(|read| read.task.bound.statement.text().len());
    if out.len() - start + texts.sum::<usize>() > longest {
        return None;
    }
    let mut guessed = guessed.peekable();
    if guessed.peek().is_some() {
        // A Parse takes with it the Close of what was evicted, so nothing may fail behind it.
        let sets = out.split_off(behind_switch);
        guessed.try_for_each(|read| read.push_parse(statements, out))?;
        out.unsplit(sets);
    }
    Some(())
}

/// Why a set cannot be sent.
pub(super) enum Wrong {
    /// A value does not fit.
    Input(InputError),
    Ours(Error),
}

/// One set of a statement.
pub(super) struct Set<'a> {
    pub(super) task: &'a Task<'a>,
    pub(super) prepared: &'a Prepared,
    pub(super) index: usize,
    /// Whether PostgreSQL shall say again what comes back.
    pub(super) describe: bool,
}

impl Set<'_> {
    /// Queues the set, or nothing.
    pub(super) fn push(&self, out: &mut BytesMut) -> Result<(), Wrong> {
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
            .map_err(|error| Wrong::Ours(Error::internal(error)))
    }

    fn bind(&self, out: &mut BytesMut) -> Result<(), Wrong> {
        let (bound, shape) = (self.task.bound, &self.prepared.shape);
        let values = &bound.sets[self.index];
        if values.len() != shape.parameters.len() {
            let miscounted = "PostgreSQL counts other parameters than we do";
            return Err(Wrong::Ours(Error::internal(miscounted)));
        }
        let mut wrong = None;
        let encode = |index: usize, out: &mut BytesMut| {
            let format = bound.formats.get(index).and_then(Option::as_ref);
            let place = || bound.place(self.index, index);
            match parameter::encode(
                &values[index],
                &shape.parameters[index],
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
        let (name, formats) = (&self.prepared.name, shape.formats.iter().copied());
        let outcome = frontend::bind("", name, [], 0..values.len(), encode, formats, out);
        match (outcome, wrong) {
            (Ok(()), _) => Ok(()),
            (Err(_), Some(wrong)) => Err(Wrong::Input(wrong.into())),
            (Err(BindError::Conversion(error)), None) => Err(Wrong::Ours(Error::Internal(error))),
            (Err(BindError::Serialization(error)), None) => {
                Err(Wrong::Ours(Error::internal(error)))
            }
        }
    }
}
