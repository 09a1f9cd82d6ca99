//! Writes filters as SQL.

mod operand;

use tidegate_catalog::model::{Cardinality, Column, RelationKind};
use tidegate_catalog::{Relation, RelationId, Schema};
use tidegate_sql::statement::SqlWriter;
use tidegate_values::{Parameter, Type, operator_schema};

use crate::filter::{Comparison, Filter};
use crate::operator::Operator;
use crate::type_class::{TypeClass, cast_to_compare, has_inequality, number_type};

use self::operand::{compared_type, documents};

/// The alias of a relation in a generated statement: a name and a number, such as `t3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alias(pub &'static str, pub usize);

/// The name in the alias of a relation to which a relationship leads. The number in the alias is
/// the nesting level.
const TARGET_ALIAS: &str = "f";

impl Filter {
    /// Appends the filter as an SQL condition on the rows of `relation`, whose alias is `alias`.
    /// The condition needs no parentheses next to `and`, `or` or `not`. It needs them after an
    /// operator that binds more tightly than `not`.
    ///
    /// Every value is a parameter, every name is quoted, every operator is schema-qualified.
    /// Columns are not cast, except those of a domain over an enum. Filters of the same structure
    /// have the same text.
    ///
    /// Inner relations have the aliases `f1`, `f2` and so on.
    pub fn write(&self, sql: &mut SqlWriter, schema: &Schema, relation: RelationId, alias: Alias) {
        let level = Level {
            schema,
            relation: schema.relation(relation),
            alias,
            depth: 1,
        };
        level.write(self, sql);
    }
}

/// A relation, its alias in the statement, and its nesting level.
struct Level<'a> {
    schema: &'a Schema,
    relation: &'a Relation,
    alias: Alias,
    depth: usize,
}

