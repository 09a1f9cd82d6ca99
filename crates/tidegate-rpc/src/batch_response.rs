//! The response to a batch, to which its calls append one after the other.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tidegate_sql::{Completion, Flow, Result, RowSink};
use tidegate_values::{Column, RawRow};

use crate::id::Id;
use crate::output::Output;
use crate::reply::{self, List};
use crate::result::ResultWriter;

/// The response to a batch. The lock is never contended, because the sinks of a pipeline are called
/// one after the other.
pub(crate) struct BatchResponse<'a>(Mutex<ResponseState<'a>>);

struct ResponseState<'a> {
    out: &'a mut dyn Output,
    list: List,
}

impl<'a> BatchResponse<'a> {
    pub(crate) fn new(out: &'a mut dyn Output) -> Self {
        let list = List::default();
        Self(Mutex::new(ResponseState { out, list }))
    }

    /// Writes the end of the response, if the batch has a response.
    pub(crate) fn end(&self) {
        let mut written = self.lock();
        if written.list.has_begun() {
            written.out.bytes().extend_from_slice(b"]");
        }
    }

    fn lock(&self) -> MutexGuard<'_, ResponseState<'a>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A sink that writes the response to one call of the batch.
pub(crate) struct CallSink<'a, 'o> {
    response: &'a BatchResponse<'o>,
    id: Id<'a>,
    result: ResultWriter,
    /// Whether the result has columns. A result without columns is short, and is not checked
    /// against the limit on the size of the response. If no call of the batch returns rows, the
    /// commit is sent with the statements, so a failed check would come too late.
    has_columns: bool,
}

impl<'a, 'o> CallSink<'a, 'o> {
    pub(crate) fn new(response: &'a BatchResponse<'o>, id: Id<'a>, result: ResultWriter) -> Self {
        Self {
            response,
            id,
            result,
            has_columns: false,
        }
    }

    fn check(&self, written: &mut ResponseState<'_>) -> Result<()> {
        if self.has_columns {
            written.out.check()?;
        }
        Ok(())
    }
}

impl RowSink for CallSink<'_, '_> {
    fn columns(&mut self, columns: &[Column]) -> Result<()> {
        self.has_columns = !columns.is_empty();
        let mut written = self.response.lock();
        let ResponseState { out, list } = &mut *written;
        list.separate(out.bytes());
        reply::begin_result(self.id, out.bytes());
        self.result.columns(columns, out.bytes())?;
        self.check(&mut written)
    }

    fn row(&mut self, row: RawRow<'_>) -> Result<Flow> {
        let mut written = self.response.lock();
        self.result.row(row, written.out.bytes())?;
        written.out.check()?;
        Ok(Flow::Continue)
    }

    fn end(&mut self, completion: Completion) -> Result<()> {
        let mut written = self.response.lock();
        self.result.finish(completion, written.out.bytes())?;
        written.out.bytes().extend_from_slice(b"}");
        self.check(&mut written)
    }
}
