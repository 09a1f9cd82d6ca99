//! The rows that hang on the rows of another level, in one statement for all of them.

use tidegate_catalog::Schema;
use tidegate_catalog::model::{Collation, Column, Relationship};
use tidegate_sql::statement::{Kind, SqlWriter};
use tidegate_sql::{BoundStatement, Parameter, Type, TypeKind};

use super::elements::Elements;
use super::flat::nulls;
use super::{
    Page, cast, column, condition, expressions, joined_by, joins, page, relation, type_name,
};
use crate::operation::List;
use crate::row::{Cast, KeyKind, Keys, Program, base};

/// What is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Children<'p, 'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) relationship: &'a Relationship,
    /// The columns of the relationship in the level above.
    pub(crate) here: &'p [&'a Column],
    /// Which rows; `None` for those of a to-one relationship.
    pub(crate) list: Option<&'p List>,
    pub(crate) program: &'p Program<'a>,
}

/// The shape of the statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Template {
    /// `fk = any($1)`: the rows tell their key. The cheapest, where equal keys have equal bytes.
    Any,
    /// A join with the keys: the rows tell the number of their slot.
    Joined,
    /// The same, but each list has a limit of its own.
    Limited,
}

/// Whether two columns' values are equal exactly when their keys are, see [`KeyKind`].
fn has_equal_bytes(here: &Column, there: &Column) -> bool {
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

/// The statement for the children of `keys`. `most` is how many rows all lists together may have
/// before [`Template::Limited`] is needed.
pub(crate) fn children(
    wanted: &Children<'_, '_>,
    template: Template,
    (page, keys, most): (&Page, &Keys, u64),
) -> BoundStatement {
    let mut sql = SqlWriter::new();
    match template {
        Template::Any => {
            wanted.any(keys, &mut sql);
            wanted.ordered(most, &mut sql);
        }
        Template::Joined => {
            sql.syntax("select p.n");
            expressions(wanted.schema, wanted.program, ", ", &mut sql);
            sql.syntax(" from ");
            wanted.keys(keys, &mut sql);
            sql.syntax(" join ");
            relation(wanted.schema, wanted.relationship.target, 0, &mut sql);
            sql.syntax(" on ");
            wanted.matching(&mut sql);
            joins(wanted.schema, wanted.program, &mut sql);
            wanted.condition(" where ", &mut sql);
            wanted.ordered(most, &mut sql);
        }
        Template::Limited => {
            sql.syntax("select p.n, c.* from ");
            wanted.keys(keys, &mut sql);
            sql.syntax(" cross join lateral (");
            wanted.limited(page, None, &mut sql);
            sql.syntax(") c");
        }
    }
    sql.finish(Kind::Read)
}

impl Children<'_, '_> {
    /// The template for lists without a limit of their own.
    pub(crate) fn template(&self) -> Template {
        let there: Vec<_> = self.there().collect();
        match (self.here, &there[..]) {
            ([here], [there]) if has_equal_bytes(here, there) => Template::Any,
            _ => Template::Joined,
        }
    }

    /// The columns of the relationship in this level.
    fn there(&self) -> impl Iterator<Item = &Column> {
        let target = self.schema.relation(self.relationship.target);
        let columns = self.relationship.target_columns.iter();
        columns.map(|column| target.column(*column))
    }

    fn any(&self, keys: &Keys, sql: &mut SqlWriter) {
        sql.syntax("select ");
        for there in self.there() {
            column(0, &there.name, sql);
            cast(
                match KeyKind::of(&there.r#type) {
                    KeyKind::Integer => Cast::None,
                    KeyKind::Text => Cast::Text,
                },
                sql,
            );
        }
        expressions(self.schema, self.program, ", ", sql);
        sql.syntax(" from ");
        relation(self.schema, self.relationship.target, 0, sql);
        joins(self.schema, self.program, sql);
        sql.syntax(" where ");
        for (there, here) in self.there().zip(self.here) {
            column(0, &there.name, sql);
            joined_by(there, here, sql);
            sql.syntax("any (");
            key_array(here, keys.array(0), sql);
            sql.syntax(")");
        }
        self.condition(" and ", sql);
    }

    /// Appends the keys as a relation `p` of columns `k0`, `k1` … and their number `n`.
    fn keys(&self, keys: &Keys, sql: &mut SqlWriter) {
        let mut separator = "rows from (pg_catalog.unnest(";
        for (at, here) in self.here.iter().enumerate() {
            sql.syntax(separator);
            separator = "), pg_catalog.unnest(";
            key_array(here, keys.array(at), sql);
        }
        sql.syntax(")) with ordinality p(");
        for at in 0..self.here.len() {
            sql.numbered("k", at).syntax(", ");
        }
        sql.syntax("n)");
    }

    /// Appends the condition that a row belongs to a key.
    fn matching(&self, sql: &mut SqlWriter) {
        for (at, (there, here)) in self.there().zip(self.here).enumerate() {
            if at > 0 {
                sql.syntax(" and ");
            }
            column(0, &there.name, sql);
            joined_by(there, here, sql);
            sql.numbered("p.k", at);
            if let Elements::Texts(r#type) = Elements::of(&here.r#type) {
                sql.syntax("::");
                type_name(r#type, sql);
            }
        }
    }

    fn condition(&self, word: &'static str, sql: &mut SqlWriter) {
        if let Some(list) = self.list {
            let target = self.relationship.target;
            condition(self.schema, target, &list.filter, word, sql);
        }
    }

    /// Appends the order that the request wants, and the limit of all lists together.
    fn ordered(&self, most: u64, sql: &mut SqlWriter) {
        if let Some(list) = self.list {
            let target = self.schema.relation(self.relationship.target);
            page::order(target, &list.order, false, sql);
            sql.syntax(" limit ").parameter(page::number(most));
        }
    }

    /// Appends the rows of one key; `behind` so many columns of the rows above, and one that says
    /// that this is none of them.
    pub(super) fn limited(&self, page: &Page, behind: Option<usize>, sql: &mut SqlWriter) {
        let target = self.schema.relation(self.relationship.target);
        let select = |sql: &mut SqlWriter| {
            sql.syntax("select");
            if let Some(width) = behind {
                sql.syntax(" null");
                nulls(width, sql);
            }
            let separator = if behind.is_some() { ", " } else { " " };
            expressions(self.schema, self.program, separator, sql);
            sql.syntax(" from ");
            relation(self.schema, self.relationship.target, 0, sql);
            joins(self.schema, self.program, sql);
            sql.syntax(" where ");
            self.matching(sql);
            self.condition(" and ", sql);
        };
        let order = |sql: &mut SqlWriter| {
            let wanted = self.list.map_or(&[][..], |list| &list.order);
            page::order(target, wanted, page.given, sql);
        };
        page::write(page, sql, select, order);
    }
}

/// Appends an array of key values as a parameter of their type, or of texts. A domain's constraints
/// have been checked when the values were stored.
fn key_array(here: &Column, values: Parameter, sql: &mut SqlWriter) {
    sql.parameter(values).syntax("::");
    Elements::of(&here.r#type).write(sql);
}
