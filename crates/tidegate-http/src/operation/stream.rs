//! Responses that are sent while the statement runs, in constant memory.
//!
//! The statement runs inside the body: it makes progress only when the client reads. When the
//! client disconnects, the body is dropped, which cancels the statement in PostgreSQL.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use tidegate_sql::{
    BoundStatement, BoxFuture, Completion, Error, Executor, Flow, Principal, Result, RowSink,
};
use tidegate_values::{Column, OutputFormat, RawRow, RowWriter};

use super::access::Permit;
use crate::body::{BodyAborted, BodySource, Content};
use crate::error::ApiError;
use crate::report;

/// The size of a chunk in bytes. The status is sent when the first chunk is full.
const CHUNK: usize = 64 * 1024;

/// A statement and the parts that its execution needs.
pub struct StatementRun {
    /// The executor.
    pub executor: Arc<dyn Executor>,
    /// The database and role that the statement runs as.
    pub principal: Principal,
    /// The statement with its values.
    pub statement: BoundStatement,
    /// The permission to run the statement.
    pub permit: Permit,
}

opaque_debug!(StatementRun);

/// Runs the statement until the first chunk of the response is full or the statement ends. Returns
/// the error if the statement fails before the first chunk is full. A later error can only abort
/// the response, and is logged with the context that `log` returns. A response that fits into one
/// chunk is returned as a whole. The returned format is the format of the writer, or JSON for a
/// statement without result columns.
pub async fn run(
    job: StatementRun,
    writer: RowWriter,
    log: impl FnOnce() -> OwnedContext,
) -> Result<(OutputFormat, Content)> {
    let asked = writer.format();
    let slot = Arc::new(ChunkSlot::default());
    let mut running = start(job, writer, Arc::clone(&slot));
    let first = poll_fn(|cx| match running.as_mut().poll(cx) {
        Poll::Ready(ended) => Poll::Ready(FirstPoll::Ended(ended)),
        Poll::Pending => slot
            .take()
            .map_or(Poll::Pending, |chunk| Poll::Ready(FirstPoll::Chunk(chunk))),
    });
    let content = match first.await {
        FirstPoll::Ended(Err(error)) => return Err(error),
        FirstPoll::Ended(Ok(rest)) => match slot.take() {
            None => Content::Whole(rest),
            Some(chunk) => {
                let size = (chunk.len() + rest.len()) as u64;
                Content::Pieces {
                    pieces: VecDeque::from([chunk, rest]),
                    size,
                    reservation: None,
                }
            }
        },
        FirstPoll::Chunk(chunk) => {
            let running = Some(running);
            let rows = StreamedRows {
                ready: VecDeque::from([chunk]),
                running,
                slot: Arc::clone(&slot),
                log: log(),
            };
            Content::Streamed(Box::pin(rows))
        }
    };
    Ok((slot.lock().format.unwrap_or(asked), content))
}

enum FirstPoll {
    Chunk(Bytes),
    Ended(Result<Bytes>),
}

/// The running statement. Its result is the bytes after the last full chunk.
type Running = BoxFuture<'static, Result<Bytes>>;

fn start(job: StatementRun, writer: RowWriter, slot: Arc<ChunkSlot>) -> Running {
    Box::pin(async move {
        let StatementRun {
            executor,
            principal,
            statement,
            permit,
        } = job;
        let mut sink = Sink {
            writer,
            bytes: BytesMut::with_capacity(CHUNK / 16),
            slot,
        };
        let completion = permit
            .run(&*executor, &principal, &statement, &mut sink)
            .await?;
        Ok(sink.finish(completion))
    })
}

/// Holds a full chunk until the client reads it.
#[derive(Default)]
struct ChunkSlot(Mutex<SlotState>);

#[derive(Default)]
struct SlotState {
    chunk: Option<Bytes>,
    writer: Option<Waker>,
    /// The format of the response; `None` until the columns of the result are known.
    format: Option<OutputFormat>,
}

impl ChunkSlot {
    fn put(&self, chunk: Bytes) {
        self.lock().chunk = Some(chunk);
    }

