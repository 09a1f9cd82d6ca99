//! Responses that are collected before the first byte is sent, so that an error can still get a
//! response with its own status.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tidegate_sql::{Completion, Error, Flow, Result, RowSink};
use tidegate_values::{Column, OutputFormat, RawRow, RowWriter};

use crate::app::App;
use crate::authenticate::Caller;
use crate::body::Content;
use crate::memory::{Exhausted, Reservation};

/// The size in bytes of the pieces in which a response is collected. A single buffer would be
/// copied each time it grows, and up to half of its capacity would be unused.
const PIECE: usize = 256 * 1024;
/// The initial capacity of the first piece in bytes. Most responses fit into it.
const FIRST: usize = 4 * 1024;

/// The collected bytes of a response, in pieces and up to a limit.
pub struct Pieces {
    full: VecDeque<Bytes>,
    full_size: u64,
    open: BytesMut,
    limit: u64,
    /// The reservation in the memory budget for the full pieces.
    reservation: Reservation,
}

opaque_debug!(Pieces);

impl Pieces {
    /// An empty response. Its full pieces are charged to the caller's account in the memory budget.
    pub fn of(app: &App, caller: &Caller) -> Self {
        Self {
            full: VecDeque::new(),
            full_size: 0,
            open: BytesMut::with_capacity(FIRST),
            limit: app.limits().response,
            reservation: app.memory().reservation(caller.holder()),
        }
    }

    /// Appends bytes to the piece that is being filled.
    pub fn push(&mut self, bytes: &[u8]) {
        self.open.extend_from_slice(bytes);
    }

    /// The piece that is being filled, for appending to it.
    pub fn open(&mut self) -> &mut BytesMut {
        &mut self.open
    }

    /// Removes all bytes. The reservation for them remains.
    pub fn discard(&mut self) {
        self.full.clear();
        self.full_size = 0;
        self.open.clear();
    }

    /// Checks the limit on the response, and starts a new piece if the current piece is full.
    ///
    /// # Errors
    ///
    /// [`Error::ResultTooLarge`] beyond the limit, and [`Error::Unavailable`] if the memory budget
    /// is used up.
    pub fn close_full(&mut self) -> Result<()> {
        if self.full_size + self.open.len() as u64 > self.limit {
            return Err(Error::ResultTooLarge(self.limit));
        }
        if self.open.len() >= PIECE {
            self.reservation
                .take(self.open.len() as u64)
                .map_err(exhausted)?;
            let next = BytesMut::with_capacity(PIECE + PIECE / 8);
            let piece = std::mem::replace(&mut self.open, next).freeze();
            self.full_size += piece.len() as u64;
            self.full.push_back(piece);
        }
        Ok(())
    }
}

/// The error for a used-up memory budget. The source of the error distinguishes it from an
/// unavailable database.
fn exhausted(source: Exhausted) -> Error {
    Error::Unavailable {
        retry_after: Duration::from_secs(1),
        source: Some(source.into()),
    }
}

impl From<Pieces> for Content {
    fn from(pieces: Pieces) -> Self {
        let Pieces {
            mut full,
            full_size,
            open,
            reservation,
            ..
        } = pieces;
        if full.is_empty() {
            return Self::Whole(open.freeze());
        }
        let size = full_size + open.len() as u64;
        if !open.is_empty() {
            full.push_back(open.freeze());
        }
        Self::Pieces {
            pieces: full,
            size,
            reservation: Some(reservation),
        }
    }
}

/// Collects the rows of a result.
pub(crate) struct Collector {
    writer: RowWriter,
    pieces: Pieces,
}

impl Collector {
    /// A collector that appends the result to `pieces`.
    pub(crate) fn new(writer: RowWriter, pieces: Pieces) -> Self {
        Self { writer, pieces }
    }

    /// The format of the result. It is final once the columns of the result are known.
    pub(crate) fn format(&self) -> OutputFormat {
        self.writer.format()
    }

    /// Ends the result and returns the response.
    pub(crate) fn finish(mut self, completion: Completion) -> Result<Pieces> {
        self.writer
            .finish(completion.affected_rows, &mut self.pieces.open);
        self.pieces.close_full()?;
        Ok(self.pieces)
    }
}

/// Passes the columns of a result to its writer. A result without columns is always written as
/// JSON.
pub(super) fn start(writer: &mut RowWriter, columns: &[Column], out: &mut BytesMut) -> Result<()> {
    if columns.is_empty() {
        writer.fall_back_to_json();
    }
    Ok(writer.columns(columns, out)?)
}

impl RowSink for Collector {
    fn columns(&mut self, columns: &[Column]) -> Result<()> {
        start(&mut self.writer, columns, &mut self.pieces.open)?;
        self.pieces.close_full()
    }

    fn row(&mut self, row: RawRow<'_>) -> Result<Flow> {
        self.writer.row(row, &mut self.pieces.open)?;
        self.pieces.close_full()?;
        Ok(Flow::Continue)
    }
}
