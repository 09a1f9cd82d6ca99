//! From an operation to its levels.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tidegate_catalog::RelationId;
use tidegate_catalog::model::Relationship;
use tidegate_sql::InputError;

use super::harmless;
use super::level::{Level, Settings, Source};
use super::tree::Tree;
use super::{Plan, Root, RootShows, Way};
use crate::operation::{self, List, RootField, Selection};
use crate::row::{Compiler, KeyKind, Keys, Rows, aggregate};
use crate::statement;
use crate::{Error, Operation, Result};

/// So many root fields of one row each share a statement at most.
const SHARED: usize = 16;

/// Plans an operation. With `share` root fields that read one row each share a statement.
///
/// Measured (PostgreSQL 15, CPU of the backend per document, `pgbench -M prepared`): five rows by
/// key of one table cost 50 µs in one statement, and 70 in a pipeline of `BEGIN`, five and `COMMIT`.
pub(super) fn plan<'a>(
    settings: Settings<'a>,
    operation: Operation<'a>,
    share: bool,
) -> Result<Plan<'a>> {
    let (fields, writes) = match operation {
        Operation::Query(fields) => (fields, false),
        Operation::Mutation(fields) => (fields, true),
    };
    let mut roots = Vec::with_capacity(fields.len());
    let mut trees: Vec<Tree<'_>> = Vec::with_capacity(fields.len());
    // The tree whose statement others may share.
    let mut shared = None;
    for operation::Root { key, field } in fields {
        let mut builder = Builder {
            settings,
            levels: Vec::new(),
        };
        let shows = builder.root_field(&key, field);
        let shows = shows.map_err(|error| Error::Root(Arc::clone(&key), Box::new(error)))?;
        let shows = shows.unwrap_or_else(|| {
            let levels = mem::take(&mut builder.levels);
            let mut levels: Vec<_> = levels.into_iter().flatten().collect();
            let can_share = share && !writes && reads_one_row(&settings, &levels);
            if can_share
                && let Some(tree) = shared
                && let Some(Tree { reader, .. }) = trees.get_mut(tree)
                && reader.levels.len() < SHARED
            {
                let level = reader.levels.len();
                reader.levels.append(&mut levels);
                return RootShows::Rows { tree, level };
            }
            let tree = trees.len();
            trees.push(Tree::new(levels));
            if can_share {
                shared = Some(tree);
            }
            RootShows::Rows { tree, level: 0 }
        });
        roots.push(Root { key, shows });
    }
    let way = way(&settings, &trees, writes);
    // What commits with its rows is refused by them alone, before the answer is put together.
    let bytes = Arc::new(AtomicU64::new(0));
    for tree in &mut trees {
        match way {
            Way::Together => tree.drop_refused_rows(),
            Way::AfterRows => tree.share_limit(&bytes),
            Way::Alone | Way::Snapshot | Way::InTurn => {}
        }
    }
    Ok(Plan {
        settings,
        way,
        roots,
        trees,
        steps: Vec::new(),
        at: 0,
    })
}

/// Whether the levels of a root field are one, of one row at most, and only read.
fn reads_one_row(settings: &Settings<'_>, levels: &[Level<'_>]) -> bool {
    matches!(levels, [level] if level.list().is_some()
        && level.page(settings).single
        && harmless::is(settings, level))
}

/// Where an answer may have so many bytes, one row is taken to fit.
const ONE_ROW: u64 = 1 << 20;

fn way(settings: &Settings<'_>, trees: &[Tree<'_>], writes: bool) -> Way {
    let mut levels = trees.iter().flat_map(|tree| &tree.reader.levels);
    if writes {
        return match () {
            () if !trees.iter().all(Tree::is_one_statement) => Way::InTurn,
            () if settings.limits.bytes >= ONE_ROW
                && levels.all(|level| level.is_one_row(settings.schema)) =>
            {
                Way::Together
            }
            () => Way::AfterRows,
        };
    }
    // One statement is a snapshot of its own, but it could write.
    if trees.len() <= 1 && levels.all(|level| harmless::is(settings, level)) {
        Way::Alone
    } else {
        Way::Snapshot
    }
}

