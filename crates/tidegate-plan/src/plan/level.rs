//! One level of an operation: the rows of a root field, or those that hang on another level's.

use std::sync::Arc;

use tidegate_catalog::{RelationId, Schema};
use tidegate_filter::{Filter, Operator};
use tidegate_sql::Rejection;
use tidegate_values::{Type, TypeKind};

use crate::Limits;
use crate::operation::{Aggregate, Delete, Insert, List, Update};
use crate::row::{Expression, Rows};
use crate::statement::{self, Group, Page};

/// What all levels share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) limits: Limits,
}

/// Where a level's rows come from.
#[derive(Debug)]
pub(crate) enum Source<'a> {
    /// A root list.
    List(Arc<List>),
    /// Lists that hang on the rows above.
    Children(Arc<List>),
    /// Single rows that hang on the rows above.
    One,
    Aggregate(Aggregate),
    Insert(Insert<'a>, Vec<Group<'a>>),
    Update(Update<'a>),
    Delete(Delete),
}

/// A level.
#[derive(Debug)]
pub(crate) struct Level<'a> {
    pub(crate) relation: RelationId,
    /// The level that it hangs on, and which of that level's children it is.
    pub(crate) above: Option<(usize, usize)>,
    pub(crate) source: Source<'a>,
    pub(crate) rows: Rows,
}

impl Level<'_> {
    /// Whether its statements write.
    pub(crate) fn writes(&self) -> bool {
        matches!(
            self.source,
            Source::Insert(..) | Source::Update(_) | Source::Delete(_)
        )
    }

    /// Whether it has one row at most, because it is that of one object or of one key, and whether
    /// that can be shown whatever happens meanwhile. The attributes of a composite type may change,
    /// and then the statement has to be run again, which it cannot be once it is committed.
    pub(crate) fn is_one_row(&self, schema: &Schema) -> bool {
        let relation = schema.relation(self.relation);
        let is_one = match &self.source {
            Source::Insert(_, groups) => {
                groups
                    .iter()
                    .map(|group| group.objects.len())
                    .sum::<usize>()
                    <= 1
            }
            Source::Update(wanted) => statement::is_single(&wanted.filter, relation),
            Source::Delete(wanted) => statement::is_single(&wanted.filter, relation),
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

    /// The list that the request asks for; `None` for what is no list of rows.
    pub(crate) fn list(&self) -> Option<&List> {
        match &self.source {
            Source::List(list) | Source::Children(list) => Some(list),
            _ => None,
        }
    }

    /// The page of each of its lists.
    pub(crate) fn page(&self, settings: &Settings<'_>) -> Page {
        self.list().map_or(Page::ONE, |list| {
            let relation = settings.schema.relation(self.relation);
            Page::of(list, relation, &settings.limits)
        })
    }

    /// The place of the value that PostgreSQL refused in the statement of a write, of which `group`
    /// is the number among those of an insert.
    pub(crate) fn locate(
        &self,
        settings: &Settings<'_>,
        group: usize,
        rejection: &Rejection,
    ) -> Option<String> {
        let relation = settings.schema.relation(self.relation);
        match &self.source {
            Source::Insert(wanted, groups) => {
                let group = groups.get(group)?;
                statement::locate(relation, (wanted.listed, group), rejection)
            }
            Source::Update(wanted) => statement::locate_new(relation, wanted, rejection)
                .or_else(|| self.pattern(rejection)),
            _ => self.pattern(rejection),
        }
    }

    /// The place of the pattern that PostgreSQL could not read, where only one can be meant: it
    /// reads them while it runs, and does not say which.
    fn pattern(&self, rejection: &Rejection) -> Option<String> {
        let filter = self.filter()?;
        let place = match &*rejection.sqlstate {
            "2201B" => filter.only_place(|used| matches!(used, Operator::Regex | Operator::IRegex)),
            "22025" => filter.only_place(|used| matches!(used, Operator::Like | Operator::ILike)),
            _ => None,
        };
        place.map(str::to_owned)
    }

    /// The condition on its rows.
    pub(crate) fn filter(&self) -> Option<&Filter> {
        match &self.source {
            Source::List(list) | Source::Children(list) => Some(&list.filter),
            Source::Aggregate(wanted) => Some(&wanted.filter),
            Source::Update(wanted) => Some(&wanted.filter),
            Source::Delete(wanted) => Some(&wanted.filter),
            Source::One | Source::Insert(..) => None,
        }
    }

    /// Brings the rows of an insert into the order of the objects, once all groups are in.
    pub(crate) fn arrange(&mut self) {
        let Source::Insert(_, groups) = &self.source else {
            return;
        };
        let objects: Vec<u32> = groups
            .iter()
            .flat_map(|group| &group.objects)
            .copied()
            .collect();
        // With fewer rows than objects it is unknown which are missing: `do nothing`, a trigger.
        if groups.len() > 1 && objects.len() == self.rows.list.len() {
            self.rows.arrange(&objects);
        }
    }
}

/// Whether values of a type have attributes, or values in them do.
fn has_attributes(r#type: &Type) -> bool {
    match r#type.kind() {
        TypeKind::Composite(_) => true,
        TypeKind::Array(inner)
        | TypeKind::Domain(inner)
        | TypeKind::Range(inner)
        | TypeKind::Multirange(inner) => has_attributes(inner),
        _ => false,
    }
}

pub(super) fn narrow(rows: u64) -> u32 {
    u32::try_from(rows).unwrap_or(u32::MAX - 1)
}
