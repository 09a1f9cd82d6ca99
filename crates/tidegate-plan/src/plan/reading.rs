//! Builds the statement that reads one or several levels of a tree.

use std::ops::Range;
use std::sync::Arc;

use tidegate_catalog::Schema;
use tidegate_sql::BoundStatement;

use super::level::{Level, RowSource, Settings, narrow};
use crate::row::{Child, Grouping, Keys};
use crate::statement::{
    self, Layout, Limit, NestedLevel, Page, ParentLevel, Parents, has_equal_bytes,
};

/// The maximum number of lists from which [`shared`] estimates the usual number of rows.
const MANY: u64 = 10_000;

/// Describes a statement that reads levels: which levels it reads, and where the columns of each
/// level are in the result.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    /// The indexes of the levels in the tree.
    pub(crate) levels: Range<usize>,
    /// The column layout; `None` if the statement reads a single level.
    layout: Option<Arc<Layout>>,
    /// For each level, the number of rows that its lists may have together; `None` if each list has
    /// a limit of its own, or if there is no limit.
    shared: Arc<[Option<u64>]>,
    /// For each level, the range of its parameters in the statement.
    pub(crate) parameters: Arc<[Range<usize>]>,
    /// Whether the statement assumes that keys are distinct, because the schema declares them
    /// unique.
    trusts_keys: bool,
}

impl Reading {
    /// Describes a statement that reads one level without child levels.
    pub(super) fn plain(levels: Range<usize>) -> Self {
        Self {
            levels,
            layout: None,
            shared: Arc::default(),
            parameters: Arc::default(),
            trusts_keys: false,
        }
    }

    /// Whether the first column of each row is the number of the row's level, or NULL for the level
    /// with the highest number.
    pub(super) fn has_numbers(&self) -> bool {
        self.layout.is_some()
    }

    /// The positions of a level's columns in the result. `number` counts the levels of the
    /// statement from 0. `None` means that the columns of the result are the columns of the level,
    /// in the same order.
    pub(super) fn positions(&self, number: usize) -> Option<&[usize]> {
        self.layout.as_ref()?.level(number)
    }

