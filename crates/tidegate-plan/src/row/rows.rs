//! The rows of one level, as JSON text with holes where children go.

use std::sync::Arc;

use bytes::BytesMut;
use tidegate_sql::column::Values;
use tidegate_sql::{BoxFuture, Column, Error, Flow, RawRow, Result, RowSink};

use super::cell::{Cell, Inner};
use super::keys::Keys;
use super::program::{Op, Program};
use crate::Segment;

/// No row, or no slot.
pub(crate) const NONE: u32 = u32::MAX;

/// The rows of one level: a sink while its statement runs, then the text that is put together.
#[derive(Debug)]
pub(crate) struct Rows<'a> {
    pub(crate) program: Program<'a>,
    /// The keys of this level's rows, by child.
    pub(crate) children: Vec<Keys>,
    pub(crate) grouping: Grouping,
    /// Of each list at most so many rows.
    pub(crate) most: u32,
    /// Each row, with a comma behind it.
    pub(crate) text: BytesMut,
    pub(crate) list: Vec<Row>,
    pub(crate) slots: Vec<Slot>,
    pub(crate) holes: Vec<Hole>,
    pub(crate) flaws: Vec<RowsFlaw>,
    /// How many rows have come, with those that no list has room for.
    pub(crate) received: u64,
    cells: Vec<Option<Cell>>,
    /// The joined rows around the current instruction.
    open: Vec<Open>,
    inner: Vec<Inner>,
    limit: u64,
}

/// How a row tells to which list it belongs.
#[derive(Debug)]
pub(crate) enum Grouping {
    /// There is one list.
    One,
    /// The first column is the number of the slot, from 1; the keys are kept for another try.
    Ordinal(Keys),
    /// The first columns are the key.
    Key(Keys),
}

/// A row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// Where its text begins and ends.
    pub(crate) text: (u32, u32),
    /// Its first hole; the next row's first is behind its last.
    pub(crate) holes: u32,
    /// The next row of the same list.
    pub(crate) next: u32,
}

/// A list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub(crate) first: u32,
    pub(crate) last: u32,
    pub(crate) count: u32,
    /// Whether there are rows that it has no room for.
    pub(crate) more: bool,
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
pub(crate) struct RowsFlaw {
    pub(crate) row: u32,
    pub(crate) path: Vec<Segment>,
    pub(crate) problem: &'static str,
}

/// A joined row that is being written.
#[derive(Debug)]
struct Open {
    key: Arc<str>,
    /// Where its text begins.
    start: usize,
    holes: usize,
    /// What follows it: an instruction and a column.
    end: (usize, usize),
}

impl Slot {
    pub(crate) const EMPTY: Self = Self {
        first: NONE,
        last: NONE,
        count: 0,
        more: false,
    };
}

impl<'a> Rows<'a> {
    /// No rows yet; `limit` counts the bytes of their text.
    pub(crate) fn new(program: Program<'a>, children: Vec<Keys>, limit: u64) -> Self {
        Self {
            program,
            children,
            grouping: Grouping::One,
            most: u32::MAX,
            text: BytesMut::new(),
            list: Vec::new(),
            slots: vec![Slot::EMPTY],
            holes: Vec::new(),
            flaws: Vec::new(),
            received: 0,
            cells: Vec::new(),
            open: Vec::new(),
            inner: Vec::new(),
            limit: limit.min(u32::MAX.into()),
        }
    }

    /// Forgets the rows, to take them from another statement.
    pub(crate) fn restart(&mut self) {
        self.text.clear();
        self.list.clear();
        self.slots.fill(Slot::EMPTY);
        self.holes.clear();
        self.flaws.clear();
        self.received = 0;
        for keys in &mut self.children {
            keys.clear();
        }
    }

    /// Brings the rows of the only list into the order of `positions`, one for each row.
    pub(crate) fn arrange(&mut self, positions: &[u32]) {
        let mut order: Vec<u32> = (0..narrow(self.list.len())).collect();
        order.sort_unstable_by_key(|row| positions.get(*row as usize));
        for pair in order.windows(2) {
            self.list[pair[0] as usize].next = pair[1];
        }
        if let ([first, .., last] | [first @ last], [slot, ..]) = (&order[..], &mut self.slots[..])
        {
            self.list[*last as usize].next = NONE;
            (slot.first, slot.last) = (*first, *last);
        }
    }

    /// The holes of a row.
    pub(crate) fn holes(&self, row: u32) -> &[Hole] {
        let index = row as usize;
        let end = self
            .list
            .get(index + 1)
            .map_or(self.holes.len(), |next| next.holes as usize);
        &self.holes[self.list[index].holes as usize..end]
    }

    /// The first columns, which are not shown.
    fn header(&self) -> usize {
        match &self.grouping {
            Grouping::One => 0,
            Grouping::Ordinal(_) => 1,
            Grouping::Key(keys) => keys.width(),
        }
    }

    fn slot(&mut self, values: &mut Values<'_>) -> Option<u32> {
        match &mut self.grouping {
            Grouping::One => Some(0),
            Grouping::Ordinal(_) => {
                let ordinal = i64::from_be_bytes(values.next()??.try_into().ok()?);
                u32::try_from(ordinal.checked_sub(1)?).ok()
            }
            Grouping::Key(keys) => keys.find(values),
        }
    }

