//! Writes the columns of rows as JSON text.

use std::sync::Arc;

use bytes::BytesMut;
use tidegate_sql::{Error, Result};
use tidegate_values::Column;

use super::cell::Cell;
use super::keys::Keys;
use super::program::{NONE, Op, OutputForm, Program, narrow};
use super::projection::Inner;
use crate::PathSegment;

/// The initial capacity of the text, enough for a few rows. A buffer that starts empty would be
/// reallocated often.
const INITIAL_CAPACITY: usize = 1024;

/// Writes the text of a level's rows, and collects the insertion points, field errors and keys of
/// the rows.
#[derive(Debug, Default)]
pub(crate) struct RowTextWriter {
    /// The texts of all rows, each followed by a comma.
    pub(crate) text: BytesMut,
    pub(crate) insertion_points: Vec<InsertionPoint>,
    pub(crate) field_errors: Vec<RowFieldError>,
    /// For each child, the keys by which its rows are found.
    pub(crate) children: Vec<Keys>,
    /// For each column after those that assign rows to lists, the writer of its values; `None` if
    /// the column is not written.
    cells: Vec<Option<Cell>>,
    /// The joined rows that enclose the current instruction, the innermost last.
    open: Vec<OpenRow>,
    /// The field errors of the value that is being written.
    inner: Vec<Inner>,
}

/// A position in the text at which the rows of a child are inserted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InsertionPoint {
    /// The byte offset of the insertion point in the text.
    pub(crate) at: u32,
    /// The index of the child.
    pub(crate) child: u32,
    /// The slot of the row's key, which is also the index of the child's list; `NONE` if a key
    /// column is NULL.
    pub(crate) slot: u32,
}

/// An error of one value in a row, which the response shows as a field error.
#[derive(Debug)]
pub(crate) struct RowFieldError {
    pub(crate) row: u32,
    pub(crate) path: Vec<PathSegment>,
    pub(crate) problem: &'static str,
}

/// A position in the program and in the columns of the row.
#[derive(Clone, Copy, Debug, Default)]
struct Position {
    op: usize,
    column: usize,
}

/// A joined row whose object is being written.
#[derive(Debug)]
struct OpenRow {
    key: Arc<str>,
    /// The byte offset at which the object's text begins.
    start: usize,
    /// The number of insertion points that were recorded before the joined row.
    insertion_points: usize,
    /// The position after the joined row.
    end: Position,
}

/// The result of writing a value.
enum ValueOutcome {
    /// The value was written, or null instead of it.
    Yes,
    /// GraphQL cannot represent the value, and the field is non-null.
    No,
}