/// Makes the levels of a root field.
struct Builder<'a> {
    settings: Settings<'a>,
    /// In an order in which each follows the one that it hangs on; empty while it is compiled.
    levels: Vec<Option<Level<'a>>>,
}

impl<'a> Builder<'a> {
    /// What the field shows, if not the rows of its levels.
    fn root_field(&mut self, key: &Arc<str>, field: RootField<'a>) -> Result<Option<RootShows>> {
        match field {
            RootField::Verbatim(text) => return Ok(Some(RootShows::Verbatim(text))),
            RootField::Gap => return Ok(Some(RootShows::Gap)),
            RootField::Get(relation, mut list) => {
                let selection = mem::take(&mut list.selection);
                self.level(relation, Source::List(Arc::new(list)), selection);
            }
            RootField::Aggregate(relation, wanted) => {
                let program = Arc::new(aggregate(self.settings.schema, relation, &wanted));
                let rows = Rows::new(program, Vec::new(), self.settings.limits.bytes);
                let level = new_level(relation, Source::Aggregate(wanted), rows);
                self.levels.push(Some(level));
            }
            RootField::Insert(relation, mut wanted) => {
                let selection = mem::take(&mut wanted.returning);
                let model = self.settings.schema.relation(relation);
                let groups = statement::groups(model, &mut wanted)?;
                self.level(relation, Source::Insert(wanted, groups), selection);
            }
            RootField::Update(relation, mut wanted) => {
                if wanted.filter.is_empty() {
                    return Err(Error::Unbounded(key.clone()));
                }
                if wanted.values.is_empty() {
                    let (member, problem) = ("data".to_owned(), "names no column".to_owned());
                    return Err(InputError::InvalidMember { member, problem }.into());
                }
                let model = self.settings.schema.relation(relation);
                for (id, value) in &wanted.values {
                    let column = model.column(*id);
                    let place = || ["data.", &column.field].concat();
                    statement::is_given(column, place)?;
                    statement::is_text(model, *id, value, place)?;
                }
                let selection = mem::take(&mut wanted.returning);
                self.level(relation, Source::Update(wanted), selection);
            }
            RootField::Delete(relation, mut wanted) => {
                if wanted.filter.is_empty() {
                    return Err(Error::Unbounded(key.clone()));
                }
                let selection = mem::take(&mut wanted.returning);
                self.level(relation, Source::Delete(wanted), selection);
            }
        }
        Ok(None)
    }

    /// Adds a level and those below it.
    fn level(&mut self, relation: RelationId, source: Source<'a>, selection: Selection) -> usize {
        let index = self.levels.len();
        self.levels.push(None);
        let Settings { schema, limits } = self.settings;
        let joins = matches!(source, Source::List(_) | Source::Children(_) | Source::One);
        let mut nest =
            |relationship: &'a Relationship, list: Option<Arc<List>>, selection: Selection| {
                let source = list.map_or(Source::One, Source::Children);
                self.level(relationship.target, source, selection)
            };
        let program = Arc::new(Compiler::rows(
            schema, relation, selection, joins, &mut nest,
        ));
        let mut children = Vec::with_capacity(program.children.len());
        for (number, child) in program.children.iter().enumerate() {
            if let Some(Some(level)) = self.levels.get_mut(child.level) {
                level.above = Some((index, number));
            }
            let from = schema.relation(child.from);
            let columns = child.relationship(schema).columns.iter();
            let kinds = columns.map(|column| KeyKind::of(&from.column(*column).r#type));
            children.push(Keys::new(kinds.collect()));
        }
        let rows = Rows::new(program, children, limits.bytes);
        self.levels[index] = Some(new_level(relation, source, rows));
        index
    }
}

fn new_level(relation: RelationId, source: Source<'_>, rows: Rows) -> Level<'_> {
    Level {
        relation,
        above: None,
        source,
        rows,
    }
}
