//! Builds the levels of an operation.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tidegate_catalog::RelationId;
use tidegate_catalog::model::Relationship;
use tidegate_sql::InputError;

use super::level::{Level, RowSource, Settings};
use super::read_only;
use super::tree::Tree;
use super::{ExecutionMode, Plan, Root, RootOutput};
use crate::operation::{self, List, RootField, Selection};
use crate::row::{Compiler, KeyKind, Keys, LevelRows, aggregate};
use crate::statement;
use crate::{Error, Operation, Result};

/// The largest number of root fields that share a statement. Only root fields that read one row
/// each share a statement.
const SHARED: usize = 16;

/// Plans an operation. If `share` is true, a query has a common statement for those root fields
/// that read one row each.
///
/// Measured: CPU time of the backend per document (PostgreSQL 15, `pgbench -M prepared`), for five
/// rows of one table that are read by key.
///
/// | statements | time |
/// | --- | --- |
/// | one shared statement | 50 µs |
/// | a pipeline of `BEGIN`, five statements and `COMMIT` | 70 µs |
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
    // The index of the tree whose statement the next root fields may share.
    let mut shared = None;
    for operation::Root { key, field } in fields {
        let mut builder = Builder {
            settings,
            levels: Vec::new(),
        };
        let output = builder.root_field(&key, field);
        let output = output.map_err(|error| Error::Root(Arc::clone(&key), Box::new(error)))?;
        let output = output.unwrap_or_else(|| {
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
                return RootOutput::Rows { tree, level };
            }
            let tree = trees.len();
            trees.push(Tree::new(levels));
            if can_share {
                shared = Some(tree);
            }
            RootOutput::Rows { tree, level: 0 }
        });
        roots.push(Root { key, output });
    }
    let mode = mode(&settings, &trees, writes);
    // In the modes `Together` and `AfterRows`, the commit does not wait until the response is
    // built, so the size limit is checked while the rows arrive.
    let bytes = Arc::new(AtomicU64::new(0));
    for tree in &mut trees {
        match mode {
            ExecutionMode::Together => tree.drop_refused_rows(),
            ExecutionMode::AfterRows => tree.share_limit(&bytes),
            ExecutionMode::Single | ExecutionMode::Snapshot | ExecutionMode::InTurn => {}
        }
    }
    Ok(Plan {
        settings,
        mode,
        roots,
        trees,
        steps: Vec::new(),
        at: 0,
    })
}

/// Whether a root field has only one level, and this level reads at most one stored row.
fn reads_one_row(settings: &Settings<'_>, levels: &[Level<'_>]) -> bool {
    matches!(levels, [level] if level.list().is_some()
        && level.page(settings).single
        && read_only::is(settings, level))
}

/// If the limit of a response is at least this number of bytes, a single row is assumed to fit.
const ONE_ROW: u64 = 1 << 20;

fn mode(settings: &Settings<'_>, trees: &[Tree<'_>], writes: bool) -> ExecutionMode {
    let mut levels = trees.iter().flat_map(|tree| &tree.reader.levels);
    if writes {
        return match () {
            () if !trees.iter().all(Tree::is_one_statement) => ExecutionMode::InTurn,
            () if settings.limits.bytes >= ONE_ROW
                && levels.all(|level| level.is_one_row(settings.schema)) =>
            {
                ExecutionMode::Together
            }
            () => ExecutionMode::AfterRows,
        };
    }
    // A single statement reads in one snapshot even without a transaction block. It needs a
    // read-only transaction only if it might write.
    if trees.len() <= 1 && levels.all(|level| read_only::is(settings, level)) {
        ExecutionMode::Single
    } else {
        ExecutionMode::Snapshot
    }
}

/// Builds the levels of a root field.
struct Builder<'a> {
    settings: Settings<'a>,
    /// The levels; each comes after its parent. A level is `None` while its selection is compiled.
    levels: Vec<Option<Level<'a>>>,
}

impl<'a> Builder<'a> {
    /// Builds the levels of a root field and returns `None`. For a field without levels, returns
    /// its content.
    fn root_field(&mut self, key: &Arc<str>, field: RootField<'a>) -> Result<Option<RootOutput>> {
        match field {
            RootField::Verbatim(text) => return Ok(Some(RootOutput::Verbatim(text))),
            RootField::Inserted => return Ok(Some(RootOutput::Inserted)),
            RootField::Get(relation, mut list) => {
                let selection = mem::take(&mut list.selection);
                self.level(relation, RowSource::List(Arc::new(list)), selection);
            }
            RootField::Aggregate(relation, wanted) => {
                let program = Arc::new(aggregate(self.settings.schema, relation, &wanted));
                let rows = LevelRows::new(program, Vec::new(), self.settings.limits.bytes);
                let level = new_level(relation, RowSource::Aggregate(wanted), rows);
                self.levels.push(Some(level));
            }
            RootField::Insert(relation, mut wanted) => {
                let selection = mem::take(&mut wanted.returning);
                let model = self.settings.schema.relation(relation);
                let groups = statement::groups(model, &mut wanted)?;
                self.level(relation, RowSource::Insert(wanted, groups), selection);
            }
            RootField::Update(relation, mut wanted) => {
                if wanted.filter.is_empty() {
                    return Err(Error::Unbounded(key.clone()));
                }
                if wanted.values.is_empty() {
                    let (field, problem) = ("data".to_owned(), "names no column".to_owned());
                    return Err(InputError::InvalidField { field, problem }.into());
                }
                let model = self.settings.schema.relation(relation);
                for (id, value) in &wanted.values {
                    let column = model.column(*id);
                    let place = || ["data.", &column.field].concat();
                    statement::require_given(column, place)?;
                    statement::require_text(model, *id, value, place)?;
                }
                let selection = mem::take(&mut wanted.returning);
                self.level(relation, RowSource::Update(wanted), selection);
            }
            RootField::Delete(relation, mut wanted) => {
                if wanted.filter.is_empty() {
                    return Err(Error::Unbounded(key.clone()));
                }
                let selection = mem::take(&mut wanted.returning);
                self.level(relation, RowSource::Delete(wanted), selection);
            }
        }
        Ok(None)
    }

    /// Adds a level and the levels below it; returns the index of the added level.
    fn level(
        &mut self,
        relation: RelationId,
        source: RowSource<'a>,
        selection: Selection,
    ) -> usize {
        let index = self.levels.len();
        self.levels.push(None);
        let Settings { schema, limits } = self.settings;
        let joins = matches!(
            source,
            RowSource::List(_) | RowSource::Children(_) | RowSource::One
        );
        let mut nest =
            |relationship: &'a Relationship, list: Option<Arc<List>>, selection: Selection| {
                let source = list.map_or(RowSource::One, RowSource::Children);
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
        let rows = LevelRows::new(program, children, limits.bytes);
        self.levels[index] = Some(new_level(relation, source, rows));
        index
    }
}

fn new_level(relation: RelationId, source: RowSource<'_>, rows: LevelRows) -> Level<'_> {
    Level {
        relation,
        above: None,
        source,
        rows,
    }
}
