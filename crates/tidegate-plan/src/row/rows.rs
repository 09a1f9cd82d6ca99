//! The rows of a level as JSON text. The text has insertion points, into which the rows of child
//! levels are merged.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_sql::{Error, Result};
use tidegate_values::Column;

use super::keys::Keys;
use super::program::{NONE, Program, narrow};
use super::writer::{InsertionPoint, RowTextWriter, wrong_column_count};

/// The rows of a level. They are added while the level's statement runs, and merged into the
/// response afterwards.
#[derive(Debug)]
pub(crate) struct LevelRows {
    pub(crate) program: Arc<Program>,
    pub(crate) grouping: Grouping,
    /// The largest number of rows of each list.
    pub(crate) most: u32,
    pub(crate) written: RowTextWriter,
    /// The rows of all lists, in the order in which they arrived.
    pub(crate) list: Vec<Row>,
    /// The lists. The index of a list is its slot.
    pub(crate) slots: Vec<ListRows>,
    /// The number of rows received, including those beyond the limit of their list.
    pub(crate) received: u64,
    /// The largest size of the text of the rows, in bytes.
    limit: u64,
    /// The number of bytes of the rows of all levels, if the byte limit applies to all levels
    /// together; `None` if it applies to this level alone.
    shared: Option<Arc<AtomicU64>>,
    /// If true, a row that the response cannot contain does not fail the statement. Instead, this
    /// row and all later rows are left out.
    drops: bool,
    /// The error that caused rows to be left out; `None` if no row was left out.
    pub(crate) dropped: Option<Error>,
}

/// How the rows of a level are assigned to lists.
#[derive(Debug)]
pub(crate) enum Grouping {
    /// There is only one list.
    One,
    /// The first column of each row is the number of the list, counted from 1.
    Ordinal,
    /// The first columns of each row are a key. Rows with the same key belong to the same list, and
    /// each new key begins a list.
    Key(Box<Keys>),
}

/// A row of a level.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// The byte range of the row's text.
    pub(crate) text: (u32, u32),
    /// The index of the row's first insertion point. Its insertion points end where those of the
    /// next element of [`LevelRows::list`] begin.
    pub(crate) insertion_points: u32,
    /// The index in [`LevelRows::list`] of the next row of the same JSON list, or `NONE`.
    pub(crate) next: u32,
}

/// The rows of one list. `first` and `last` are indexes in [`LevelRows::list`], or `NONE` if the
/// list is empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListRows {
    pub(crate) first: u32,
    pub(crate) last: u32,
    pub(crate) count: u32,
    /// Whether the list had more than [`LevelRows::most`] rows. The rows beyond this number were
    /// left out.
    pub(crate) more: bool,
}

impl ListRows {
    pub(crate) const EMPTY: Self = Self {
        first: NONE,
        last: NONE,
        count: 0,
        more: false,
    };
}

impl LevelRows {
    /// An empty set of rows; `limit` is the largest size of their text in bytes.
    pub(crate) fn new(program: Arc<Program>, children: Vec<Keys>, limit: u64) -> Self {
        Self {
            program,
            grouping: Grouping::One,
            most: u32::MAX,
            written: RowTextWriter::new(children),
            list: Vec::new(),
            slots: vec![ListRows::EMPTY],
            received: 0,
            limit: limit.min(u32::MAX.into()),
            shared: None,
            drops: false,
            dropped: None,
        }
    }

    /// Removes all rows, and prepares `slots` empty lists for the rows of another statement.
    pub(crate) fn restart(&mut self, grouping: Grouping, slots: usize) {
        self.written.clear();
        self.list.clear();
        self.slots.clear();
        self.slots.resize(slots, ListRows::EMPTY);
        self.grouping = grouping;
        self.received = 0;
    }

    /// From now on, a row that the response cannot contain does not fail the statement, because a
    /// failure could not undo the committed write. Instead, this row and all later rows are left
    /// out.
    pub(crate) fn drop_refused_rows(&mut self) {
        self.drops = true;
    }