impl RowTextWriter {
    pub(super) fn new(children: Vec<Keys>) -> Self {
        Self {
            text: BytesMut::with_capacity(INITIAL_CAPACITY),
            children,
            ..Self::default()
        }
    }

    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.insertion_points.clear();
        self.field_errors.clear();
        for keys in &mut self.children {
            keys.clear();
        }
    }

    /// Chooses the writer of each column. The first `header` columns only assign rows to lists.
    /// `columns` returns the description of a column by its position.
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
                    let described = columns(column).ok_or_else(wrong_column_count)?;
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

    /// Appends the text of the row with the index `row`.
    pub(super) fn row<'v>(
        &mut self,
        program: &Program,
        row: u32,
        values: &mut impl Iterator<Item = Option<&'v [u8]>>,
    ) -> Result<()> {
        let (start, insertion_points) = (self.text.len(), self.insertion_points.len());
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
                    let raw = values.next().ok_or_else(wrong_column_count)?;
                    let cell = self.cells.get(at.column - 1).and_then(Option::as_ref);
                    if let (Some(raw), Some(writer)) = (raw, cell.and_then(Cell::plain)) {
                        writer.json(raw, &mut self.text)?;
                        continue;
                    }
                    let value = (raw, form);
                    let shown = self.value(value, (row, at.column - 1, op), *not_null)?;
                    if matches!(shown, ValueOutcome::Yes) {
                        continue;
                    }
                    // The field must not be null, so null replaces the innermost joined row that
                    // contains it, or the row itself.
                    let Some(open) = self.open.pop() else {
                        self.null_from(start, insertion_points);
                        return Ok(());
                    };
                    self.null_from(open.start, open.insertion_points);
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
                    if values.next().ok_or_else(wrong_column_count)?.is_some() {
                        self.open(key, end);
                    } else {
                        self.text.extend_from_slice(b"null");
                        skip(values, end.column - at.column);
                        at = end;
                    }
                }
                Op::Children { child, .. } => at.column += self.insertion_point(*child, values),
            }
        }
        Ok(())
    }

    /// Appends a value or null.
    fn value(
        &mut self,
        (raw, form): (Option<&[u8]>, &OutputForm),
        (row, column, op): (u32, usize, &Op),
        not_null: bool,
    ) -> Result<ValueOutcome> {
        let Some(raw) = raw else {
            self.text.extend_from_slice(b"null");
            return Ok(ValueOutcome::Yes);
        };
        let start = self.text.len();
        let cell = self.cells.get(column).and_then(Option::as_ref);
        let cell = cell.ok_or_else(wrong_column_count)?;
        let shown = cell.write(raw, form, &mut self.text, &mut self.inner)?;
        if !self.inner.is_empty() {
            self.note(row, op);
        }
        if shown {
            return Ok(ValueOutcome::Yes);
        }
        if not_null {
            return Ok(ValueOutcome::No);
        }
        self.null_from(start, self.insertion_points.len());
        Ok(ValueOutcome::Yes)
    }

    /// Truncates the text at `start` and appends null. Keeps only the first `insertion_points`
    /// insertion points.
    fn null_from(&mut self, start: usize, insertion_points: usize) {
        self.text.truncate(start);
        self.text.extend_from_slice(b"null");
        self.insertion_points.truncate(insertion_points);
    }

    /// Closes the joined rows that end before the instruction `op`.
    fn close(&mut self, op: usize) {
        while self.open.last().is_some_and(|open| open.end.op <= op) {
            self.open.pop();
        }
    }

    fn open(&mut self, key: &Arc<str>, end: Position) {
        self.open.push(OpenRow {
            key: key.clone(),
            start: self.text.len(),
            insertion_points: self.insertion_points.len(),
            end,
        });
    }

    /// Records an insertion point for a child, whose key is read from `values`; returns the number
    /// of key columns.
    fn insertion_point<'v>(
        &mut self,
        child: usize,
        values: &mut impl Iterator<Item = Option<&'v [u8]>>,
    ) -> usize {
        let keys = &mut self.children[child];
        self.insertion_points.push(InsertionPoint {
            at: narrow(self.text.len()),
            child: narrow(child),
            slot: keys.insert(values).unwrap_or(NONE),
        });
        keys.width()
    }

    /// Records the field errors of a value, with their paths within the row.
    #[cold]
    fn note(&mut self, row: u32, op: &Op) {
        let (within, key) = match op {
            Op::Value { within, key, .. } => (within.as_ref(), Some(key)),
            _ => (None, None),
        };
        for (mut rest, problem) in self.inner.drain(..) {
            let keys = self.open.iter().map(|open| &open.key);
            let keys = keys.chain(within).chain(key);
            let mut path: Vec<_> = keys.cloned().map(PathSegment::Key).collect();
            path.append(&mut rest);
            self.field_errors.push(RowFieldError { row, path, problem });
        }
    }
}

fn skip<'v>(values: &mut impl Iterator<Item = Option<&'v [u8]>>, count: usize) {
    for _ in 0..count {
        values.next();
    }
}

#[cold]
pub(crate) fn wrong_column_count() -> Error {
    Error::internal("PostgreSQL returned other columns than the plan asked for")
}