impl Level<'_> {
    fn write(&self, filter: &Filter, sql: &mut SqlWriter) {
        match filter {
            Filter::All(filters) => self.write_joined(filters, " and ", "true", sql),
            Filter::Any(filters) => self.write_joined(filters, " or ", "false", sql),
            Filter::Not(filter) => {
                sql.syntax("(not ");
                self.write(filter, sql);
                sql.syntax(")");
            }
            Filter::Compare(comparison) => self.write_comparison(comparison, sql),
            Filter::Exists(id, filter) => {
                let relationship = self.relation.relationship(*id);
                let far = Level {
                    schema: self.schema,
                    relation: self.schema.relation(relationship.target),
                    alias: Alias(TARGET_ALIAS, self.depth),
                    depth: self.depth + 1,
                };
                // A foreign key does not reference the rows of tables that inherit from its target.
                let is_only = relationship.cardinality == Cardinality::One
                    && far.relation.kind == RelationKind::Table;
                sql.syntax("exists (select 1 from ")
                    .syntax(if is_only { "only " } else { "" })
                    .identifier(self.schema.name())
                    .syntax(".")
                    .identifier(&far.relation.name)
                    .syntax(" ")
                    .numbered(far.alias.0, far.alias.1)
                    .syntax(" where ");
                let pairs = relationship
                    .target_columns
                    .iter()
                    .zip(&relationship.columns);
                for (index, (there, here)) in pairs.enumerate() {
                    if index > 0 {
                        sql.syntax(" and ");
                    }
                    let (there, here) = (far.relation.column(*there), self.relation.column(*here));
                    far.write_column(there, sql);
                    write_operator(joining_schema(there, here), "=", sql);
                    self.write_column(here, sql);
                }
                if !filter.is_empty() {
                    sql.syntax(" and ");
                    far.write(filter, sql);
                }
                sql.syntax(")");
            }
        }
    }

    fn write_joined(
        &self,
        filters: &[Filter],
        word: &'static str,
        none: &'static str,
        sql: &mut SqlWriter,
    ) {
        let Some((first, rest)) = filters.split_first() else {
            sql.syntax(none);
            return;
        };
        sql.syntax("(");
        self.write(first, sql);
        for filter in rest {
            sql.syntax(word);
            self.write(filter, sql);
        }
        sql.syntax(")");
    }

    fn write_column(&self, column: &Column, sql: &mut SqlWriter) {
        sql.numbered(self.alias.0, self.alias.1)
            .syntax(".")
            .identifier(&column.name);
    }

    /// Appends the column, with the cast that a comparison needs.
    fn write_compared(&self, column: &Column, sql: &mut SqlWriter) {
        self.write_column(column, sql);
        if let Some(r#type) = cast_to_compare(&column.r#type) {
            write_cast(r#type, sql);
        }
    }

    fn write_comparison(&self, comparison: &Comparison, sql: &mut SqlWriter) {
        let column = self.relation.column(comparison.column);
        match comparison.operator {
            Operator::IsNull | Operator::IsNotNull => {
                self.write_column(column, sql);
                sql.syntax(null_test(&column.r#type, comparison.operator));
            }
            Operator::In | Operator::NotIn => self.write_list(column, comparison, sql),
            _ => {
                let (value, r#type) = comparison.operand(column);
                let value = (comparison.operator, value, r#type);
                self.write_pair(column, comparison, value, sql);
            }
        }
    }

    /// Appends `column operator value`.
    fn write_pair(
        &self,
        column: &Column,
        comparison: &Comparison,
        (operator, value, r#type): (Operator, Parameter, &Type),
        sql: &mut SqlWriter,
    ) {
        let (symbol, negated) = symbol(operator, column);
        sql.syntax(if negated { "(not " } else { "" });
        self.write_compared(column, sql);
        write_operator(operator_schema(&column.r#type), symbol, sql);
        sql.placed(value, &*comparison.place);
        write_cast(r#type, sql);
        sql.syntax(if negated { ")" } else { "" });
    }

    /// Appends `column = any (array)` or its negation. For a list of arrays, appends one comparison
    /// for each array.
    fn write_list(&self, column: &Column, comparison: &Comparison, sql: &mut SqlWriter) {
        let r#type = if comparison.number {
            number_type(&column.r#type)
        } else {
            compared_type(&column.r#type)
        };
        let within = comparison.operator == Operator::In;
        let operator = if within { Operator::Eq } else { Operator::Neq };
        if comparison.is_listed_singly(self.relation) {
            let json = comparison.json();
            let elements = json.elements(&comparison.place).unwrap_or_default();
            for (index, element) in elements.iter().enumerate() {
                sql.syntax(match (index, within) {
                    (0, _) => "(",
                    (_, true) => " or ",
                    (_, false) => " and ",
                });
                let value = (operator, element.parameter(), r#type);
                self.write_pair(column, comparison, value, sql);
            }
            sql.syntax(")");
            return;
        }
        let (symbol, negated) = symbol(operator, column);
        sql.syntax(if negated { "(not " } else { "" });
        self.write_compared(column, sql);
        write_operator(operator_schema(&column.r#type), symbol, sql);
        sql.syntax(if within || negated { "any (" } else { "all (" });
        if TypeClass::of(&column.r#type) == TypeClass::Jsonb {
            sql.placed(documents(&comparison.json()), &*comparison.place)
                .syntax("::pg_catalog.text[]");
        } else {
            sql.placed(comparison.value.clone(), &*comparison.place);
        }
        write_cast(r#type, sql);
        sql.syntax(if negated { "[]))" } else { "[])" });
    }
}

/// The SQL of a NULL test. A composite column needs other SQL, because `IS NULL` is also true if
/// all attributes are NULL.
fn null_test(r#type: &Type, operator: Operator) -> &'static str {
    match (TypeClass::of(r#type), operator) {
        (TypeClass::Composite, Operator::IsNull) => " is not distinct from null",
        (TypeClass::Composite, _) => " is distinct from null",
        (_, Operator::IsNull) => " is null",
        _ => " is not null",
    }
}

/// The symbol of an operator, and whether its result must be negated.
fn symbol(operator: Operator, column: &Column) -> (&'static str, bool) {
    let symbol = match (operator, TypeClass::of(&column.r#type)) {
        (Operator::Eq, TypeClass::Geometric(Some(same))) => same,
        (Operator::Neq, TypeClass::Geometric(Some(same))) => return (same, true),
        (Operator::Neq, _) if !has_inequality(column) => return ("=", true),
        (Operator::Overlaps, TypeClass::Jsonb) => "?|",
        (Operator::Contains, TypeClass::Text) => "~~",
        (operator, _) => match operator {
            Operator::Neq => "<>",
            Operator::Gt => ">",
            Operator::Gte => ">=",
            Operator::Lt => "<",
            Operator::Lte => "<=",
            Operator::Like | Operator::StartsWith | Operator::EndsWith => "~~",
            Operator::ILike => "~~*",
            Operator::Regex => "~",
            Operator::IRegex => "~*",
            Operator::Contains => "@>",
            Operator::ContainedBy => "<@",
            Operator::Overlaps => "&&",
            // `IS NULL` and `IS NOT NULL` are written without this symbol.
            Operator::Eq
            | Operator::In
            | Operator::NotIn
            | Operator::IsNull
            | Operator::IsNotNull => "=",
        },
    };
    (symbol, false)
}

/// The schema of the `=` operator between the two columns of a foreign key.
fn joining_schema<'a>(there: &'a Column, here: &'a Column) -> &'a str {
    match operator_schema(&there.r#type) {
        "pg_catalog" => operator_schema(&here.r#type),
        schema => schema,
    }
}

fn write_operator(schema: &str, symbol: &'static str, sql: &mut SqlWriter) {
    sql.syntax(" operator(");
    match schema {
        "pg_catalog" => sql.syntax("pg_catalog"),
        _ => sql.identifier(schema),
    };
    sql.syntax(".").syntax(symbol).syntax(") ");
}

fn write_cast(r#type: &Type, sql: &mut SqlWriter) {
    sql.syntax("::");
    match r#type.schema() {
        "pg_catalog" => sql.syntax("pg_catalog"),
        schema => sql.identifier(schema),
    };
    sql.syntax(".").identifier(r#type.name());
}
