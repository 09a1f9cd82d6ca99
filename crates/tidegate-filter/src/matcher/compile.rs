//! Compiles filters into matchers.

use std::borrow::Cow;
use std::collections::HashSet;

use tidegate_catalog::model::{Collation, Column};
use tidegate_catalog::{ColumnId, Relation};

use super::datum::Datum;
use super::integer::Bounds;
use super::pattern::{Fold, Pattern};
use super::scalar::Scalar;
use super::{List, MatchNode, Matcher, Operand, literal, required_values};
use crate::error::{Error, Result};
use crate::filter::{Comparison, Filter};
use crate::json::Json;
use crate::operator::Operator;
use crate::type_class::{number_type, written};

impl Matcher {
    /// Compiles a filter over the rows of `relation`.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if a part of the filter cannot be evaluated exactly outside
    /// PostgreSQL: a column that is not scalar or whose type is not built in, a regular expression,
    /// a relationship, text under a non-deterministic collation, the order of text under a
    /// collation other than `C` and `POSIX`, `ILIKE` with letters beyond ASCII, or a value in a
    /// form that only PostgreSQL reads. [`Error::InvalidValue`] for a value that PostgreSQL would
    /// reject.
    pub fn compile(filter: &Filter, relation: &Relation) -> Result<Self> {
        let mut columns = Vec::new();
        let node = Compiler { relation }.node(filter, &mut columns)?;
        columns.sort_unstable();
        columns.dedup();
        let required_values = required_values::collect_required(&node);
        Ok(Self {
            node,
            columns: columns.into(),
            required_values: required_values.into(),
        })
    }
}

struct Compiler<'a> {
    relation: &'a Relation,
}

impl Compiler<'_> {
    fn node(&self, filter: &Filter, columns: &mut Vec<ColumnId>) -> Result<MatchNode> {
        Ok(match filter {
            Filter::All(filters) => MatchNode::All(self.nodes(filters, columns)?),
            Filter::Any(filters) => MatchNode::Any(self.nodes(filters, columns)?),
            Filter::Not(filter) => MatchNode::Not(Box::new(self.node(filter, columns)?)),
            Filter::Compare(comparison) => {
                columns.push(comparison.column);
                self.comparison(comparison)?
            }
            Filter::Exists(id, _) => {
                let relationship = self.relation.relationship(*id);
                return Err(Error::Unsupported {
                    place: relationship.name.to_string(),
                    problem: "an event holds one row, and no related ones".to_owned(),
                });
            }
        })
    }

    fn nodes(&self, filters: &[Filter], columns: &mut Vec<ColumnId>) -> Result<Box<[MatchNode]>> {
        let nodes = filters.iter().map(|filter| self.node(filter, columns));
        nodes.collect()
    }

    fn comparison(&self, comparison: &Comparison) -> Result<MatchNode> {
        let column = self.relation.column(comparison.column);
        let compiler = ComparisonCompiler { column, comparison };
        let Some(scalar) = Scalar::of(&column.r#type) else {
            let name = written(&column.r#type);
            return compiler.refuse(&format!(
                "values of type {name} are compared by PostgreSQL only"
            ));
        };
        let json = comparison.json();
        if comparison.number && !matches!(scalar, Scalar::Float4) {
            return compiler.integer(scalar, &json);
        }
        match comparison.operator {
            Operator::IsNull => Ok(MatchNode::Null(comparison.column, true)),
            Operator::IsNotNull => Ok(MatchNode::Null(comparison.column, false)),
            Operator::In | Operator::NotIn => compiler.list(scalar, &json),
            Operator::Like | Operator::ILike => compiler.like(&scalar, &json),
            Operator::StartsWith | Operator::EndsWith | Operator::Contains => {
                compiler.substring(&scalar, &json)
            }
            Operator::Regex | Operator::IRegex => {
                compiler.refuse("only PostgreSQL evaluates regular expressions")
            }
            Operator::ContainedBy | Operator::Overlaps => {
                compiler.refuse("only scalar values are compared here")
            }
            Operator::Eq
            | Operator::Neq
            | Operator::Gt
            | Operator::Gte
            | Operator::Lt
            | Operator::Lte => compiler.compare(scalar, &json),
        }
    }
}

struct ComparisonCompiler<'a> {
    column: &'a Column,
    comparison: &'a Comparison,
}

