//! The rows of several levels in one statement.
//!
//! A level that others hang on is a materialized CTE, so its rows are found once, and the levels
//! below join what was found: whatever its policies, views, limits and order do, parents and
//! children fit each other. Each level is one branch of a `union all`; the first column is the
//! number of the level, see [`Layout`].
//!
//! Measured (PostgreSQL 15, Chinook, CPU of the backend per document, `pgbench -M prepared`)
//! against one statement a level with the condition of the level above repeated, in one pipeline:
//! a parent with its list 56 µs against 79, 3 × 5 × 5 lists 194 against 265, four levels 399
//! against 486, 20 × 10 × 10 about equal, 59 × 7 × 5 without limits 2,210 against 1,381. Nested lateral
//! selects are equal for two levels and up to twice as expensive for three.

use std::ops::Range;

use tidegate_catalog::model::{Collation, Column};
use tidegate_catalog::{RelationId, Schema};
use tidegate_sql::BoundStatement;
use tidegate_sql::statement::{Kind, SqlWriter};
use tidegate_values::{Type, TypeKind};

use super::elements::Elements;
use super::layout::{Item, Layout};
use super::raw_keys::{as_text, raw_keys};
use super::{
    Page, column, condition, expressions, joined_by, joins, list, page, relation, type_name,
};
use crate::operation::List;
use crate::row::{Child, Expression, KeyKind, Keys, Program, base};

/// A level of the statement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'p> {
    pub(crate) relation: RelationId,
    /// Which rows; `None` for those of a to-one relationship.
    pub(crate) list: Option<&'p List>,
    pub(crate) page: Page,
    pub(crate) program: &'p Program,
    /// What its rows hang on.
    pub(crate) parents: Parents<'p>,
    /// Whether other levels of the statement hang on it.
    pub(crate) has_children: bool,
    /// How all lists of the level together are limited.
    pub(crate) limit: Limit,
}

/// What the rows of a level hang on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Parents<'p> {
    /// Nothing: a root list.
    None,
    /// Keys that are known.
    Known(&'p Keys, &'p Child),
    /// The rows of another level of the statement.
    Level(Above<'p>),
}

/// Which rows of another level of the statement a level hangs on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Above<'p> {
    /// The number of that level.
    pub(crate) level: usize,
    pub(crate) program: &'p Program,
    /// The number of the level among its children.
    pub(crate) child: usize,
    /// How many columns stand in front of those that its program takes.
    pub(crate) header: usize,
    /// Whether several of its rows may have one key.
    pub(crate) repeated: bool,
}

/// How the lists of a level are limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Each list by its own page.
    Each,
    /// All lists share so many rows.
    Shared(u64),
    /// They are single rows.
    None,
}

