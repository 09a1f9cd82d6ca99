//! The rows of one level, as JSON text with holes where children go.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_sql::{Error, Result};
use tidegate_values::Column;

use super::keys::Keys;
use super::offset::{NONE, narrow};
use super::program::Program;
use super::writer::{Hole, Writer, miscounted};

/// The rows of one level: a sink while its statement runs, then the text that is put together.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) program: Arc<Program>,
    pub(crate) grouping: Grouping,
    /// Of each list at most so many rows.
    pub(crate) most: u32,
    pub(crate) written: Writer,
    pub(crate) list: Vec<Row>,
    pub(crate) slots: Vec<Slot>,
    /// How many rows have come, with those that no list has room for.
    pub(crate) received: u64,
    limit: u64,
    /// The bytes of all rows that share the limit, if others do.
    shared: Option<Arc<AtomicU64>>,
    /// Whether rows beyond the limit are dropped instead of refused.
    drops: bool,
    /// Why rows were dropped.
    pub(crate) dropped: Option<Error>,
}

/// How a row tells to which list it belongs.
#[derive(Debug)]
pub(crate) enum Grouping {
    /// There is one list.
    One,
    /// The first column is the number of the slot, from 1.
    Ordinal,
    /// The first columns are the key; a slot for each, in the order in which they come.
    Key(Box<Keys>),
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

impl Rows {
    /// No rows yet; `limit` counts the bytes of their text.
    pub(crate) fn new(program: Arc<Program>, children: Vec<Keys>, limit: u64) -> Self {
        Self {
            program,
            grouping: Grouping::One,
            most: u32::MAX,
            written: Writer::new(children),
            list: Vec::new(),
            slots: vec![Slot::EMPTY],
            received: 0,
            limit: limit.min(u32::MAX.into()),
            shared: None,
            drops: false,
            dropped: None,
        }
    }

    /// Forgets the rows, to take them from another statement with so many lists.
    pub(crate) fn restart(&mut self, grouping: Grouping, slots: usize) {
        self.written.clear();
        self.list.clear();
        self.slots.clear();
        self.slots.resize(slots, Slot::EMPTY);
        self.grouping = grouping;
        self.received = 0;
    }

    /// Drops rows that cannot be shown instead of refusing them: refusing undoes nothing.
    pub(crate) fn drop_refused_rows(&mut self) {
        self.drops = true;
    }

    /// Counts the bytes of the rows together with others.
    pub(crate) fn share_limit(&mut self, bytes: &Arc<AtomicU64>) {
        self.shared = Some(Arc::clone(bytes));
    }

    /// Puts the lists where the rows above look for them: by the slots of their keys.
    pub(crate) fn link(&mut self, above: &Keys) {
        if let Grouping::Key(keys) = &self.grouping {
            let lists = above.slots_in(keys).into_iter();
            let list = |slot: Option<u32>| self.slots.get(slot? as usize).copied();
            self.slots = lists
                .map(|slot| list(slot).unwrap_or(Slot::EMPTY))
                .collect();
            self.grouping = Grouping::One;
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
        let next = self.list.get(index + 1).map(|next| next.holes as usize);
        let end = next.unwrap_or(self.written.holes.len());
        &self.written.holes[self.list[index].holes as usize..end]
    }

    /// The first columns, which are not shown.
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
                    self.slots.push(Slot::EMPTY);
                }
                Some(slot)
            }
        }
    }

    /// Takes the description of the columns by their position.
    pub(crate) fn columns<'c>(&mut self, at: impl Fn(usize) -> Option<&'c Column>) -> Result<()> {
        let header = self.header();
        self.written.columns(&self.program, header, at)
    }

    /// Takes a row.
    pub(crate) fn push<'v>(
        &mut self,
        values: &mut impl Iterator<Item = Option<&'v [u8]>>,
    ) -> Result<()> {
        self.received += 1;
        if self.dropped.is_some() {
            return Ok(());
        }
        let number = self.slot(values).ok_or_else(miscounted)?;
        match self.take(number, values) {
            Err(error) if self.drops => {
                self.dropped = Some(error);
                Ok(())
            }
            taken => taken,
        }
    }

    /// Takes a row of a list.
    fn take<'v>(
        &mut self,
        number: u32,
        values: &mut impl Iterator<Item = Option<&'v [u8]>>,
    ) -> Result<()> {
        let most = self.most;
        let slot = self.slots.get_mut(number as usize).ok_or_else(miscounted)?;
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
        let (start, holes) = (written.text.len(), written.holes.len());
        written.row(&self.program, index, values)?;
        self.list.push(Row {
            text: (narrow(start), narrow(written.text.len())),
            holes: narrow(holes),
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
