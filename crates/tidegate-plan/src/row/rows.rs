//! The rows of one level, as JSON text with holes where children go.

use tidegate_sql::column::Values;
use tidegate_sql::{BoxFuture, Column, Error, Flow, RawRow, Result, RowSink};

use super::keys::Keys;
use super::program::Program;
use super::writer::{Hole, Writer, miscounted, skip};

/// No row, or no slot.
pub(crate) const NONE: u32 = u32::MAX;

/// The rows of one level: a sink while its statement runs, then the text that is put together.
#[derive(Debug)]
pub(crate) struct Rows<'a> {
    pub(crate) program: Program<'a>,
    pub(crate) grouping: Grouping,
    /// Of each list at most so many rows.
    pub(crate) most: u32,
    pub(crate) written: Writer,
    pub(crate) list: Vec<Row>,
    pub(crate) slots: Vec<Slot>,
    /// How many rows have come, with those that no list has room for.
    pub(crate) received: u64,
    /// The rows that come behind the row that they hang on, in the same statement.
    pub(crate) below: Option<Box<Below<'a>>>,
    limit: u64,
}

/// Rows that come behind the row that they hang on.
#[derive(Debug)]
pub(crate) struct Below<'a> {
    pub(crate) rows: Rows<'a>,
    /// Which list those that come now belong to; none where they are there already, or not shown.
    slot: Option<u32>,
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
            grouping: Grouping::One,
            most: u32::MAX,
            written: Writer::new(children),
            list: Vec::new(),
            slots: vec![Slot::EMPTY],
            received: 0,
            below: None,
            limit: limit.min(u32::MAX.into()),
        }
    }

    /// Forgets the rows, to take them from another statement.
    pub(crate) fn restart(&mut self) {
        self.written.clear();
        self.list.clear();
        self.slots.fill(Slot::EMPTY);
        self.received = 0;
    }

    /// Takes the rows below from the same statement, each list's behind the row that it hangs on.
    pub(crate) fn nest(&mut self, mut rows: Rows<'a>) {
        rows.slots.clear();
        self.below = Some(Box::new(Below { rows, slot: None }));
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
        let next = self.list.get(index + 1).map(|next| next.holes as usize);
        let end = next.unwrap_or(self.written.holes.len());
        &self.written.holes[self.list[index].holes as usize..end]
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
}

impl RowSink for Rows<'_> {
    fn columns(&mut self, columns: &[Column]) -> Result<()> {
        if let Some(below) = &mut self.below {
            let header = 1 + self.program.expressions.len();
            let rows = &mut below.rows;
            rows.written.columns(&rows.program, header, columns)?;
            return self.written.columns(&self.program, 1, columns);
        }
        let header = self.header();
        self.written.columns(&self.program, header, columns)
    }

    fn row(&mut self, row: RawRow<'_>) -> Result<Flow> {
        self.received += 1;
        let mut values = row.values();
        if self.below.is_some() {
            return self.nested(&mut values);
        }
        let number = self.slot(&mut values).ok_or_else(miscounted)?;
        self.take(number, &mut values)
    }

    fn ready(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

impl Rows<'_> {
    /// Takes a row of either level: the first column is NULL in those below.
    fn nested(&mut self, values: &mut Values<'_>) -> Result<Flow> {
        let is_above = values.next().ok_or_else(miscounted)?.is_some();
        if is_above {
            let before = self.keys();
            self.take(0, values)?;
            // Rows with the key of an earlier one show what hangs on that.
            let is_new = self.keys() > before;
            if let Some(below) = &mut self.below {
                below.slot = is_new.then_some(before);
                below.rows.slots.extend(is_new.then_some(Slot::EMPTY));
            }
            return Ok(Flow::Continue);
        }
        let width = self.program.expressions.len();
        let below = self.below.as_mut().ok_or_else(miscounted)?;
        let Some(slot) = below.slot else {
            return Ok(Flow::Continue);
        };
        skip(values, width);
        below.rows.take(slot, values)
    }

    /// How many keys the only children have.
    fn keys(&self) -> u32 {
        self.written.children.first().map_or(0, Keys::count)
    }

    /// Takes a row of a list.
    fn take(&mut self, number: u32, values: &mut Values<'_>) -> Result<Flow> {
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
        let written = &mut self.written;
        let (start, holes) = (written.text.len(), written.holes.len());
        written.row(&self.program, index, values)?;
        self.list.push(Row {
            text: (narrow(start), narrow(written.text.len())),
            holes: narrow(holes),
            next: NONE,
        });
        written.text.extend_from_slice(b",");
        if written.text.len() as u64 > self.limit {
            return Err(Error::ResultTooLarge(self.limit));
        }
        Ok(Flow::Continue)
    }
}

/// Offsets have 32 bits, because the text is limited.
pub(super) fn narrow(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}