    fn take(&self) -> Option<Bytes> {
        let mut waiting = self.lock();
        let chunk = waiting.chunk.take()?;
        if let Some(writer) = waiting.writer.take() {
            writer.wake();
        }
        Some(chunk)
    }

    fn poll_empty(&self, cx: &Context<'_>) -> Poll<()> {
        let mut waiting = self.lock();
        if waiting.chunk.is_none() {
            return Poll::Ready(());
        }
        waiting.writer = Some(cx.waker().clone());
        Poll::Pending
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, SlotState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes rows into chunks and puts full chunks into the slot.
struct Sink {
    writer: RowWriter,
    bytes: BytesMut,
    slot: Arc<ChunkSlot>,
}

impl Sink {
    fn finish(mut self, completion: Completion) -> Bytes {
        self.writer
            .finish(completion.affected_rows, &mut self.bytes);
        self.bytes.freeze()
    }
}

impl RowSink for Sink {
    fn columns(&mut self, columns: &[Column]) -> Result<()> {
        super::collect::start(&mut self.writer, columns, &mut self.bytes)?;
        self.slot.lock().format = Some(self.writer.format());
        Ok(())
    }

    fn row(&mut self, row: RawRow<'_>) -> Result<Flow> {
        self.writer.row(row, &mut self.bytes)?;
        Ok(if self.bytes.len() < CHUNK {
            Flow::Continue
        } else {
            Flow::Wait
        })
    }

    fn ready(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            if self.bytes.len() >= CHUNK {
                poll_fn(|cx| self.slot.poll_empty(cx)).await;
                let next = BytesMut::with_capacity(CHUNK + CHUNK / 8);
                self.slot
                    .put(std::mem::replace(&mut self.bytes, next).freeze());
            }
            poll_fn(|cx| self.slot.poll_empty(cx)).await;
            Ok(())
        })
    }
}

/// The request to which a response belongs, for the log.
#[derive(Debug)]
pub struct OwnedContext {
    request_id: String,
    route: &'static str,
    database: String,
    role: String,
}

impl OwnedContext {
    /// An owned copy of `context`.
    pub fn new(context: &report::Context<'_>) -> Self {
        Self {
            request_id: context.request_id.to_owned(),
            route: context.route,
            database: context.database.unwrap_or_default().to_owned(),
            role: context.role.unwrap_or_default().to_owned(),
        }
    }

    fn log(&self, failure: &ApiError) {
        let context = report::Context {
            request_id: &self.request_id,
            route: self.route,
            database: Some(&self.database),
            role: Some(&self.role),
        };
        failure.log_abort(&context);
    }
}

/// A response that is sent while its statement runs. `ready` has the chunks that can be sent now,
/// at the beginning only the first chunk.
struct StreamedRows {
    ready: VecDeque<Bytes>,
    running: Option<Running>,
    slot: Arc<ChunkSlot>,
    log: OwnedContext,
}

impl BodySource for StreamedRows {
    fn is_statement(&self) -> bool {
        true
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Bytes, BodyAborted>>> {
        let rows = &mut *self;
        if let Some(chunk) = rows.ready.pop_front() {
            return Poll::Ready(Some(Ok(chunk)));
        }
        let Some(running) = &mut rows.running else {
            return Poll::Ready(None);
        };
        let ended = running.as_mut().poll(cx);
        let chunk = rows.slot.take();
        match ended {
            Poll::Pending => chunk.map_or(Poll::Pending, |chunk| Poll::Ready(Some(Ok(chunk)))),
            Poll::Ready(Ok(rest)) => {
                rows.running = None;
                rows.ready.extend(chunk);
                rows.ready
                    .extend(Some(rest).filter(|rest| !rest.is_empty()));
                Poll::Ready(rows.ready.pop_front().map(Ok))
            }
            Poll::Ready(Err(error)) => {
                rows.running = None;
                rows.interrupted(error);
                Poll::Ready(Some(Err(BodyAborted)))
            }
        }
    }
}

impl StreamedRows {
    fn interrupted(&self, error: Error) {
        self.log.log(&ApiError::from_sql(error, false));
    }
}
