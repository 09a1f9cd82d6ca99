//! A level of an operation: the rows of a root field, or the rows to which a relationship leads
//! from another level.

use std::sync::Arc;

use tidegate_catalog::{RelationId, Schema};
use tidegate_filter::{Filter, Operator};
use tidegate_sql::DatabaseError;
use tidegate_values::has_attributes;

use crate::Limits;
use crate::operation::{Aggregate, Delete, Insert, List, Update};
use crate::row::{Expression, LevelRows};
use crate::statement::{self, InsertGroup, Page};

/// The schema and the limits of a plan, which all its levels use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) limits: Limits,
}

/// The source of the rows of a level.
#[derive(Debug)]
pub(crate) enum RowSource<'a> {
    /// The list that is the value of a root field.
    List(Arc<List>),
    /// A list for each row of the parent level, along a to-many relationship.
    Children(Arc<List>),
    /// At most one row for each row of the parent level, along a to-one relationship.
    One,
    Aggregate(Aggregate),
    Insert(Insert<'a>, Vec<InsertGroup<'a>>),
    Update(Update<'a>),
    Delete(Delete),
}

/// A level: the rows of a root field, or the rows to which a relationship leads from another level.
#[derive(Debug)]
pub(crate) struct Level<'a> {
    pub(crate) relation: RelationId,
    /// The index of the parent level, and the index of this level among the parent's children;
    /// `None` for a root field.
    pub(crate) above: Option<(usize, usize)>,
    pub(crate) source: RowSource<'a>,
    pub(crate) rows: LevelRows,
}

impl Level<'_> {
    pub(crate) fn writes(&self) -> bool {
        matches!(
            self.source,
            RowSource::Insert(..) | RowSource::Update(_) | RowSource::Delete(_)
        )
    }

    /// Whether the level writes at most one row, and the response can certainly contain the row's
    /// values. A level writes at most one row if it inserts one object, or if its condition selects
    /// by a key.
    ///
    /// The result is false if the level returns a composite value. Such a value cannot be read if
    /// the attributes of its type change while the statement runs. The statement must then be
    /// repeated, which is impossible after its commit.
    pub(crate) fn is_one_row(&self, schema: &Schema) -> bool {
        let relation = schema.relation(self.relation);
        let is_one = match &self.source {
            RowSource::Insert(_, groups) => {
                groups
                    .iter()
                    .map(|group| group.objects.len())
                    .sum::<usize>()
                    <= 1
            }
            RowSource::Update(wanted) => statement::is_single(&wanted.filter, relation),
            RowSource::Delete(wanted) => statement::is_single(&wanted.filter, relation),
            _ => false,
        };
        let mut shown = self.rows.program.expressions.iter();
        is_one
            && shown.all(|shown| match shown {
                Expression::Column { column, .. } => {
                    !has_attributes(&relation.column(*column).r#type)
                }
                Expression::Count | Expression::Function { .. } => true,
            })
    }

    /// The list that the level reads; `None` if the level does not read a list.
    pub(crate) fn list(&self) -> Option<&List> {
        match &self.source {
            RowSource::List(list) | RowSource::Children(list) => Some(list),
            _ => None,
        }
    }

    /// The part of each list of the level that is fetched and shown.
    pub(crate) fn page(&self, settings: &Settings<'_>) -> Page {
        self.list().map_or(Page::ONE, |list| {
            let relation = settings.schema.relation(self.relation);
            Page::of(list, relation, &settings.limits)
        })
    }

    /// The path of the value that PostgreSQL rejected in a statement of the level. For an insert,
    /// `group` is the index of the group that the statement inserts.
    pub(crate) fn locate(
        &self,
        settings: &Settings<'_>,
        group: usize,
        rejection: &DatabaseError,
    ) -> Option<String> {
        let relation = settings.schema.relation(self.relation);
        match &self.source {
            RowSource::Insert(wanted, groups) => {
                let group = groups.get(group)?;
                statement::locate(relation, wanted.listed, group, rejection)
            }
            RowSource::Update(wanted) => statement::locate_new(relation, wanted, rejection)
                .or_else(|| self.pattern(rejection)),
            _ => self.pattern(rejection),
        }
    }

    /// The path of a pattern (of `like` or a regular expression) that PostgreSQL rejected, if the
    /// filter has only one such pattern. PostgreSQL evaluates patterns while the statement runs,
    /// and does not report which pattern failed.
    fn pattern(&self, rejection: &DatabaseError) -> Option<String> {
        let filter = self.filter()?;
        let place = match &*rejection.sqlstate {
            "2201B" => filter.only_place(|used| matches!(used, Operator::Regex | Operator::IRegex)),
            "22025" => filter.only_place(|used| matches!(used, Operator::Like | Operator::ILike)),
            _ => None,
        };
        place.map(str::to_owned)
    }

    /// The condition on the rows of the level; `None` if the level cannot have a condition.
    pub(crate) fn filter(&self) -> Option<&Filter> {
        match &self.source {
            RowSource::List(list) | RowSource::Children(list) => Some(&list.filter),
            RowSource::Aggregate(wanted) => Some(&wanted.filter),
            RowSource::Update(wanted) => Some(&wanted.filter),
            RowSource::Delete(wanted) => Some(&wanted.filter),
            RowSource::One | RowSource::Insert(..) => None,
        }
    }

    /// Sorts the inserted rows into the order that their objects have in the request. Called when
    /// all groups have been inserted.
    pub(crate) fn arrange(&mut self) {
        let RowSource::Insert(_, groups) = &self.source else {
            return;
        };
        let objects: Vec<u32> = groups
            .iter()
            .flat_map(|group| &group.objects)
            .copied()
            .collect();
        // Because of `do nothing` or a trigger, there may be fewer rows than objects. It is then
        // unknown which rows are missing, so the order is not changed.
        if groups.len() > 1 && objects.len() == self.rows.list.len() {
            self.rows.arrange(&objects);
        }
    }
}

pub(super) fn narrow(rows: u64) -> u32 {
    u32::try_from(rows).unwrap_or(u32::MAX - 1)
}
