//! Replaces the values of a filter, so that the filter can be used for another request.

use tidegate_catalog::{Relation, RelationId, Schema};
use tidegate_values::Parameter;

use crate::filter::{Comparison, Filter};
use crate::json::Json;
use crate::operator::Operator;
use crate::parse::{ComparedColumn, Path};
use crate::type_class::TypeClass;

/// A comparison within a filter.
#[derive(Clone, Copy, Debug)]
pub struct Leaf<'f> {
    /// The relation of the compared column: the filter's relation, or a relation to which a
    /// relationship leads.
    pub relation: RelationId,
    /// The comparison.
    pub comparison: &'f Comparison,
    /// The number of parameters that the comparison has in SQL.
    pub parameters: usize,
}

impl Filter {
    /// All comparisons, in the order in which [`Filter::write`] writes them.
    pub fn leaves(&self, schema: &Schema, relation: RelationId) -> Vec<Leaf<'_>> {
        let mut leaves = Vec::new();
        self.collect(schema, relation, &mut leaves);
        leaves
    }

    fn collect<'f>(&'f self, schema: &Schema, relation: RelationId, leaves: &mut Vec<Leaf<'f>>) {
        match self {
            Self::All(filters) | Self::Any(filters) => {
                for filter in filters {
                    filter.collect(schema, relation, leaves);
                }
            }
            Self::Not(filter) => filter.collect(schema, relation, leaves),
            Self::Exists(id, filter) => {
                let target = schema.relation(relation).relationship(*id).target;
                filter.collect(schema, target, leaves);
            }
            Self::Compare(comparison) => leaves.push(Leaf {
                relation,
                comparison,
                parameters: comparison.parameters(schema.relation(relation)),
            }),
        }
    }

    /// The same filter without its values. Such a filter must not be written as SQL.
    #[must_use]
    pub fn without_values(&self) -> Self {
        let all = |filters: &[Self]| filters.iter().map(Self::without_values).collect();
        match self {
            Self::All(filters) => Self::All(all(filters)),
            Self::Any(filters) => Self::Any(all(filters)),
            Self::Not(filter) => Self::Not(Box::new(filter.without_values())),
            Self::Exists(id, filter) => Self::Exists(*id, Box::new(filter.without_values())),
            Self::Compare(comparison) => Self::Compare(comparison.without_value()),
        }
    }
}

impl Comparison {
    /// The same comparison without its value, for [`Comparison::rebind`].
    #[must_use]
    pub fn without_value(&self) -> Self {
        Self {
            value: Parameter::Null,
            place: self.place.clone(),
            ..*self
        }
    }

    /// Whether the comparison has exactly one parameter, and the same SQL for all values of one
    /// JSON kind. Null and the empty list are exceptions, which need other SQL.
    pub fn is_uniform(&self, relation: &Relation) -> bool {
        let same = match TypeClass::of(&relation.column(self.column).r#type) {
            TypeClass::Boolean
            | TypeClass::Integer(..)
            | TypeClass::Float
            | TypeClass::Numeric
            | TypeClass::Money
            | TypeClass::Text
            | TypeClass::Enum
            | TypeClass::Uuid
            | TypeClass::Bytes
            | TypeClass::Interval
            | TypeClass::Moment => true,
            TypeClass::Jsonb
            | TypeClass::Array
            | TypeClass::Range
            | TypeClass::Multirange
            | TypeClass::Composite
            | TypeClass::Geometric(_)
            | TypeClass::Incomparable
            | TypeClass::Other => false,
        };
        let is_test = matches!(self.operator, Operator::IsNull | Operator::IsNotNull);
        same && !is_test && !self.number && self.value != Parameter::Null
    }

    /// The parameter that the comparison would have in SQL with `value` as its value. `None` if
    /// `value` needs other SQL or is invalid. For an invalid value, [`Filter::parse`] reports the
    /// error. The comparison must be [uniform](Comparison::is_uniform).
    pub fn rebind(&self, relation: &Relation, value: &Json<'_>) -> Option<Parameter> {
        let target = ComparedColumn::of(relation, self.column);
        let compared = target.compare(self.operator, value, &Path::Root(""));
        match compared.ok()? {
            Filter::Compare(comparison) if comparison.operator == self.operator => {
                Some(comparison.parameter(relation))
            }
            _ => None,
        }
    }
}
