//! Estimates the size of the response. A row to which many rows refer is repeated in the response
//! for each of them. Therefore few rows can make a large response.

use super::level::Level;
use super::tree::Tree;
use super::{Root, RootOutput};
use crate::row::NONE;

/// The estimated size in bytes of the brackets around a list, or of `null` for a missing row.
const BRACKETS: u64 = 4;

/// The approximate size of the data object in bytes.
pub(super) fn size(roots: &[Root], trees: &[Tree<'_>]) -> u64 {
    let sizes = roots.iter().map(|root| match &root.output {
        RootOutput::Verbatim(text) => text.len() as u64,
        RootOutput::Gap => 0,
        RootOutput::Rows { tree, level } => rows(&trees[*tree].reader.levels[*level..]),
    });
    sizes.fold(0, u64::saturating_add)
}

/// The size in bytes of the rows of `levels[0]` with the rows of the levels below it, which follow
/// it in `levels`. The slice may also contain levels of later root fields, which do not count.
fn rows(levels: &[Level<'_>]) -> u64 {
    let mut below = levels.iter().skip(1);
    let next = below.position(|level| level.above.is_none());
    let levels = next.map_or(levels, |next| &levels[..=next]);
    let mut lists: Vec<Vec<u64>> = levels.iter().map(|_| Vec::new()).collect();
    for at in (0..levels.len()).rev() {
        lists[at] = sizes(&levels[at], &lists);
    }
    of(&lists, 0, 0)
}

fn of(lists: &[Vec<u64>], level: usize, slot: usize) -> u64 {
    let known = lists.get(level).and_then(|lists| lists.get(slot));
    known.copied().unwrap_or(BRACKETS)
}

/// The size in bytes of each list of a level. `below` has the list sizes of all levels.
fn sizes(level: &Level<'_>, below: &[Vec<u64>]) -> Vec<u64> {
    let rows = &level.rows;
    let size = |row: u32| {
        let (from, to) = rows.list[row as usize].text;
        let insertion_points = rows.insertion_points(row).iter().map(|insertion_point| {
            let child = &rows.program.children[insertion_point.child as usize];
            of(below, child.level, insertion_point.slot as usize)
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
