//! Parameter sets on their way to PostgreSQL.

use bytes::BytesMut;
use postgres_protocol::message::frontend::{self, BindError};
use tidegate_sql::parameter::{self, IsNull};
use tidegate_sql::statement::Kind;
use tidegate_sql::{Error, InputError};

use super::cache::{Prepared, StatementCache};
use super::prefix::push_switch;
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

/// Queues a read with one set and its end into a buffer of several, or nothing: when a value does
/// not fit, whoever asks on a connection of its own is told.
pub(crate) fn push_read(
    statements: &mut StatementCache,
    out: &mut BytesMut,
    task: &Task<'_>,
    (prepared, guessed): (&Prepared, bool),
) -> Option<()> {
    let set = Set {
        task,
        prepared,
        index: 0,
        describe: guessed,
    };
    if let Some(switch) = task.switch {
        push_switch(statements.prepared_switch()?, switch.role, out).ok()?;
    }
    if guessed {
        let mut bound = BytesMut::new();
        set.push(&mut bound).ok()?;
        let types = prepared
            .shape
            .parameters
            .iter()
            .map(tidegate_sql::Type::oid);
        push_parse(statements, out, task, (&prepared.name, types)).ok()?;
        out.extend_from_slice(&bound);
    } else {
        set.push(out).ok()?;
    }
    frontend::sync(out);
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
            (Err(_), Some(wrong)) => Err(Wrong::Input(wrong)),
            (Err(BindError::Conversion(error)), None) => Err(Wrong::Ours(Error::Internal(error))),
            (Err(BindError::Serialization(error)), None) => {
                Err(Wrong::Ours(Error::internal(error)))
            }
        }
    }
}
