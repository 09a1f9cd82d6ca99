//! From the columns of a row to its text.

use std::sync::Arc;

use bytes::BytesMut;
use tidegate_sql::{Error, Result};
use tidegate_values::Column;

use super::cell::Cell;
use super::keys::Keys;
use super::offset::{NONE, narrow};
use super::program::{Form, Op, Program};
use super::shown::Inner;
use crate::Segment;

/// Bytes that the text of a few rows takes: a buffer that begins empty grows in many steps.
const FEW_ROWS: usize = 1024;

/// The text of the rows of a level so far, and what is known beside it.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    /// Each row, with a comma behind it.
    pub(crate) text: BytesMut,
    pub(crate) holes: Vec<Hole>,
    pub(crate) flaws: Vec<RowFlaw>,
    /// The keys of the rows, by child.
    pub(crate) children: Vec<Keys>,
    /// By column; none for those that are not shown.
    cells: Vec<Option<Cell>>,
    /// The joined rows around the current instruction.
    open: Vec<Open>,
    inner: Vec<Inner>,
}

/// Where children go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hole {
    /// Behind which byte of the text.
    pub(crate) at: u32,
    /// Whose.
    pub(crate) child: u32,
    /// Which list of them; none for a key of NULL.
    pub(crate) slot: u32,
}

/// A value of a row that cannot be shown.
#[derive(Debug)]
pub(crate) struct RowFlaw {
    pub(crate) row: u32,
    pub(crate) path: Vec<Segment>,
    pub(crate) problem: &'static str,
}

/// An instruction and a column, by their numbers.
#[derive(Clone, Copy, Debug, Default)]
struct Position {
    op: usize,
    column: usize,
}

/// A joined row that is being written.
#[derive(Debug)]
struct Open {
    key: Arc<str>,
    /// Where its text begins.
    start: usize,
    holes: usize,
    /// What follows it.
    end: Position,
}

/// What became of a value.
enum Shown {
    /// It or null was written, and the row goes on.
    Yes,
    /// It cannot be shown, and its field may not be null.
    No,
}

impl Writer {
    pub(super) fn new(children: Vec<Keys>) -> Self {
        Self {
            text: BytesMut::with_capacity(FEW_ROWS),
            children,
            ..Self::default()
        }
    }