    /// From now on, the byte limit applies to these rows together with the rows of other levels.
    /// `bytes` counts all of them.
    pub(crate) fn share_limit(&mut self, bytes: &Arc<AtomicU64>) {
        self.shared = Some(Arc::clone(bytes));
    }

    /// Puts the lists into the order that their keys have in the parent level.
    pub(crate) fn link(&mut self, above: &Keys) {
        if let Grouping::Key(keys) = &self.grouping {
            let lists = above.slots_in(keys).into_iter();
            let list = |slot: Option<u32>| self.slots.get(slot? as usize).copied();
            self.slots = lists
                .map(|slot| list(slot).unwrap_or(ListRows::EMPTY))
                .collect();
            self.grouping = Grouping::One;
        }
    }

    /// Sorts the rows of the only list. `positions` has a sort key for each row.
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

    /// The insertion points in the text of a row.
    pub(crate) fn insertion_points(&self, row: u32) -> &[InsertionPoint] {
        let index = row as usize;
        let next = self
            .list
            .get(index + 1)
            .map(|next| next.insertion_points as usize);
        let end = next.unwrap_or(self.written.insertion_points.len());
        &self.written.insertion_points[self.list[index].insertion_points as usize..end]
    }

    /// The number of leading columns that only assign a row to a list.
    fn header(&self) -> usize {
        match &self.grouping {
            Grouping::One => 0,
            Grouping::Ordinal => 1,
            Grouping::Key(keys) => keys.width(),
        }
    }

    fn slot<'v>(&mut self, values: &mut impl Iterator<Item = Option<&'v [u8]>>) -> Option<u32> {
        match &mut self.grouping {
            Grouping::One => Some(0),
            Grouping::Ordinal => {
                let ordinal = i64::from_be_bytes(values.next()??.try_into().ok()?);
                u32::try_from(ordinal.checked_sub(1)?).ok()
            }
            Grouping::Key(keys) => {
                let slot = keys.insert(values)?;
                if slot as usize == self.slots.len() {
                    self.slots.push(ListRows::EMPTY);
                }
                Some(slot)
            }
        }
    }

    /// Chooses the writer of each column. `at` returns the description of a column by its position.
    pub(crate) fn columns<'c>(&mut self, at: impl Fn(usize) -> Option<&'c Column>) -> Result<()> {
        let header = self.header();
        self.written.columns(&self.program, header, at)
    }

    /// Adds a row to a list, which the first columns of the row determine ([`Grouping`]).
    pub(crate) fn push<'v>(
        &mut self,
        values: &mut impl Iterator<Item = Option<&'v [u8]>>,
    ) -> Result<()> {
        self.received += 1;
        if self.dropped.is_some() {
            return Ok(());
        }
        let number = self.slot(values).ok_or_else(wrong_column_count)?;
        match self.take(number, values) {
            Err(error) if self.drops => {
                self.dropped = Some(error);
                Ok(())
            }
            taken => taken,
        }
    }

    /// Adds a row to the list with the index `number` in [`LevelRows::slots`].
    fn take<'v>(
        &mut self,
        number: u32,
        values: &mut impl Iterator<Item = Option<&'v [u8]>>,
    ) -> Result<()> {
        let most = self.most;
        let slot = self
            .slots
            .get_mut(number as usize)
            .ok_or_else(wrong_column_count)?;
        if slot.count == most {
            slot.more = true;
            return Ok(());
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
        let (start, insertion_points) = (written.text.len(), written.insertion_points.len());
        written.row(&self.program, index, values)?;
        self.list.push(Row {
            text: (narrow(start), narrow(written.text.len())),
            insertion_points: narrow(insertion_points),
            next: NONE,
        });
        written.text.extend_from_slice(b",");
        let bytes = match &self.shared {
            None => written.text.len() as u64,
            Some(shared) => {
                let added = (written.text.len() - start) as u64;
                shared.fetch_add(added, Ordering::Relaxed) + added
            }
        };
        if bytes > self.limit {
            return Err(Error::ResultTooLarge(self.limit));
        }
        Ok(())
    }
}
