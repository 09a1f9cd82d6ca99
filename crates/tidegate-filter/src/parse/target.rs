//! A column that is compared, with its operators and its values.

use tidegate_catalog::model::Column;
use tidegate_catalog::{ColumnId, Relation};
use tidegate_values::json::JsonKind;
use tidegate_values::{Parameter, Type, TypeKind, base_type};

use super::path::Path;
use super::value;
use crate::error::{Error, Result};
use crate::filter::{Comparison, Filter};
use crate::json::{Json, JsonMembers};
use crate::operator::Operator;
use crate::type_class::{TypeClass, number_type, value_members, written};

/// How PostgreSQL compares a column with an unquoted number (PostgreSQL, "Operators", type
/// resolution).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compared {
    /// The column and the number are compared as `double precision`.
    Real,
    /// The column and the number are compared as `numeric`, if the number is not an integer of the
    /// column's type.
    Integer,
    /// The number is compared like any other value.
    Other,
}

pub(crate) struct ComparedColumn<'a> {
    id: ColumnId,
    pub(super) column: &'a Column,
    /// Whether the column belongs to the primary key. Its GraphQL type is then `ID`, and a request
    /// may write its value as a number, even if the column has a text type.
    is_key: bool,
}

impl<'a> ComparedColumn<'a> {
    pub(crate) fn of(relation: &'a Relation, id: ColumnId) -> Self {
        Self {
            id,
            column: relation.column(id),
            is_key: relation.is_key(id),
        }
    }
}

impl ComparedColumn<'_> {
    /// Whether an object is a value of the column's type and not an object of operators. The names
    /// of its members decide.
    ///
    /// A member that is neither an operator nor a known member of a value is an error, even for a
    /// type whose values may have any members. Otherwise an object with a misspelt operator would
    /// be compared as a value: the filter would select wrong rows, and inside `not` nearly all
    /// rows. An empty object is an error for the same reason.
    pub(super) fn is_value(&self, members: &JsonMembers<'_>, path: &Path<'_>) -> Result<bool> {
        let known = self.value_members();
        let of_value = |name: &str| known.contains(&name);
        let mut names = members.iter().map(|(name, _)| &**name);
        if members.is_empty() {
            return Err(self.missing(path));
        }
        if let Some(name) = names
            .clone()
            .find(|name| Operator::find(name).is_none() && !of_value(name))
        {
            return Err(self.unknown(&Path::Member(path, name)));
        }
        let is_value = names.all(|name| Operator::find(name).is_none());
        // If the object lacks an attribute of the composite type, the attribute would be NULL in
        // the compared value. This value would equal only rows in which the attribute is NULL.
        // Therefore the object must have all attributes.
        let is_part = matches!(
            base_type(&self.column.r#type).kind(),
            TypeKind::Composite(_)
        ) && members.len() < known.len();
        if is_value && is_part {
            return Err(self.missing(path));
        }
        Ok(is_value)
    }

    /// Parses one member of an object of operators: the name of an operator, and the value with
    /// which the operator compares the column.
    pub(super) fn operator(&self, name: &str, value: &Json<'_>, path: &Path<'_>) -> Result<Filter> {
        let operator = Operator::find(name);
        let Some(operator) = operator.filter(|operator| self.has(*operator)) else {
            return Err(self.unknown(path));
        };
        if operator == Operator::IsNull {
            let operator = match &*value.text() {
                "true" => Operator::IsNull,
                "false" => Operator::IsNotNull,
                _ => return Err(value.not(path, "true or false")),
            };
            return Ok(self.null(operator, path));
        }
        match (operator, value.kind()) {
            (Operator::Eq, JsonKind::Null) => Ok(self.null(Operator::IsNull, path)),
            (Operator::Neq, JsonKind::Null) => Ok(self.null(Operator::IsNotNull, path)),
            _ => self.compare(operator, value, path),
        }
    }

    /// The error for a member that is not an operator of the column's type.
    fn unknown(&self, path: &Path<'_>) -> Error {
        Error::UnknownOperator {
            place: path.to_string(),
            r#type: written(&self.column.r#type),
            expected: self.expected(),
        }
    }

    /// The error for an object without members, or for a composite value that lacks an attribute.
    fn missing(&self, path: &Path<'_>) -> Error {
        Error::IncompleteObject {
            place: path.to_string(),
            expected: self.expected(),
        }
    }

    /// The member names of an object that is itself the value to compare with, and not an object of
    /// operators. Empty if no object can be such a value.
    fn value_members(&self) -> Vec<&str> {
        if self.has(Operator::Eq) {
            value_members(&self.column.r#type)
        } else {
            Vec::new()
        }
    }

    /// The expected input as errors list it: the operators of the column's type, and the members of
    /// its values.
    fn expected(&self) -> String {
        let quoted = |name: &str| format!("`{name}`");
        let operators = TypeClass::operators(self.column).map(|operator| quoted(operator.name()));
        let operators = operators.collect::<Vec<_>>().join(", ");
        match &self.value_members()[..] {
            [] => operators,
            members => {
                let members: Vec<_> = members.iter().map(|name| quoted(name)).collect();
                format!("{operators}, or a value of {}", members.join(", "))
            }
        }
    }

    /// A comparison with a value that is not null.
    pub(crate) fn compare(
        &self,
        operator: Operator,
        value: &Json<'_>,
        path: &Path<'_>,
    ) -> Result<Filter> {
        self.check(operator, path)?;
        value::check(&self.column.r#type, operator, value, path)?;
        value::check_text(self.column, self.is_key, operator, value, path)?;
        match operator {
            Operator::In if value.elements(path)?.is_empty() => Ok(Filter::Any(Vec::new())),
            Operator::NotIn if value.elements(path)?.is_empty() => Ok(Filter::everything()),
            _ => Ok(self.comparison(operator, value.parameter(), false, path)),
        }
    }

    /// How PostgreSQL compares the column with an unquoted number.
    pub(crate) fn compared(&self) -> Compared {
        match *base_type(&self.column.r#type) {
            Type::FLOAT4 => Compared::Real,
            Type::INT2 | Type::INT4 | Type::INT8 => Compared::Integer,
            _ => Compared::Other,
        }
    }

    /// A comparison with an unquoted number, or with a list that contains one, in which PostgreSQL
    /// converts a `real` column to `double precision`, or an integer column to `numeric`.
    pub(crate) fn compare_number(
        &self,
        operator: Operator,
        value: &Json<'_>,
        path: &Path<'_>,
    ) -> Result<Filter> {
        self.check(operator, path)?;
        value::check(number_type(&self.column.r#type), operator, value, path)?;
        Ok(self.comparison(operator, value.parameter(), true, path))
    }

    pub(crate) fn null(&self, operator: Operator, path: &Path<'_>) -> Filter {
        self.comparison(operator, Parameter::Null, false, path)
    }

    fn comparison(
        &self,
        operator: Operator,
        value: Parameter,
        number: bool,
        path: &Path<'_>,
    ) -> Filter {
        Filter::Compare(Comparison {
            column: self.id,
            operator,
            value,
            number,
            place: path.to_string().into(),
        })
    }

    fn has(&self, operator: Operator) -> bool {
        TypeClass::operators(self.column).any(|own| own == operator)
    }

    /// Rejects an operator that the column's type does not have.
    fn check(&self, operator: Operator, path: &Path<'_>) -> Result<()> {
        if self.has(operator) {
            return Ok(());
        }
        Err(self.unknown(&Path::Member(path, operator.name())))
    }
}
