//! Other values in the places of a filter's values.

use tidegate_catalog::{Relation, RelationId, Schema};
use tidegate_values::Parameter;

use crate::family::Family;
use crate::filter::{Comparison, Filter};
use crate::json::Json;
use crate::operator::Operator;
use crate::read::{Path, Target};

/// A comparison of a filter, in the order in which [`Filter::write`] writes them.
#[derive(Clone, Copy, Debug)]
pub struct Leaf<'f> {
    /// The relation of its column: that of the filter, or one at the end of relationships.
    pub relation: RelationId,
    /// The comparison.
    pub comparison: &'f Comparison,
    /// How many parameters it has in SQL.
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

    /// The same filter without its values. It is not to be written.
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

    /// Whether its SQL is the same for all values of the same JSON kind that it can have, null and
    /// the empty list aside, and has one parameter.
    pub fn is_uniform(&self, relation: &Relation) -> bool {
        let same = match Family::of(&relation.column(self.column).r#type) {
            Family::Boolean
            | Family::Integer(..)
            | Family::Float
            | Family::Numeric
            | Family::Money
            | Family::Text
            | Family::Enum
            | Family::Uuid
            | Family::Bytes
            | Family::Interval
            | Family::Moment => true,
            Family::Jsonb
            | Family::Array
            | Family::Range
            | Family::Multirange
            | Family::Composite
            | Family::Geometric(_)
            | Family::Incomparable
            | Family::Other => false,
        };
        let is_test = matches!(self.operator, Operator::IsNull | Operator::IsNotNull);
        same && !is_test && !self.number && self.value != Parameter::Null
    }

    /// The parameter of the same comparison with another value, which was given as JSON. `None`
    /// where the value is refused, or its comparison would have other SQL; then
    /// [`Filter::parse`] tells what is wrong with it. The comparison must be
    /// [uniform](Comparison::is_uniform).
    pub fn rebind(&self, relation: &Relation, value: &Json<'_>) -> Option<Parameter> {
        let target = Target::of(relation, self.column);
        let compared = target.compare(self.operator, value, &Path::Root(""));
        match compared.ok()? {
            Filter::Compare(comparison) if comparison.operator == self.operator => {
                Some(comparison.parameter(relation))
            }
            _ => None,
        }
    }
}
