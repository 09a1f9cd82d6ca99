//! Reads the rows of several levels by one statement.
//!
//! A level with children is a materialized CTE. Its rows are computed once, and the levels below
//! join these rows. Therefore parents and children always match, even if a policy, a view or a
//! limit would select other rows at a second evaluation. Each level is one branch of a `union all`.
//! The first column is the number of the level (see [`Layout`]). A branch selects its columns
//! directly and not from a subquery, because a subquery would cost PostgreSQL a step for each row.
//!
//! Measured: CPU time of the backend per document in µs (PostgreSQL 15, Chinook, `pgbench -M
//! prepared`). The alternative is a pipeline with one statement for each level, in which each
//! statement repeats the condition of its parent level. Numbers such as `3 × 5 × 5` are the rows of
//! one list on each level.
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
use super::layout::{Item, Layout, LevelLayout};
use super::parents::Parents;
use super::raw_keys::{as_text, raw_keys};
use super::{
    Page, column, condition, expression, expressions, joined_by, joins, page, referenced, relation,
    type_name,
};
use crate::operation::List;
use crate::row::{Child, KeyKind, Program};

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
    pub(crate) limit: Limit,
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

/// Whether comparing keys (see [`KeyKind`]) gives the same result as comparing the values of these
/// columns in PostgreSQL.
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
        let own = level.rows(schema, None, &mut sql);
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
            sql.numbered(separator, number);
            separator = ", l";
            level.names(schema, 0, &mut sql);
            sql.syntax(" as materialized (");
            parameters[number] = level.rows(schema, None, &mut sql);
            sql.syntax(")");
        }
    }
    let items: Vec<_> = levels.iter().map(|level| level.items(schema)).collect();
    let layout = Layout::of(&items);
    for (number, level) in levels.iter().enumerate() {
        sql.syntax(if number > 0 { " union all (" } else { " (" });
        let level_layout = LevelLayout {
            layout: &layout,
            items: &items,
            number,
        };
        if level.has_children {
            sql.syntax("select ");
            level_layout.columns(schema, &mut sql, |at, sql| {
                sql.numbered("p.c", at);
            });
            sql.numbered(" from l", number).syntax(" p");
        } else {
            parameters[number] = level.rows(schema, Some(level_layout), &mut sql);
        }
        sql.syntax(")");
    }
    Nested {
        statement: sql.finish(Kind::Read),
        layout: Some(layout),
        parameters,
    }
}

/// The columns of the relation `child.from` that are compared with columns of the child.
fn start_columns<'s>(schema: &'s Schema, child: &Child) -> impl Iterator<Item = &'s Column> {
    let relation = schema.relation(child.from);
    let columns = child.relationship(schema).columns.iter();
    columns.map(|column| relation.column(*column))
}