    /// Appends a row's text.
    fn write(&mut self, values: &mut Values<'_>) -> Result<()> {
        let (start, holes) = (self.text.len(), self.holes.len());
        let (mut at, mut column) = (0, 0);
        self.open.clear();
        while let Some(op) = self.program.ops.get(at) {
            at += 1;
            while self.open.last().is_some_and(|open| open.end.0 < at) {
                self.open.pop();
            }
            match op {
                Op::Text(text) => {
                    self.text
                        .extend_from_slice(&self.program.literals[text.clone()]);
                }
                Op::Value {
                    text,
                    key,
                    not_null,
                    form,
                } => {
                    self.text
                        .extend_from_slice(&self.program.literals[text.clone()]);
                    let raw = values.next().ok_or_else(miscounted)?;
                    column += 1;
                    let Some(raw) = raw else {
                        self.text.extend_from_slice(b"null");
                        continue;
                    };
                    let value = self.text.len();
                    let cell = self.cells.get(column - 1).and_then(Option::as_ref);
                    let cell = cell.ok_or_else(miscounted)?;
                    let shown = cell.write(raw, form, &mut self.text, &mut self.inner)?;
                    if !self.inner.is_empty() {
                        note(
                            &mut self.inner,
                            &self.open,
                            key,
                            self.list.len(),
                            &mut self.flaws,
                        );
                    }
                    if shown {
                        continue;
                    }
                    if !not_null {
                        self.text.truncate(value);
                        self.text.extend_from_slice(b"null");
                        continue;
                    }
                    // The null goes up to the row, which may be null.
                    let Some(open) = self.open.pop() else {
                        self.text.truncate(start);
                        self.holes.truncate(holes);
                        self.text.extend_from_slice(b"null");
                        return Ok(());
                    };
                    self.text.truncate(open.start);
                    self.holes.truncate(open.holes);
                    self.text.extend_from_slice(b"null");
                    skip(values, open.end.1 - column);
                    (at, column) = open.end;
                }
                Op::Joined {
                    text,
                    key,
                    end,
                    columns,
                } => {
                    self.text
                        .extend_from_slice(&self.program.literals[text.clone()]);
                    let marker = values.next().ok_or_else(miscounted)?;
                    column += 1;
                    if marker.is_some() {
                        self.open.push(Open {
                            key: key.clone(),
                            start: self.text.len(),
                            holes: self.holes.len(),
                            end: (*end, *columns),
                        });
                    } else {
                        self.text.extend_from_slice(b"null");
                        skip(values, columns - column);
                        (at, column) = (*end, *columns);
                    }
                }
                Op::Children { text, child } => {
                    self.text
                        .extend_from_slice(&self.program.literals[text.clone()]);
                    let keys = &mut self.children[*child];
                    column += keys.width();
                    self.holes.push(Hole {
                        at: narrow(self.text.len()),
                        child: narrow(*child),
                        slot: keys.insert(values).unwrap_or(NONE),
                    });
                }
            }
        }
        Ok(())
    }
}

impl RowSink for Rows<'_> {
    fn columns(&mut self, columns: &[Column]) -> Result<()> {
        let header = self.header();
        let mut column = header;
        self.cells.clear();
        for op in &self.program.ops {
            match op {
                Op::Text(_) => {}
                Op::Value { form, .. } => {
                    let described = columns.get(column).ok_or_else(miscounted)?;
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

    fn row(&mut self, row: RawRow<'_>) -> Result<Flow> {
        self.received += 1;
        let mut values = row.values();
        let number = self.slot(&mut values).ok_or_else(miscounted)?;
        let most = self.most;
        let slot = self.slots.get_mut(number as usize).ok_or_else(miscounted)?;
        if slot.count == most {
            slot.more = true;
            return Ok(Flow::Continue);
        }
        let index = narrow(self.list.len());
        let previous = std::mem::replace(&mut slot.last, index);
        slot.count += 1;
        if previous == NONE {
            slot.first = index;
        } else {
            self.list[previous as usize].next = index;
        }
        let (start, holes) = (self.text.len(), self.holes.len());
        self.write(&mut values)?;
        self.list.push(Row {
            text: (narrow(start), narrow(self.text.len())),
            holes: narrow(holes),
            next: NONE,
        });
        self.text.extend_from_slice(b",");
        if self.text.len() as u64 > self.limit {
            return Err(Error::ResultTooLarge(self.limit));
        }
        Ok(Flow::Continue)
    }

    fn ready(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Remembers what is wrong with a row, with the path from the row on.
#[cold]
fn note(
    inner: &mut Vec<Inner>,
    open: &[Open],
    key: &Arc<str>,
    row: usize,
    flaws: &mut Vec<RowsFlaw>,
) {
    for (mut rest, problem) in inner.drain(..) {
        let keys = open.iter().map(|open| &open.key).chain([key]);
        let mut path: Vec<_> = keys.cloned().map(Segment::Key).collect();
        path.append(&mut rest);
        flaws.push(RowsFlaw {
            row: narrow(row),
            path,
            problem,
        });
    }
}

fn skip(values: &mut Values<'_>, count: usize) {
    for _ in 0..count {
        values.next();
    }
}

/// Offsets have 32 bits, because the text is limited.
fn narrow(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

#[cold]
fn miscounted() -> Error {
    Error::internal("PostgreSQL returned other columns than the plan asked for")
}