/// Whether two columns' values are equal exactly when their keys are, see [`KeyKind`].
pub(crate) fn has_equal_bytes(here: &Column, there: &Column) -> bool {
    let (a, b) = (base(&here.r#type), base(&there.r#type));
    if KeyKind::of(a) == KeyKind::Integer {
        return KeyKind::of(b) == KeyKind::Integer;
    }
    let is_plain = |column: &Column, r#type: &Type| match *r#type {
        Type::TEXT | Type::VARCHAR => matches!(
            column.collation,
            Some(Collation::Bytes | Collation::Deterministic)
        ),
        Type::UUID | Type::DATE | Type::TIMESTAMP | Type::TIMESTAMPTZ | Type::OID => true,
        _ => matches!(r#type.kind(), TypeKind::Enum(_)),
    };
    let texts = |r#type: &Type| matches!(*r#type, Type::TEXT | Type::VARCHAR);
    is_plain(here, a) && is_plain(there, b) && (a == b || (texts(a) && texts(b)))
}

/// The statement of levels, each behind the one that it hangs on.
#[derive(Debug)]
pub(crate) struct Nested {
    pub(crate) statement: BoundStatement,
    /// Where its columns are; `None` of a single level, whose columns stand behind one another.
    pub(crate) layout: Option<Layout>,
    /// By level, which parameters are its own.
    pub(crate) parameters: Vec<Range<usize>>,
}

/// Writes the statement of levels.
pub(crate) fn nested(schema: &Schema, levels: &[Part<'_>]) -> Nested {
    let mut sql = SqlWriter::new();
    if let [level] = levels {
        let own = level.rows(schema, &mut sql);
        return Nested {
            statement: sql.finish(Kind::Read),
            layout: None,
            parameters: vec![own],
        };
    }
    let mut parameters = vec![0..0; levels.len()];
    let mut separator = "with l";
    for (number, level) in levels.iter().enumerate() {
        if level.has_children {
            sql.numbered(separator, number).syntax("(");
            separator = ", l";
            level.names(schema, &mut sql);
            sql.syntax(") as materialized (");
            parameters[number] = level.rows(schema, &mut sql);
            sql.syntax(")");
        }
    }
    let items: Vec<_> = levels.iter().map(|level| level.items(schema)).collect();
    let layout = Layout::of(&items);
    for (number, level) in levels.iter().enumerate() {
        sql.syntax(if number > 0 { " union all " } else { " " });
        layout.select(schema, (number, &items), &mut sql);
        if level.has_children {
            sql.numbered(" from l", number).syntax(" p");
        } else {
            sql.syntax(" from (");
            parameters[number] = level.rows(schema, &mut sql);
            sql.syntax(") p(");
            level.names(schema, &mut sql);
            sql.syntax(")");
        }
    }
    Nested {
        statement: sql.finish(Kind::Read),
        layout: Some(layout),
        parameters,
    }
}

/// The columns that lead to a child.
fn here<'s>(schema: &'s Schema, child: &Child) -> impl Iterator<Item = &'s Column> {
    let relation = schema.relation(child.from);
    let columns = child.relationship(schema).columns.iter();
    columns.map(|column| relation.column(*column))
}

impl Part<'_> {
    /// The columns of the level: the key of its parents, and what its program takes.
    fn items(&self, schema: &Schema) -> Vec<Item> {
        let mut items = Vec::new();
        match self.parents {
            Parents::None => {}
            Parents::Known(..) => items.push(Item::number()),
            Parents::Level(above) => {
                let key = above.key().iter();
                items.extend(key.filter_map(|key| Item::of(schema, above.program, key)));
            }
        }
        let own = self.program.expressions.iter();
        items.extend(own.filter_map(|shown| Item::of(schema, self.program, shown)));
        items
    }

    /// Appends the names of the columns of [`Part::rows`].
    fn names(&self, schema: &Schema, sql: &mut SqlWriter) {
        let shown = self.items(schema).len();
        let raw = self.program.children.iter().flat_map(|child| {
            let key = self.program.expressions[child.key.clone()].iter();
            key.filter(|key| as_text(schema, self.program, key).is_some())
        });
        let raw = raw.count();
        let names = (0..shown).map(|at| ("c", at));
        let mut separator = "";
        for (name, at) in names.chain((0..raw).map(|at| ("k", at))) {
            sql.syntax(separator).numbered(name, at);
            separator = ", ";
        }
    }

    /// Appends the select of the level's rows; tells which parameters it has.
    fn rows(&self, schema: &Schema, sql: &mut SqlWriter) -> Range<usize> {
        let before = sql.parameters();
        self.select(schema, sql);
        before..sql.parameters()
    }

    fn select(&self, schema: &Schema, sql: &mut SqlWriter) {
        let Some(child) = self.child() else {
            if let Some(wanted) = self.list {
                let page = (wanted, &self.page);
                list(schema, self.relation, page, self.program, sql);
            }
            return;
        };
        sql.syntax("select ");
        self.header(sql);
        if self.limit == Limit::Each {
            sql.syntax(", c.* from ");
            self.parents(schema, sql);
            sql.syntax(" cross join lateral (");
            self.each(schema, child, sql);
            sql.syntax(") c");
            return;
        }
        expressions(schema, self.program, ", ", sql);
        raw_keys(schema, self.program, sql);
        sql.syntax(" from ");
        self.parents(schema, sql);
        sql.syntax(" join ");
        relation(schema, self.relation, 0, sql);
        sql.syntax(" on ");
        self.matching(schema, child, sql);
        joins(schema, self.program, sql);
        let Some(wanted) = self.list else { return };
        condition(schema, self.relation, &wanted.filter, " where ", sql);
        page::order(schema.relation(self.relation), &wanted.order, false, sql);
        if let Limit::Shared(rows) = self.limit {
            let rows = usize::try_from(rows).unwrap_or(usize::MAX);
            sql.syntax(" limit ").numbered("", rows);
        }
    }

    /// Appends the rows of one key, with a limit of their own.
    fn each(&self, schema: &Schema, child: &Child, sql: &mut SqlWriter) {
        let select = |sql: &mut SqlWriter| {
            sql.syntax("select");
            expressions(schema, self.program, " ", sql);
            raw_keys(schema, self.program, sql);
            sql.syntax(" from ");
            relation(schema, self.relation, 0, sql);
            joins(schema, self.program, sql);
            sql.syntax(" where ");
            self.matching(schema, child, sql);
            if let Some(wanted) = self.list {
                condition(schema, self.relation, &wanted.filter, " and ", sql);
            }
        };
        let order = |sql: &mut SqlWriter| {
            let wanted = self.list.map_or(&[][..], |list| &list.order);
            page::order(schema.relation(self.relation), wanted, self.page.given, sql);
        };
        page::write(&self.page, sql, select, order);
    }

    fn child(&self) -> Option<&Child> {
        match self.parents {
            Parents::None => None,
            Parents::Known(_, child) => Some(child),
            Parents::Level(above) => above.program.children.get(above.child),
        }
    }

    /// Appends what tells to which list a row belongs.
    fn header(&self, sql: &mut SqlWriter) {
        match self.parents {
            Parents::Level(above) => above.shown_keys(sql),
            Parents::None | Parents::Known(..) => {
                sql.syntax("p.n");
            }
        }
    }

    /// Appends the rows `p` that this level's rows hang on, each key once.
    fn parents(&self, schema: &Schema, sql: &mut SqlWriter) {
        match self.parents {
            Parents::None => {}
            Parents::Known(keys, child) => {
                let mut separator = "rows from (pg_catalog.unnest(";
                for (at, here) in here(schema, child).enumerate() {
                    sql.syntax(separator).parameter(keys.array(at)).syntax("::");
                    Elements::of(&here.r#type).write(sql);
                    separator = "), pg_catalog.unnest(";
                }
                sql.syntax(")) with ordinality p(");
                for at in 0..child.key.len() {
                    sql.numbered("k", at).syntax(", ");
                }
                sql.syntax("n)");
            }
            Parents::Level(above) => above.rows(schema, sql),
        }
    }

    /// Appends the condition that a row belongs to a key.
    fn matching(&self, schema: &Schema, child: &Child, sql: &mut SqlWriter) {
        let target = schema.relation(self.relation);
        let pairs = here(schema, child).zip(&child.relationship(schema).target_columns);
        for (at, (here, there)) in pairs.enumerate() {
            let there = target.column(*there);
            sql.syntax(if at > 0 { " and " } else { "" });
            column(0, &there.name, sql);
            joined_by(there, here, sql);
            if let Parents::Level(above) = self.parents {
                above.raw_key(schema, at, sql);
                continue;
            }
            sql.numbered("p.k", at);
            if let Elements::Texts(r#type) = Elements::of(&here.r#type) {
                sql.syntax("::");
                type_name(r#type, sql);
            }
        }
    }
}

impl Above<'_> {
    /// The key, as the rows show it.
    fn key(&self) -> &[Expression] {
        let child = self.program.children.get(self.child);
        let key = child.and_then(|child| self.program.expressions.get(child.key.clone()));
        key.unwrap_or_default()
    }

    fn shown_keys(&self, sql: &mut SqlWriter) {
        for at in 0..self.key().len() {
            sql.syntax(if at > 0 { ", " } else { "" });
            self.shown_key(at, sql);
        }
    }

    fn shown_key(&self, at: usize, sql: &mut SqlWriter) {
        let first = self.program.children[self.child].key.start;
        sql.numbered("p.c", self.header + first + at);
    }

    /// Appends a column of the key as PostgreSQL compares it.
    fn raw_key(&self, schema: &Schema, at: usize, sql: &mut SqlWriter) {
        let is_raw = |key: &&Expression| as_text(schema, self.program, key).is_some();
        if self.key().get(at).is_none_or(|key| !is_raw(&key)) {
            self.shown_key(at, sql);
            return;
        }
        let before = self.program.children[..self.child].iter();
        let before = before.flat_map(|child| &self.program.expressions[child.key.clone()]);
        let raw = before.chain(&self.key()[..at]).filter(is_raw);
        sql.numbered("p.k", raw.count());
    }

    /// Appends the rows, each key once.
    fn rows(&self, schema: &Schema, sql: &mut SqlWriter) {
        if !self.repeated {
            sql.numbered("l", self.level).syntax(" p");
            return;
        }
        sql.syntax("(select distinct ");
        self.shown_keys(sql);
        for (at, key) in self.key().iter().enumerate() {
            if as_text(schema, self.program, key).is_some() {
                sql.syntax(", ");
                self.raw_key(schema, at, sql);
            }
        }
        sql.numbered(" from l", self.level).syntax(" p) p");
    }
}
