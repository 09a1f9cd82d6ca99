//! One level of an operation: the rows of a root field, or those that hang on another level's.

use tidegate_catalog::model::Column;
use tidegate_catalog::{RelationId, Schema};
use tidegate_filter::{Filter, Operator};
use tidegate_sql::{BoundStatement, Rejection};

use super::flat;
use crate::operation::{Aggregate, Delete, Insert, List, Update};
use crate::row::{Child, Grouping, Keys, Program, Rows, Slot};
use crate::statement::{self, Children, Group, Page, Template};
use crate::{Error, Limits, Result};

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
    List(List),
    /// A root list, and the lists that hang on its rows, in one statement.
    Flat(List, List),
    /// Those lists, once they have come.
    Below,
    /// Lists that hang on the rows above.
    Children(List),
    /// Single rows that hang on the rows above.
    One,
    /// Nothing: null stands in their place.
    Lost,
    Aggregate(Aggregate),
    Insert(Insert<'a>, Vec<Group<'a>>),
    Update(Update<'a>),
    Delete(Delete),
}

/// A level.
#[derive(Debug)]
pub(crate) struct Level<'a> {
    /// The root field that it belongs to.
    pub(crate) root: usize,
    pub(crate) relation: RelationId,
    /// The level that it hangs on, and which of that level's children it is.
    pub(crate) above: Option<(usize, usize)>,
    pub(crate) source: Source<'a>,
    pub(crate) rows: Rows<'a>,
    /// How many of its statements have been given.
    pub(crate) given: usize,
    /// For how many rows all lists together have room.
    pub(crate) room: u64,
}

impl<'a> Level<'a> {
    /// How many statements it has at least.
    pub(crate) fn statements(&self) -> usize {
        match &self.source {
            Source::Insert(_, groups) => groups.len(),
            Source::Below | Source::Lost => 0,
            _ => 1,
        }
    }