    /// Whether the result may be wrong, for one of two reasons. A shared limit may have cut off
    /// rows of a list. Or rows may occur twice in a list, because keys are not unique although the
    /// schema declares them unique (PostgreSQL, "Inheritance", "Caveats").
    pub(super) fn is_incomplete(&self, schema: &Schema, levels: &[Level<'_>]) -> bool {
        let shared = self.shared.iter().zip(&levels[self.levels.clone()]);
        let mut full = shared.filter(|(shared, level)| {
            let received = level.rows.received;
            shared.is_some_and(|shared| received >= shared)
        });
        full.next().is_some() || self.trusts_keys && self.has_repeated_keys(schema, levels)
    }

    /// The index of a level's parent, and the index of the level among the parent's children;
    /// `None` if the statement does not read the parent.
    fn above(&self, levels: &[Level<'_>], at: usize) -> Option<(usize, usize)> {
        let above = levels.get(at)?.above?;
        self.levels.contains(&above.0).then_some(above)
    }

    fn has_repeated_keys(&self, schema: &Schema, levels: &[Level<'_>]) -> bool {
        self.levels.clone().any(|at| {
            let Some((above, child)) = self.above(levels, at) else {
                return false;
            };
            let program = &levels[above].rows.program;
            let keys = keys_above(levels, levels[at].above);
            let is_key = is_key(schema, levels, above, &program.children[child]);
            is_key && keys.is_some_and(Keys::has_repeated_keys)
        })
    }
}

/// Builds the statement that reads the levels of `range`, and clears the rows of these levels. With
/// `careful`, each list has a limit of its own, and no key is assumed to be unique.
pub(super) fn statement<'a>(
    settings: &Settings<'a>,
    levels: &mut [Level<'a>],
    range: Range<usize>,
    careful: bool,
) -> (BoundStatement, Reading) {
    let limits = limits(settings, levels, &range, careful);
    for (at, (page, _)) in range.clone().zip(&limits) {
        restart(levels, (at, range.start), page);
    }
    let parts: Vec<_> = range
        .clone()
        .zip(&limits)
        .map(|(at, (page, limit))| {
            let level = &levels[at];
            let below = levels[range.clone()].iter();
            let mut above = below.filter_map(|level| level.above);
            NestedLevel {
                relation: level.relation,
                list: level.list(),
                page: *page,
                program: &level.rows.program,
                parents: parents(settings.schema, levels, (at, range.start), careful),
                has_children: above.any(|(above, _)| above == at),
                limit: *limit,
            }
        })
        .collect();
    let nested = statement::nested(settings.schema, &parts);
    let shared = limits.into_iter().map(|(_, limit)| match limit {
        Limit::Shared(rows) => Some(rows),
        Limit::Each | Limit::None => None,
    });
    let reading = Reading {
        levels: range,
        layout: nested.layout.map(Arc::new),
        shared: shared.collect(),
        parameters: nested.parameters.into(),
        trusts_keys: !careful,
    };
    (nested.statement, reading)
}

/// For each level, the page of its lists and the limit on the rows that are read.
///
/// The lists of a child level share one limit, unless `careful` is true or the request gives them a
/// limit or an offset. One select can read all lists that share a limit, which is cheaper than a
/// select for each list. The shared limit suffices for typical lists.
///
/// The shared limit depends on the structure of the operation. If an earlier statement wrote the
/// parent rows, it also depends on the number of their distinct keys. This number is rounded up to
/// a power of two, so that operations of equal structure have few different SQL texts.
fn limits(
    settings: &Settings<'_>,
    levels: &[Level<'_>],
    range: &Range<usize>,
    careful: bool,
) -> Vec<(Page, Limit)> {
    let mut known: Vec<(Page, Limit, u64)> = Vec::with_capacity(range.len());
    for at in range.clone() {
        let level = &levels[at];
        let page = level.page(settings);
        let above = level
            .above
            .and_then(|(above, _)| above.checked_sub(range.start));
        let lists = match (above, level.above) {
            (Some(above), _) => known[above].2,
            (None, None) => 1,
            (None, above) => {
                let keys = keys_above(levels, above).map_or(0, Keys::count);
                u64::from(keys).next_power_of_two()
            }
        };
        let all = lists.saturating_mul(page.bound());
        let (limit, rows) = match &level.source {
            RowSource::One => (Limit::None, lists),
            RowSource::Children(_) if !page.given && !careful => {
                let shared = shared(lists, page.most);
                (Limit::Shared(shared), shared)
            }
            _ if page.single && above.is_none() => (Limit::Each, 1),
            _ => (Limit::Each, all),
        };
        known.push((page, limit, rows));
    }
    let limits = known.into_iter();
    limits.map(|(page, limit, _)| (page, limit)).collect()
}

/// The common limit for the rows of several lists. `lists` is the number of lists, and `most` is
/// the maximum number of rows of each list. The limit is one more than the largest number of rows
/// that is expected. If the result has as many rows as the limit, rows may be missing.
fn shared(lists: u64, most: u64) -> u64 {
    let usual = lists
        .min(MANY)
        .saturating_mul(64)
        .max(most.saturating_mul(16));
    lists.saturating_mul(most).min(usual).saturating_add(1)
}

/// Clears the rows of the level with index `at`, and prepares the level for the rows of a page.
/// `first` is the first level that the statement reads.
pub(super) fn restart(levels: &mut [Level<'_>], (at, first): (usize, usize), page: &Page) {
    let (grouping, slots) = match levels[at].above {
        None => (Grouping::One, 1),
        Some((written, _)) if written < first => {
            let keys = keys_above(levels, levels[at].above).map_or(0, Keys::count);
            (Grouping::Ordinal, keys as usize)
        }
        Some((above, child)) => {
            let keys = &levels[above].rows.written.children[child];
            (Grouping::Key(Box::new(keys.new_empty())), 0)
        }
    };
    let rows = &mut levels[at].rows;
    rows.most = narrow(page.most);
    rows.restart(grouping, slots);
}

fn parents<'p>(
    schema: &Schema,
    levels: &'p [Level<'_>],
    (at, first): (usize, usize),
    careful: bool,
) -> Parents<'p> {
    let Some((above, child)) = levels[at].above else {
        return Parents::None;
    };
    let rows = &levels[above].rows;
    if above < first {
        return Parents::Known(&rows.written.children[child], &rows.program.children[child]);
    }
    let header = match levels[above].above {
        None => 0,
        Some((written, _)) if written < first => 1,
        Some((over, child)) => levels[over].rows.program.children[child].key.len(),
    };
    Parents::Level(ParentLevel {
        level: above - first,
        program: &rows.program,
        child,
        header,
        repeated: careful || !is_key(schema, levels, above, &rows.program.children[child]),
    })
}

/// Whether, according to the schema, the rows of a level have distinct keys for a child. This holds
/// if the level has at most one row, or if the key is unique in the table and each row of the table
/// occurs once in the level.
fn is_key(schema: &Schema, levels: &[Level<'_>], above: usize, child: &Child) -> bool {
    let level = &levels[above];
    if level.above.is_none()
        && level.list().is_some_and(|list| {
            let relation = schema.relation(level.relation);
            statement::is_single(&list.filter, relation)
        })
    {
        return true;
    }
    let once = level.above.is_none_or(|(over, number)| {
        let way = &levels[over].rows.program.children[number];
        let (from, to) = (schema.relation(way.from), schema.relation(level.relation));
        let relationship = way.relationship(schema);
        let columns = relationship.columns.iter();
        let mut pairs = columns.zip(&relationship.target_columns);
        pairs.all(|(here, there)| has_equal_bytes(from.column(*here), to.column(*there)))
    });
    let relation = schema.relation(child.from);
    let mut keys = relation.primary_key.iter().chain(&relation.unique);
    let columns = &child.relationship(schema).columns;
    once && child.table == 0
        && keys.any(|key| key.columns.iter().all(|column| columns.contains(column)))
}

/// The keys that connect the rows of a parent level with a child. `above` is the index of the
/// parent level, and the index of the child among the children of that level.
pub(super) fn keys_above<'l>(
    levels: &'l [Level<'_>],
    above: Option<(usize, usize)>,
) -> Option<&'l Keys> {
    let (above, child) = above?;
    levels.get(above)?.rows.written.children.get(child)
}