impl ComparisonCompiler<'_> {
    fn refuse<T>(&self, problem: &str) -> Result<T> {
        Err(Error::Unsupported {
            place: self.comparison.place.to_string(),
            problem: problem.to_owned(),
        })
    }

    /// Rejects a text column if its collation treats texts with different bytes as equal.
    fn require_byte_equality(&self, scalar: &Scalar) -> Result<()> {
        if scalar.distinguishes_bytes(self.column) {
            return Ok(());
        }
        self.refuse("the column's collation is not deterministic")
    }

    fn constant(&self, scalar: &Scalar, json: &Json<'_>) -> Result<Datum<'static>> {
        // `number` is true here only if the column is `real`. PostgreSQL compares the column and
        // the number as `double precision`, so the number is read as this type.
        let (r#type, scalar) = if self.comparison.number {
            (number_type(&self.column.r#type), &Scalar::Float8)
        } else {
            (&self.column.r#type, scalar)
        };
        literal::read(r#type, scalar, json, &self.comparison.place)
    }

    /// Compiles the comparison of an integer column with numbers of another type.
    fn integer(&self, scalar: Scalar, json: &Json<'_>) -> Result<MatchNode> {
        let place = &*self.comparison.place;
        let operand = self.operand(scalar);
        let bounds = |json: &Json<'_>| {
            Bounds::of(&literal::number(json, place)?).ok_or_else(|| Error::Unsupported {
                place: place.to_owned(),
                problem: "the number is too long".to_owned(),
            })
        };
        let (within, elements) = match self.comparison.operator {
            Operator::In => (true, json.elements(&place)?),
            Operator::NotIn => (false, json.elements(&place)?),
            Operator::Eq => (true, vec![Cow::Borrowed(json)]),
            Operator::Neq => (false, vec![Cow::Borrowed(json)]),
            operator => return Ok(bounds(json)?.compare(operand, operator)),
        };
        let mut list = List {
            values: HashSet::new(),
            has_null: false,
            negated: !within,
        };
        for element in elements {
            if element.is_null() {
                list.has_null = true;
            } else if let Some(integer) = bounds(&element)?.integer() {
                list.values.insert(Datum::Int(integer));
            }
        }
        Ok(MatchNode::In(operand, Box::new(list)))
    }

    fn operand(&self, scalar: Scalar) -> Operand {
        Operand {
            column: self.comparison.column,
            scalar,
        }
    }

    fn compare(&self, scalar: Scalar, json: &Json<'_>) -> Result<MatchNode> {
        self.require_byte_equality(&scalar)?;
        let operator = self.comparison.operator;
        let is_text = matches!(scalar, Scalar::Text | Scalar::Padded);
        let is_order = !matches!(operator, Operator::Eq | Operator::Neq);
        if is_text && is_order && self.column.collation != Some(Collation::Bytes) {
            return self.refuse("the order of text under the column's collation is PostgreSQL's");
        }
        let value = self.constant(&scalar, json)?;
        Ok(MatchNode::Compare(self.operand(scalar), operator, value))
    }

    fn list(&self, scalar: Scalar, json: &Json<'_>) -> Result<MatchNode> {
        self.require_byte_equality(&scalar)?;
        let mut list = List {
            values: HashSet::new(),
            has_null: false,
            negated: self.comparison.operator == Operator::NotIn,
        };
        for element in json.elements(&self.comparison.place)? {
            if element.is_null() {
                list.has_null = true;
            } else {
                list.values.insert(self.constant(&scalar, &element)?);
            }
        }
        Ok(MatchNode::In(self.operand(scalar), Box::new(list)))
    }

    fn like(&self, scalar: &Scalar, json: &Json<'_>) -> Result<MatchNode> {
        self.require_byte_equality(scalar)?;
        let pattern = json.string(&self.comparison.place)?;
        // A collation that orders text by bytes may still fold case by the rules of a language.
        // Therefore the folding does not depend on how the collation orders text.
        let fold = match self.comparison.operator {
            Operator::Like => Fold::None,
            _ if pattern.is_ascii() => Fold::Language,
            _ => return self.refuse("only PostgreSQL compares letter case beyond ASCII"),
        };
        let Some(pattern) = Pattern::like(&pattern, fold) else {
            return self.refuse("the pattern is too long");
        };
        Ok(MatchNode::Like(self.comparison.column, pattern))
    }

    fn substring(&self, scalar: &Scalar, json: &Json<'_>) -> Result<MatchNode> {
        self.require_byte_equality(scalar)?;
        let text = json.string(&self.comparison.place)?;
        let operator = self.comparison.operator;
        let pattern = Pattern::substring(
            &text,
            operator != Operator::StartsWith,
            operator != Operator::EndsWith,
        );
        Ok(MatchNode::Like(self.comparison.column, pattern))
    }
}
