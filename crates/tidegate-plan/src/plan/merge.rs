//! Merges the rows of all levels into one JSON text, and estimates its size.

use std::sync::Arc;

use bytes::BytesMut;
use tidegate_values::codec::json_string;

use super::level::Level;
use super::tree::Tree;
use super::{Root, RootOutput};
use crate::row::{LevelRows, NONE};
use crate::{Error, FieldError, Limits, Path, PathSegment, PlanOutcome, Result};

/// The estimated size in bytes of the brackets around a list, or of `null` for a missing row.
const BRACKETS: u64 = 4;

/// Appends the value of `data`: an object with all root fields.
pub(super) fn data(
    roots: &[Root],
    trees: &[Tree<'_>],
    limits: &Limits,
    out: &mut BytesMut,
) -> Result<PlanOutcome> {
    let start = out.len();
    // Space is reserved for the text of the rows, and for a `null` at each insertion point. Without
    // the reservation the buffer would have to grow, and each growth would copy the buffer.
    let size = |level: &Level<'_>| {
        let written = &level.rows.written;
        written.text.len() + written.insertion_points.len() * b"null".len()
    };
    let levels = trees.iter().flat_map(|tree| &tree.reader.levels);
    let text: usize = levels.map(size).sum();
    out.reserve(text + 64);
    let mut merge = Merge {
        levels: &[],
        is_one: trees
            .iter()
            .map(|tree| tree.reader.levels.len())
            .sum::<usize>()
            <= 1,
        path: Vec::new(),
        outcome: PlanOutcome::default(),
        most: usize::try_from(limits.bytes)
            .unwrap_or(usize::MAX)
            .saturating_add(start),
        limit: limits.bytes,
        out,
    };
    for (at, root) in roots.iter().enumerate() {
        merge
            .out
            .extend_from_slice(if at == 0 { b"{" } else { b"," });
        json_string(root.key.as_bytes(), merge.out);
        merge.out.extend_from_slice(b":");
        match &root.output {
            RootOutput::Verbatim(text) => merge.out.extend_from_slice(text),
            RootOutput::Inserted => merge.outcome.insertion_points.push(merge.out.len()),
            RootOutput::Rows { tree, level } => {
                merge.levels = &trees[*tree].reader.levels;
                merge.path.push(SegmentRef::Key(&root.key));
                merge.list(*level, 0)?;
                merge.path.pop();
            }
        }
    }
    merge
        .out
        .extend_from_slice(if roots.is_empty() { b"{}" } else { b"}" });
    merge.check()?;
    Ok(merge.outcome)
}

struct Merge<'p, 'a> {
    /// The levels of the root field that is being written.
    levels: &'p [Level<'a>],
    /// Whether the plan has only one level.
    is_one: bool,
    /// The path of the value that is being written.
    path: Vec<SegmentRef<'p>>,
    outcome: PlanOutcome,
    /// The largest length that the output buffer may reach.
    most: usize,
    /// The configured limit in bytes, for the error message.
    limit: u64,
    out: &'p mut BytesMut,
}

/// A borrowed [`PathSegment`].
#[derive(Clone, Copy)]
enum SegmentRef<'p> {
    Key(&'p Arc<str>),
    Index(usize),
}

