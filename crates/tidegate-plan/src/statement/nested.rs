//! Reads the rows of several levels by one statement.
//!
//! A level with children is a materialized CTE. Its rows are computed once, and the levels below
//! join these rows. Therefore parents and children always match, even if a policy, a view or a
//! limit would select other rows at a second evaluation. Each level is one branch of a `union all`.
//! The first column is the number of the level (see [`Layout`]).
//!
//! Measured: CPU time of the backend per document in µs (PostgreSQL 15, Chinook, `pgbench -M
//! prepared`). The alternative is a pipeline with one statement for each level, in which each
//! statement repeats the condition of its parent level.
//!
//! | document | this statement | pipeline |
//! | --- | --- | --- |
//! | a parent with its list | 56 | 79 |
//! | 3 × 5 × 5 lists | 194 | 265 |
//! | four levels | 399 | 486 |
//! | 20 × 10 × 10 | about equal | about equal |
//! | 59 × 7 × 5 without limits | 2,210 | 1,381 |
//!
//! Nested lateral selects cost the same as this statement for two levels, and up to twice as much
//! for three.

use std::ops::Range;

use tidegate_catalog::model::{Collation, Column};
use tidegate_catalog::{RelationId, Schema};
use tidegate_sql::BoundStatement;
use tidegate_sql::statement::{Kind, SqlWriter};
use tidegate_values::{Type, TypeKind, base_type};

use super::elements::ArrayElements;
use super::layout::{Item, Layout};
use super::raw_keys::{as_text, raw_keys};
use super::{
    Page, column, condition, expressions, joined_by, joins, list, page, relation, type_name,
};
use crate::operation::List;
use crate::row::{Child, Expression, KeyKind, Keys, Program};

/// A level that the statement reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NestedLevel<'p> {
    pub(crate) relation: RelationId,
    /// The list that is read; `None` for the rows of a to-one relationship.
    pub(crate) list: Option<&'p List>,
    pub(crate) page: Page,
    pub(crate) program: &'p Program,
    /// The parent rows, to which the rows of the level belong.
    pub(crate) parents: Parents<'p>,
    /// Whether other levels of the statement join the rows of the level.
    pub(crate) has_children: bool,
    /// How the lists of the level are limited.
    pub(crate) limit: Limit,
}

/// The parent rows of a level.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Parents<'p> {
    /// There are no parent rows, because the list is the value of a root field.
    None,
    /// The parent rows were read before, and their keys are known.
    Known(&'p Keys, &'p Child),
    /// The parent rows are read by another level of the same statement.
    Level(ParentLevel<'p>),
}

/// The parent level, if the statement reads it too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParentLevel<'p> {
    /// The number of the parent level in the statement.
    pub(crate) level: usize,
    pub(crate) program: &'p Program,
    /// The index of the child level among the children of the parent.
    pub(crate) child: usize,
    /// The number of columns that the parent has before the columns that its program reads.
    pub(crate) header: usize,
    /// Whether several rows of the parent may have the same key.
    pub(crate) repeated: bool,
}

/// How the lists of a level are limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Each list has the limit of its own page.
    Each,
    /// All lists together have at most this number of rows.
    Shared(u64),
    /// There is no limit, because each list has at most one row.
    None,
}

/// Whether two values of these columns are equal in PostgreSQL exactly if they are equal as keys
/// (see [`KeyKind`]).
pub(crate) fn has_equal_bytes(here: &Column, there: &Column) -> bool {
    let (a, b) = (base_type(&here.r#type), base_type(&there.r#type));
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

/// A statement that reads several levels, each after its parent.
#[derive(Debug)]
pub(crate) struct Nested {
    pub(crate) statement: BoundStatement,
    /// The column layout; `None` if the statement reads only one level, whose columns are in the
    /// order of its program.
    pub(crate) layout: Option<Layout>,
    /// For each level, the range of its parameters in the statement.
    pub(crate) parameters: Vec<Range<usize>>,
}

/// Writes a statement that reads several levels.
pub(crate) fn nested(schema: &Schema, levels: &[NestedLevel<'_>]) -> Nested {
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
        layout.select(schema, number, &items, &mut sql);
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

/// The columns of the relation at which a child's relationship starts.
fn start_columns<'s>(schema: &'s Schema, child: &Child) -> impl Iterator<Item = &'s Column> {
    let relation = schema.relation(child.from);
    let columns = child.relationship(schema).columns.iter();
    columns.map(|column| relation.column(*column))
}

impl NestedLevel<'_> {
    /// The columns of the level: first the key of the parent row or its number, then the columns
    /// that the level's program reads.
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

    /// Appends names for the columns of the level's rows: `c0`, `c1` and so on, and `k0`, `k1` and
    /// so on for raw keys.
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

    /// Appends the select of the level's rows; returns the range of its parameters.
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

    /// Appends the select of the rows that belong to one key, with a limit of its own.
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

    /// Appends the columns that assign a row to a list.
    fn header(&self, sql: &mut SqlWriter) {
        match self.parents {
            Parents::Level(above) => above.shown_keys(sql),
            Parents::None | Parents::Known(..) => {
                sql.syntax("p.n");
            }
        }
    }

    /// Appends the parent rows with the alias `p`, with each key once.
    fn parents(&self, schema: &Schema, sql: &mut SqlWriter) {
        match self.parents {
            Parents::None => {}
            Parents::Known(keys, child) => {
                let mut separator = "rows from (pg_catalog.unnest(";
                for (at, here) in start_columns(schema, child).enumerate() {
                    sql.syntax(separator).parameter(keys.array(at)).syntax("::");
                    ArrayElements::of(&here.r#type).write(sql);
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

    /// Appends the join condition between a row and the key of its parent row in `p`.
    fn matching(&self, schema: &Schema, child: &Child, sql: &mut SqlWriter) {
        let target = schema.relation(self.relation);
        let pairs = start_columns(schema, child).zip(&child.relationship(schema).target_columns);
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
            if let ArrayElements::Texts(r#type) = ArrayElements::of(&here.r#type) {
                sql.syntax("::");
                type_name(r#type, sql);
            }
        }
    }
}

impl ParentLevel<'_> {
    /// The key columns of the parent's program.
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

    /// Appends the key column with this index without a cast to `text`, so that PostgreSQL compares
    /// values of its type.
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

    /// Appends the parent rows, with each key once.
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