    /// Its next statement; `above` are the levels before it.
    pub(crate) fn next(
        &mut self,
        settings: &Settings<'a>,
        above: &mut [Level<'a>],
    ) -> Result<Option<BoundStatement>> {
        let given = self.given;
        self.given += 1;
        match (&self.source, given) {
            (Source::Insert(wanted, groups), _) => {
                let Some(group) = groups.get(given) else {
                    self.arrange();
                    return Ok(None);
                };
                let (schema, program) = (settings.schema, &self.rows.program);
                statement::insert(schema, self.relation, (wanted, group), program).map(Some)
            }
            (Source::Children(_) | Source::One, 0) => Ok(self.children(settings, above)),
            (Source::Children(_), 1) if self.rows.received >= self.room => {
                self.rows.restart();
                Ok(self.repeated(settings, above))
            }
            (Source::Lost, _) => Ok(None),
            (Source::Below, 0) => {
                self.rows = flat::part(above)?;
                Ok(None)
            }
            (_, 0) => self.root(settings).map(Some),
            _ => Ok(None),
        }
    }

    /// The statement of a root field.
    fn root(&mut self, settings: &Settings<'a>) -> Result<BoundStatement> {
        let Settings { schema, limits } = *settings;
        let (relation, program) = (self.relation, &self.rows.program);
        Ok(match &self.source {
            Source::List(list) => {
                let page = Page::of(list, schema.relation(relation), &limits);
                self.rows.most = narrow(page.most);
                statement::list(schema, relation, list, &page, program)
            }
            Source::Flat(list, each) => {
                flat::statement(settings, relation, (list, each), &mut self.rows)?
            }
            Source::Aggregate(wanted) => {
                self.rows.most = narrow(limits.most_rows);
                let fetched = limits.most_rows.saturating_add(1);
                statement::aggregate(schema, relation, wanted, program, fetched)
            }
            Source::Update(wanted) => statement::update(schema, relation, wanted, program),
            Source::Delete(wanted) => statement::delete(schema, relation, wanted, program),
            Source::Insert(..)
            | Source::Children(_)
            | Source::One
            | Source::Below
            | Source::Lost => {
                return Err(Error::Internal("a level without a statement of its own"));
            }
        })
    }

    /// The first statement for rows that hang on those above; none where nothing can hang.
    fn children(
        &mut self,
        settings: &Settings<'a>,
        above: &mut [Level<'a>],
    ) -> Option<BoundStatement> {
        let (parent, child) = self.above?;
        let keys = std::mem::take(
            above
                .get_mut(parent)?
                .rows
                .written
                .children
                .get_mut(child)?,
        );
        self.rows.slots = vec![Slot::EMPTY; keys.count() as usize];
        if keys.count() == 0 {
            self.given += 1;
            return None;
        }
        let (page, list) = page(&self.source, self.relation, settings);
        self.rows.most = narrow(page.most);
        let program = &above[parent].rows.program;
        let here = here(settings.schema, program, child);
        let child = &program.children[child];
        let wanted = wanted(child, &here, (list, settings, &self.rows.program));
        let template = if page.given {
            Template::Limited
        } else {
            wanted.template()
        };
        if template != Template::Limited && list.is_some() {
            self.room = room(keys.count(), page.most);
        }
        let statement = statement::children(&wanted, template, (&page, &keys, self.room));
        self.rows.grouping = match template {
            Template::Any => Grouping::Key(keys),
            Template::Joined => Grouping::Ordinal(keys),
            Template::Limited => Grouping::Ordinal(Keys::default()),
        };
        Some(statement)
    }

    /// The second statement, where some list holds more rows than all lists together have room
    /// for, so that others may lack theirs.
    fn repeated(
        &mut self,
        settings: &Settings<'a>,
        above: &mut [Level<'a>],
    ) -> Option<BoundStatement> {
        let (parent, child) = self.above?;
        let keys = match std::mem::replace(&mut self.rows.grouping, Grouping::One) {
            Grouping::Key(keys) | Grouping::Ordinal(keys) => keys,
            Grouping::One => return None,
        };
        let (page, list) = page(&self.source, self.relation, settings);
        let program = &above[parent].rows.program;
        let here = here(settings.schema, program, child);
        let child = &program.children[child];
        let wanted = wanted(child, &here, (list, settings, &self.rows.program));
        let statement = statement::children(&wanted, Template::Limited, (&page, &keys, 0));
        self.rows.grouping = Grouping::Ordinal(keys);
        Some(statement)
    }

    /// The place of the value that PostgreSQL refused in the statement given last.
    pub(crate) fn locate(&self, settings: &Settings<'a>, rejection: &Rejection) -> Option<String> {
        let relation = settings.schema.relation(self.relation);
        match &self.source {
            Source::Insert(wanted, groups) => {
                let group = groups.get(self.given.checked_sub(1)?)?;
                statement::locate(relation, (wanted.listed, group), rejection)
            }
            Source::Update(wanted) => statement::locate_new(relation, wanted, rejection)
                .or_else(|| pattern(&wanted.filter, rejection)),
            Source::Delete(wanted) => pattern(&wanted.filter, rejection),
            Source::Aggregate(wanted) => pattern(&wanted.filter, rejection),
            Source::List(list) | Source::Children(list) => pattern(&list.filter, rejection),
            Source::Flat(list, each) => match pattern(&list.filter, rejection) {
                Some(place) if pattern(&each.filter, rejection).is_none() => Some(place),
                _ => None,
            },
            _ => None,
        }
    }

    /// Brings the rows of an insert into the order of the objects, once all groups are in.
    fn arrange(&mut self) {
        let Source::Insert(_, groups) = &self.source else {
            return;
        };
        let objects: Vec<u32> = groups
            .iter()
            .flat_map(|group| &group.objects)
            .copied()
            .collect();
        // With fewer rows than objects nobody knows which are missing: `do nothing`, a trigger.
        if groups.len() > 1 && objects.len() == self.rows.list.len() {
            self.rows.arrange(&objects);
        }
    }
}

/// What the statements of a level below ask for.
fn wanted<'w, 'a>(
    child: &Child<'a>,
    here: &'w [&'a Column],
    (list, settings, program): (Option<&'w List>, &Settings<'a>, &'w Program<'a>),
) -> Children<'w, 'a> {
    Children {
        schema: settings.schema,
        relationship: child.relationship,
        here,
        list,
        program,
    }
}

/// The place of the pattern that PostgreSQL could not read, where only one can be meant: it reads
/// them while it runs, and does not say which.
fn pattern(filter: &Filter, rejection: &Rejection) -> Option<String> {
    let place = match &*rejection.sqlstate {
        "2201B" => filter.only_place(|used| matches!(used, Operator::Regex | Operator::IRegex)),
        "22025" => filter.only_place(|used| matches!(used, Operator::Like | Operator::ILike)),
        _ => None,
    };
    place.map(str::to_owned)
}

/// The page of each list below the rows above, and what the request says of it.
fn page<'l>(
    source: &'l Source<'_>,
    relation: RelationId,
    settings: &Settings<'_>,
) -> (Page, Option<&'l List>) {
    match source {
        Source::Children(list) => {
            let relation = settings.schema.relation(relation);
            (Page::of(list, relation, &settings.limits), Some(list))
        }
        _ => (Page::ONE, None),
    }
}

/// For how many rows the lists of so many keys have room together, and one more. It is enough for
/// what lists mostly hold; where it is not, no more than these rows have been read in vain.
fn room(keys: u32, most: u64) -> u64 {
    let keys = u64::from(keys);
    let usual = keys.saturating_mul(64).max(most.saturating_mul(16));
    keys.saturating_mul(most).min(usual).saturating_add(1)
}

/// The columns above that lead to a child.
pub(super) fn here<'a>(schema: &'a Schema, above: &Program<'a>, child: usize) -> Vec<&'a Column> {
    let child = &above.children[child];
    let relation = schema.relation(child.from);
    let columns = child.relationship.columns.iter();
    columns.map(|column| relation.column(*column)).collect()
}

pub(super) fn narrow(rows: u64) -> u32 {
    u32::try_from(rows).unwrap_or(u32::MAX - 1)
}
