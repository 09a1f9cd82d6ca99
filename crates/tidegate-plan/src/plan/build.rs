//! From an operation to its levels.

use std::mem;
use std::sync::Arc;

use tidegate_catalog::RelationId;
use tidegate_catalog::model::Relationship;
use tidegate_sql::InputError;

use super::level::{Level, Settings, Source};
use super::{Plan, Root, RootShows, Way};
use super::{flat, harmless};
use crate::operation::{self, RootField, Selection};
use crate::row::{Compiler, KeyKind, Keys, Rows, aggregate};
use crate::statement;
use crate::{Error, Operation, Result};

/// Plans an operation; with `joins` one statement may read the rows of several fields.
pub(super) fn plan<'a>(
    settings: Settings<'a>,
    operation: Operation<'a>,
    joins: bool,
) -> Result<Plan<'a>> {
    let (fields, many) = match operation {
        Operation::Query(fields) => (fields, Way::Snapshot),
        Operation::Mutation(fields) => (fields, Way::ReadWrite),
    };
    let mut builder = Builder {
        settings,
        joins,
        root: 0,
        levels: Vec::new(),
    };
    let mut roots = Vec::with_capacity(fields.len());
    for (root, operation::Root { key, field }) in fields.into_iter().enumerate() {
        builder.root = root;
        let shows = builder.root_field(&key, field);
        let shows = shows.map_err(|error| Error::Root(Arc::clone(&key), Box::new(error)))?;
        roots.push(Root { key, shows });
    }
    let mut levels: Vec<_> = builder.levels.into_iter().flatten().collect();
    if joins {
        flat::join(&settings, &mut levels);
    }
    let statements: usize = levels.iter().map(Level::statements).sum();
    let way = match many {
        _ if statements > 1 => many,
        // One statement is a snapshot of its own, but it could write.
        Way::Snapshot if !levels.iter().all(|level| harmless::is(&settings, level)) => many,
        _ => Way::Alone,
    };
    Ok(Plan {
        settings,
        way,
        writes: many == Way::ReadWrite,
        roots,
        at: 0,
        left: levels.len(),
        levels,
        statement: None,
    })
}

struct Builder<'a> {
    settings: Settings<'a>,
    /// Whether one statement may read the rows of several fields.
    joins: bool,
    root: usize,
    /// In an order in which each follows the one that it hangs on; empty while it is compiled.
    levels: Vec<Option<Level<'a>>>,
}

impl<'a> Builder<'a> {
    fn root_field(&mut self, key: &Arc<str>, field: RootField<'a>) -> Result<RootShows> {
        let level = match field {
            RootField::Verbatim(text) => return Ok(RootShows::Verbatim(text)),
            RootField::Gap => return Ok(RootShows::Gap),
            RootField::Get(relation, mut list) => {
                let selection = mem::take(&mut list.selection);
                self.level(relation, Source::List(list), selection)
            }
            RootField::Aggregate(relation, wanted) => {
                let program = aggregate(self.settings.schema, relation, &wanted);
                let rows = Rows::new(program, Vec::new(), self.settings.limits.bytes);
                self.push(relation, Source::Aggregate(wanted), rows)
            }
            RootField::Insert(relation, mut wanted) => {
                let selection = mem::take(&mut wanted.returning);
                let model = self.settings.schema.relation(relation);
                let groups = statement::groups(model, &mut wanted)?;
                self.level(relation, Source::Insert(wanted, groups), selection)
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
                self.level(relation, Source::Update(wanted), selection)
            }
            RootField::Delete(relation, mut wanted) => {
                if wanted.filter.is_empty() {
                    return Err(Error::Unbounded(key.clone()));
                }
                let selection = mem::take(&mut wanted.returning);
                self.level(relation, Source::Delete(wanted), selection)
            }
        };
        Ok(RootShows::Level(level))
    }

    /// Adds a level and those below it.
    fn level(&mut self, relation: RelationId, source: Source<'a>, selection: Selection) -> usize {
        let index = self.levels.len();
        self.levels.push(None);
        let Settings { schema, limits } = self.settings;
        let joins =
            self.joins && matches!(source, Source::List(_) | Source::Children(_) | Source::One);
        let mut nest =
            |relationship: &'a Relationship, source: Source<'a>, selection: Selection| {
                self.level(relationship.target, source, selection)
            };
        let program = Compiler::rows(schema, relation, selection, joins, &mut nest);
        let mut children = Vec::with_capacity(program.children.len());
        for (number, child) in program.children.iter().enumerate() {
            if let Some(Some(level)) = self.levels.get_mut(child.level) {
                level.above = Some((index, number));
            }
            let from = schema.relation(child.from);
            let columns = child.relationship.columns.iter();
            let kinds = columns.map(|column| KeyKind::of(&from.column(*column).r#type));
            children.push(Keys::new(kinds.collect()));
        }
        let rows = Rows::new(program, children, limits.bytes);
        self.levels[index] = Some(self.new_level(relation, source, rows));
        index
    }

    fn push(&mut self, relation: RelationId, source: Source<'a>, rows: Rows<'a>) -> usize {
        let level = self.new_level(relation, source, rows);
        self.levels.push(Some(level));
        self.levels.len() - 1
    }

    fn new_level(&self, relation: RelationId, source: Source<'a>, rows: Rows<'a>) -> Level<'a> {
        Level {
            root: self.root,
            relation,
            above: None,
            source,
            rows,
            given: 0,
            room: u64::MAX,
        }
    }
}