    /// Forgets what was written.
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.holes.clear();
        self.flaws.clear();
        for keys in &mut self.children {
            keys.clear();
        }
    }

    /// Decides how each column is written; the first `header` columns belong to no instruction.
    pub(super) fn columns<'c>(
        &mut self,
        program: &Program,
        header: usize,
        columns: impl Fn(usize) -> Option<&'c Column>,
    ) -> Result<()> {
        let mut column = header;
        self.cells.clear();
        self.cells.reserve(program.expressions.len());
        for op in &program.ops {
            match op {
                Op::Text(_) => {}
                Op::Value { form, .. } => {
                    let described = columns(column).ok_or_else(miscounted)?;
                    self.cells.resize_with(column - header, || None);
                    self.cells.push(Some(Cell::new(described, form)));
                    column += 1;
                }
                Op::Joined { .. } => column += 1,
                Op::Children { child, .. } => column += self.children[*child].width(),
            }
        }
        Ok(())
    }

    /// Appends the text of a row of this number.
    pub(super) fn row<'v>(
        &mut self,
        program: &Program,
        row: u32,
        values: &mut impl Iterator<Item = Option<&'v [u8]>>,
    ) -> Result<()> {
        let (start, holes) = (self.text.len(), self.holes.len());
        let mut at = Position::default();
        self.open.clear();
        while let Some(op) = program.ops.get(at.op) {
            if !self.open.is_empty() {
                self.close(at.op);
            }
            at.op += 1;
            self.text.extend_from_slice(&program.literals[op.text()]);
            match op {
                Op::Text(_) => {}
                Op::Value { not_null, form, .. } => {
                    at.column += 1;
                    let value = (values.next().ok_or_else(miscounted)?, form);
                    let shown = self.value(value, (row, at.column - 1, op), *not_null)?;
                    if matches!(shown, Shown::Yes) {
                        continue;
                    }
                    // The null goes up to the joined row, or to the row itself.
                    let Some(open) = self.open.pop() else {
                        self.null_from(start, holes);
                        return Ok(());
                    };
                    self.null_from(open.start, open.holes);
                    skip(values, open.end.column - at.column);
                    at = open.end;
                }
                Op::Joined {
                    key, end, columns, ..
                } => {
                    at.column += 1;
                    let end = Position {
                        op: *end,
                        column: *columns,
                    };
                    if values.next().ok_or_else(miscounted)?.is_some() {
                        self.open(key, end);
                    } else {
                        self.text.extend_from_slice(b"null");
                        skip(values, end.column - at.column);
                        at = end;
                    }
                }
                Op::Children { child, .. } => at.column += self.hole(*child, values),
            }
        }
        Ok(())
    }

    /// Appends a value or null.
    #[inline]
    fn value(
        &mut self,
        (raw, form): (Option<&[u8]>, &Form),
        (row, column, op): (u32, usize, &Op),
        not_null: bool,
    ) -> Result<Shown> {
        let Some(raw) = raw else {
            self.text.extend_from_slice(b"null");
            return Ok(Shown::Yes);
        };
        let start = self.text.len();
        let cell = self.cells.get(column).and_then(Option::as_ref);
        let cell = cell.ok_or_else(miscounted)?;
        let shown = cell.write(raw, form, &mut self.text, &mut self.inner)?;
        if !self.inner.is_empty() {
            self.note(row, op);
        }
        if shown {
            return Ok(Shown::Yes);
        }
        if not_null {
            return Ok(Shown::No);
        }
        self.null_from(start, self.holes.len());
        Ok(Shown::Yes)
    }

    /// Puts null in place of what was written since.
    fn null_from(&mut self, start: usize, holes: usize) {
        self.text.truncate(start);
        self.text.extend_from_slice(b"null");
        self.holes.truncate(holes);
    }

    /// Leaves the joined rows that end in front of an instruction.
    fn close(&mut self, op: usize) {
        while self.open.last().is_some_and(|open| open.end.op <= op) {
            self.open.pop();
        }
    }

    fn open(&mut self, key: &Arc<str>, end: Position) {
        self.open.push(Open {
            key: key.clone(),
            start: self.text.len(),
            holes: self.holes.len(),
            end,
        });
    }

    /// Leaves room for children; tells how many columns their key has.
    fn hole<'v>(
        &mut self,
        child: usize,
        values: &mut impl Iterator<Item = Option<&'v [u8]>>,
    ) -> usize {
        let keys = &mut self.children[child];
        self.holes.push(Hole {
            at: narrow(self.text.len()),
            child: narrow(child),
            slot: keys.insert(values).unwrap_or(NONE),
        });
        keys.width()
    }

    /// Remembers what is wrong with a row, with the path from the row on.
    #[cold]
    fn note(&mut self, row: u32, op: &Op) {
        let (within, key) = match op {
            Op::Value { within, key, .. } => (within.as_ref(), Some(key)),
            _ => (None, None),
        };
        for (mut rest, problem) in self.inner.drain(..) {
            let keys = self.open.iter().map(|open| &open.key);
            let keys = keys.chain(within).chain(key);
            let mut path: Vec<_> = keys.cloned().map(Segment::Key).collect();
            path.append(&mut rest);
            self.flaws.push(RowFlaw { row, path, problem });
        }
    }
}

fn skip<'v>(values: &mut impl Iterator<Item = Option<&'v [u8]>>, count: usize) {
    for _ in 0..count {
        values.next();
    }
}

#[cold]
pub(crate) fn miscounted() -> Error {
    Error::internal("PostgreSQL returned other columns than the plan asked for")
}