impl<'p> Merge<'p, '_> {
    /// Appends the list with the index `slot` of a level. Records the path of the list if some of
    /// its rows were left out.
    fn list(&mut self, level: usize, slot: u32) -> Result<()> {
        let levels = self.levels;
        let rows = &levels[level].rows;
        self.out.extend_from_slice(b"[");
        let slot = rows.slots.get(slot as usize);
        if let Some(slot) = slot.filter(|slot| slot.count > 0) {
            if rows.written.insertion_points.is_empty() && rows.written.field_errors.is_empty() {
                copy(rows, slot.first, self.out);
            } else {
                self.rows(rows, slot.first)?;
            }
            if slot.more {
                self.outcome.truncated.push(self.path(&[]));
            }
        } else if slot.is_some_and(|slot| slot.more) {
            self.outcome.truncated.push(self.path(&[]));
        }
        self.out.extend_from_slice(b"]");
        self.check()
    }

    /// Checks the size of the response against the limit. Does not check a plan with a single
    /// level, because the size of its rows was checked when they arrived. Such a plan may also have
    /// committed a write, which an error could not undo.
    fn check(&self) -> Result<()> {
        if self.out.len() > self.most && !self.is_one {
            return Err(Error::TooLarge(self.limit));
        }
        Ok(())
    }

    fn rows(&mut self, rows: &'p LevelRows, first: u32) -> Result<()> {
        let (mut row, mut index) = (first, 0);
        while row != NONE {
            if index > 0 {
                self.out.extend_from_slice(b",");
            }
            self.path.push(SegmentRef::Index(index));
            self.row(rows, row)?;
            self.path.pop();
            index += 1;
            row = rows.list[row as usize].next;
        }
        Ok(())
    }

    /// Appends a row with the rows of its children, and records its field errors.
    fn row(&mut self, rows: &'p LevelRows, row: u32) -> Result<()> {
        let (mut at, end) = rows.list[row as usize].text;
        for insertion_point in rows.insertion_points(row) {
            self.out
                .extend_from_slice(&rows.written.text[at as usize..insertion_point.at as usize]);
            at = insertion_point.at;
            let child = &rows.program.children[insertion_point.child as usize];
            let depth = self.path.len();
            for key in &child.around {
                self.path.push(SegmentRef::Key(key));
            }
            self.path.push(SegmentRef::Key(&child.name));
            if child.one {
                self.one(child.level, insertion_point.slot)?;
            } else {
                self.list(child.level, insertion_point.slot)?;
            }
            self.path.truncate(depth);
        }
        self.out
            .extend_from_slice(&rows.written.text[at as usize..end as usize]);
        let first = rows
            .written
            .field_errors
            .partition_point(|field_error| field_error.row < row);
        for field_error in rows.written.field_errors[first..]
            .iter()
            .take_while(|field_error| field_error.row == row)
        {
            let path = self.path(&field_error.path);
            self.outcome.field_errors.push(FieldError {
                path,
                problem: field_error.problem,
            });
        }
        Ok(())
    }

    /// Appends the only row of the list with the index `slot` of a level, or null if the list is
    /// empty.
    fn one(&mut self, level: usize, slot: u32) -> Result<()> {
        let levels = self.levels;
        let rows = &levels[level].rows;
        match rows.slots.get(slot as usize) {
            Some(slot) if slot.count > 0 => self.row(rows, slot.first),
            _ => {
                self.out.extend_from_slice(b"null");
                Ok(())
            }
        }
    }

    fn path(&self, rest: &[PathSegment]) -> Path {
        let path = self.path.iter().map(|segment| match segment {
            SegmentRef::Key(key) => PathSegment::Key(Arc::clone(key)),
            SegmentRef::Index(index) => PathSegment::Index(*index),
        });
        path.chain(rest.iter().cloned()).collect()
    }
}

/// Appends rows without children. Rows whose texts are adjacent are copied in one piece.
fn copy(rows: &LevelRows, first: u32, out: &mut BytesMut) {
    let mut row = first;
    loop {
        let begin = rows.list[row as usize].text.0;
        while rows.list[row as usize].next == row + 1 {
            row += 1;
        }
        let last = rows.list[row as usize];
        out.extend_from_slice(&rows.written.text[begin as usize..last.text.1 as usize]);
        if last.next == NONE {
            return;
        }
        out.extend_from_slice(b",");
        row = last.next;
    }
}

/// The approximate size of the data object in bytes. If many rows refer to the same row, the
/// response repeats this row for each of them. Therefore few rows can make a large response.
pub(super) fn size(roots: &[Root], trees: &[Tree<'_>]) -> u64 {
    let sizes = roots.iter().map(|root| match &root.output {
        RootOutput::Verbatim(text) => text.len() as u64,
        RootOutput::Inserted => 0,
        RootOutput::Rows { tree, level } => size_of_rows(&trees[*tree].reader.levels[*level..]),
    });
    sizes.fold(0, u64::saturating_add)
}

/// The size in bytes of the rows of `levels[0]` and of the levels below it, which follow it in the
/// slice. The slice may end with levels of later root fields, which do not count.
fn size_of_rows(levels: &[Level<'_>]) -> u64 {
    let mut below = levels.iter().skip(1);
    let next = below.position(|level| level.above.is_none());
    let levels = next.map_or(levels, |next| &levels[..=next]);
    let mut lists: Vec<Vec<u64>> = levels.iter().map(|_| Vec::new()).collect();
    for at in (0..levels.len()).rev() {
        lists[at] = list_sizes(&levels[at], &lists);
    }
    list_size(&lists, 0, 0)
}

fn list_size(lists: &[Vec<u64>], level: usize, slot: usize) -> u64 {
    let known = lists.get(level).and_then(|lists| lists.get(slot));
    known.copied().unwrap_or(BRACKETS)
}

/// The size in bytes of each list of a level. `below` has these sizes for all levels after this
/// one.
fn list_sizes(level: &Level<'_>, below: &[Vec<u64>]) -> Vec<u64> {
    let rows = &level.rows;
    let size = |row: u32| {
        let (from, to) = rows.list[row as usize].text;
        let insertion_points = rows.insertion_points(row).iter().map(|insertion_point| {
            let child = &rows.program.children[insertion_point.child as usize];
            list_size(below, child.level, insertion_point.slot as usize)
        });
        insertion_points.fold(u64::from(to - from) + 1, u64::saturating_add)
    };
    let list = |first: u32| {
        let row = |row: u32| Some(row).filter(|row| *row != NONE);
        let next = |known: &u32| row(rows.list[*known as usize].next);
        std::iter::successors(row(first), next)
            .fold(BRACKETS, |sum, row| sum.saturating_add(size(row)))
    };
    rows.slots.iter().map(|slot| list(slot.first)).collect()
}