impl NestedLevel<'_> {
    /// The columns of the level: first the key of the parent row, or the number of this key, then
    /// the columns that the level's program reads.
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

    /// Appends names for the columns of the level's rows: `c0`, `c1` and so on for the columns from
    /// `first` on, and `k0`, `k1` and so on for the columns of [`raw_keys`]. Appends nothing if
    /// there are no columns.
    fn names(&self, schema: &Schema, first: usize, sql: &mut SqlWriter) {
        let shown = self.header_width() + self.program.expressions.len();
        let raw = self.program.children.iter().flat_map(|child| {
            let key = self.program.expressions[child.key.clone()].iter();
            key.filter(|key| as_text(schema, self.program, key).is_some())
        });
        let names = (first..shown).map(|at| ("c", at));
        let mut separator = "(";
        for (name, at) in names.chain((0..raw.count()).map(|at| ("k", at))) {
            sql.syntax(separator).numbered(name, at);
            separator = ", ";
        }
        if separator == ", " {
            sql.syntax(")");
        }
    }

    /// Appends the select of the level's rows; returns the range of its parameters. If `layout` is
    /// `None`, the select has the columns of the level and those of [`raw_keys`]. Otherwise it has
    /// the columns of the layout.
    fn rows(
        &self,
        schema: &Schema,
        layout: Option<LevelLayout<'_>>,
        sql: &mut SqlWriter,
    ) -> Range<usize> {
        let before = sql.parameters();
        match self.child() {
            None => self.list(schema, layout, sql),
            Some(_) if self.limit == Limit::Each => self.each(schema, layout, sql),
            Some(child) => self.all(schema, child, layout, sql),
        }
        before..sql.parameters()
    }

    /// Appends the select of the rows that belong to any of the parent rows.
    fn all(
        &self,
        schema: &Schema,
        child: &Child,
        layout: Option<LevelLayout<'_>>,
        sql: &mut SqlWriter,
    ) {
        sql.syntax("select ");
        if let Some(layout) = layout {
            layout.columns(schema, sql, |at, sql| self.column(schema, at, sql));
        } else {
            self.header(sql);
            expressions(schema, self.program, ", ", sql);
            raw_keys(schema, self.program, sql);
        }
        sql.syntax(" from ");
        self.parents(schema, sql);
        sql.syntax(" join ");
        self.relation(schema, sql);
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

    /// Appends the select of the rows that belong to any of the parent rows, with a limit for each
    /// parent row.
    fn each(&self, schema: &Schema, layout: Option<LevelLayout<'_>>, sql: &mut SqlWriter) {
        sql.syntax("select ");
        let header = self.header_width();
        if let Some(layout) = layout {
            layout.columns(schema, sql, |at, sql| {
                if at < header {
                    self.header_column(at, sql);
                } else {
                    sql.numbered("c.c", at);
                }
            });
        } else {
            self.header(sql);
            sql.syntax(", c.*");
        }
        sql.syntax(" from ");
        self.parents(schema, sql);
        sql.syntax(" cross join lateral (");
        self.list(schema, None, sql);
        sql.syntax(") c");
        if layout.is_some() {
            self.names(schema, header, sql);
        }
    }

    /// Appends the select of one list. If there are parent rows, the list belongs to one of them.
    fn list(&self, schema: &Schema, layout: Option<LevelLayout<'_>>, sql: &mut SqlWriter) {
        let select = |sql: &mut SqlWriter| {
            sql.syntax("select");
            if let Some(layout) = layout {
                sql.syntax(" ");
                layout.columns(schema, sql, |at, sql| self.column(schema, at, sql));
            } else {
                expressions(schema, self.program, " ", sql);
                raw_keys(schema, self.program, sql);
            }
            sql.syntax(" from ");
            self.relation(schema, sql);
            joins(schema, self.program, sql);
            let mut word = " where ";
            if let Some(child) = self.child() {
                sql.syntax(word);
                self.matching(schema, child, sql);
                word = " and ";
            }
            if let Some(wanted) = self.list {
                condition(schema, self.relation, &wanted.filter, word, sql);
            }
        };
        let order = |sql: &mut SqlWriter| {
            let wanted = self.list.map_or(&[][..], |list| &list.order);
            page::order(schema.relation(self.relation), wanted, self.page.given, sql);
        };
        page::write(&self.page, sql, select, order);
    }

    fn relation(&self, schema: &Schema, sql: &mut SqlWriter) {
        match self.list {
            Some(_) => relation(schema, self.relation, 0, sql),
            None => referenced(schema, self.relation, 0, sql),
        }
    }

    /// Appends the column with the index `at` of the level.
    fn column(&self, schema: &Schema, at: usize, sql: &mut SqlWriter) {
        match at.checked_sub(self.header_width()) {
            None => self.header_column(at, sql),
            Some(own) => expression(schema, self.program, own, sql),
        }
    }

    fn child(&self) -> Option<&Child> {
        match self.parents {
            Parents::None => None,
            Parents::Known(_, child) => Some(child),
            Parents::Level(above) => above.program.children.get(above.child),
        }
    }

    /// The number of columns that assign a row to a list.
    fn header_width(&self) -> usize {
        match self.parents {
            Parents::None => 0,
            Parents::Known(..) => 1,
            Parents::Level(above) => above.key().len(),
        }
    }

    /// Appends the columns that assign a row to a list.
    fn header(&self, sql: &mut SqlWriter) {
        for at in 0..self.header_width() {
            sql.syntax(if at > 0 { ", " } else { "" });
            self.header_column(at, sql);
        }
    }

    fn header_column(&self, at: usize, sql: &mut SqlWriter) {
        match self.parents {
            Parents::Level(above) => above.shown_key(at, sql),
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
