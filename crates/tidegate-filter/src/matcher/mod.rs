//! Evaluates the filter of a subscription on row images, outside PostgreSQL.

mod case_folding;
mod compile;
mod datum;
mod decimal;
mod enum_labels;
mod integer;
mod literal;
mod pattern;
mod required_values;
mod scalar;

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

use tidegate_catalog::ColumnId;

pub use self::case_folding::CaseFolding;
pub use self::required_values::{ComparableKey, KeyReader, RequiredValues};

use self::datum::Datum;
use self::pattern::Pattern;
use self::scalar::{Malformed, Scalar};
use crate::operator::Operator;

/// A filter compiled for row images. Its result equals that of PostgreSQL, unless it is
/// [`Truth::Undecided`].
///
/// [`Matcher::compile`] creates it from a filter.
#[derive(Clone, Debug)]
pub struct Matcher {
    node: MatchNode,
    columns: Box<[ColumnId]>,
    required_values: Box<[RequiredValues]>,
}

/// The value of a column in a row image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowValue<'a> {
    /// NULL.
    Null,
    /// The text of the value in UTF-8, as the type's output function returns it under `DateStyle
    /// ISO`, `IntervalStyle postgres` and a positive `extra_float_digits`.
    Text(&'a [u8]),
    /// The bytes that the type's send function returns.
    Binary(&'a [u8]),
    /// The row image does not have the column.
    Missing,
}

/// The result of evaluating a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Truth {
    /// The filter is true, so the row passes.
    True,
    /// The filter is false.
    False,
    /// The filter is NULL, which SQL calls unknown.
    Unknown,
    /// Only PostgreSQL can decide: the row image lacks a column, an enum label is newer than the
    /// schema, or the lower case of a letter depends on a collation whose case folding was not set
    /// ([`Matcher::with_case_folding`]).
    Undecided,
}

#[derive(Clone, Debug)]
enum MatchNode {
    All(Box<[MatchNode]>),
    Any(Box<[MatchNode]>),
    Not(Box<MatchNode>),
    /// The condition that the column is NULL (`true`), or that it is not NULL (`false`).
    Null(ColumnId, bool),
    Compare(Operand, Operator, Datum<'static>),
    /// The value of the column is in the list, or not in it if the list is negated.
    In(Operand, Box<List>),
    Like(ColumnId, Pattern),
}

/// A column, and how its values are read.
#[derive(Clone, Debug)]
struct Operand {
    column: ColumnId,
    scalar: Scalar,
}

#[derive(Clone, Debug)]
struct List {
    values: HashSet<Datum<'static>>,
    has_null: bool,
    negated: bool,
}

impl Matcher {
    /// The columns that the filter uses, each once, in the order of their identifiers.
    pub fn columns(&self) -> &[ColumnId] {
        &self.columns
    }

    /// The columns that `ILIKE` compares by the case folding of their collations, each once.
    pub fn folding(&self) -> Vec<ColumnId> {
        let mut folding = Vec::new();
        self.node.folding(&mut folding);
        folding.sort_unstable();
        folding.dedup();
        folding
    }

    /// The same matcher with the case folding of the columns' collations, so that it can evaluate
    /// `ILIKE` on every text. `case_folding` returns `None` for a column whose case folding is not
    /// known.
    #[must_use]
    pub fn with_case_folding(
        &self,
        case_folding: &dyn Fn(ColumnId) -> Option<Arc<CaseFolding>>,
    ) -> Self {
        let mut matcher = self.clone();
        matcher.node.set_case_folding(case_folding);
        matcher
    }

    /// The columns that must have certain values in every row that passes. A dispatcher indexes
    /// subscriptions by these values. The list is empty if no column is required to have certain
    /// values.
    pub fn required_values(&self) -> &[RequiredValues] {
        &self.required_values
    }

    /// Evaluates the filter on a row image; `image` returns the value of a column.
    ///
    /// # Errors
    ///
    /// [`tidegate_sql::Error::Internal`] if bytes are not a value of their column's type.
    pub fn evaluate<'r>(
        &self,
        image: impl Fn(ColumnId) -> RowValue<'r>,
    ) -> tidegate_sql::Result<Truth> {
        Ok(self.node.evaluate(&image)?)
    }
}

impl Truth {
    /// Whether the row passes.
    pub fn passes(self) -> bool {
        self == Self::True
    }

    fn of(value: bool) -> Self {
        if value { Self::True } else { Self::False }
    }

    fn not(self) -> Self {
        match self {
            Self::True => Self::False,
            Self::False => Self::True,
            other => other,
        }
    }
}

impl MatchNode {
    fn folding(&self, folding: &mut Vec<ColumnId>) {
        match self {
            Self::All(nodes) | Self::Any(nodes) => {
                nodes.iter().for_each(|node| node.folding(folding));
            }
            Self::Not(node) => node.folding(folding),
            Self::Like(column, pattern) if pattern.folds() => folding.push(*column),
            Self::Null(..) | Self::Compare(..) | Self::In(..) | Self::Like(..) => {}
        }
    }

    fn set_case_folding(&mut self, case_folding: &dyn Fn(ColumnId) -> Option<Arc<CaseFolding>>) {
        match self {
            Self::All(nodes) | Self::Any(nodes) => {
                nodes
                    .iter_mut()
                    .for_each(|node| node.set_case_folding(case_folding));
            }
            Self::Not(node) => node.set_case_folding(case_folding),
            Self::Like(column, pattern) if pattern.folds() => {
                if let Some(case_folding) = case_folding(*column) {
                    pattern.set_case_folding(case_folding);
                }
            }
            Self::Null(..) | Self::Compare(..) | Self::In(..) | Self::Like(..) => {}
        }
    }

    fn evaluate<'r>(&self, image: &impl Fn(ColumnId) -> RowValue<'r>) -> Result<Truth, Malformed> {
        Ok(match self {
            Self::All(nodes) => joined(nodes, Truth::False, image)?,
            Self::Any(nodes) => joined(nodes, Truth::True, image)?,
            Self::Not(node) => node.evaluate(image)?.not(),
            Self::Null(column, wanted) => match image(*column) {
                RowValue::Missing => Truth::Undecided,
                image => Truth::of((image == RowValue::Null) == *wanted),
            },
            Self::Compare(operand, operator, value) => match operand.read(image)? {
                Ok(found) => compare(&found, *operator, value),
                Err(outcome) => outcome,
            },
            Self::In(operand, list) => match operand.read(image)? {
                Ok(found) => list.evaluate(&found),
                Err(outcome) => outcome,
            },
            Self::Like(column, pattern) => match image(*column) {
                RowValue::Null => Truth::Unknown,
                RowValue::Missing => Truth::Undecided,
                RowValue::Text(text) | RowValue::Binary(text) => {
                    pattern.matches(text).map_or(Truth::Undecided, Truth::of)
                }
            },
        })
    }
}

/// Evaluates a conjunction or disjunction. If one node has the result `decides`, this is the result
/// of the whole, and the evaluation ends.
fn joined<'r>(
    nodes: &[MatchNode],
    decides: Truth,
    image: &impl Fn(ColumnId) -> RowValue<'r>,
) -> Result<Truth, Malformed> {
    let mut joined = decides.not();
    for node in nodes {
        match node.evaluate(image)? {
            outcome if outcome == decides => return Ok(decides),
            Truth::Undecided => joined = Truth::Undecided,
            Truth::Unknown if joined != Truth::Undecided => joined = Truth::Unknown,
            _ => {}
        }
    }
    Ok(joined)
}

impl Operand {
    /// Reads the column's value. The inner error is the result of every comparison if there is no
    /// value: [`Truth::Unknown`] for NULL, [`Truth::Undecided`] for a missing value.
    fn read<'r>(
        &self,
        image: &impl Fn(ColumnId) -> RowValue<'r>,
    ) -> Result<Result<Datum<'r>, Truth>, Malformed> {
        let image = image(self.column);
        let none = match image {
            RowValue::Missing => Truth::Undecided,
            _ => Truth::Unknown,
        };
        Ok(self.scalar.read(image)?.ok_or(none))
    }
}

fn compare(found: &Datum<'_>, operator: Operator, value: &Datum<'static>) -> Truth {
    let order = match operator {
        // The label in the row is newer than the schema. It may be a new name of the label in the
        // filter, so only PostgreSQL can decide.
        _ if matches!(found, Datum::UnknownLabel(_)) => return Truth::Undecided,
        Operator::Eq => return Truth::of(found == value),
        Operator::Neq => return Truth::of(found != value),
        _ => found.cmp(value),
    };
    Truth::of(match operator {
        Operator::Gt => order == Ordering::Greater,
        Operator::Gte => order != Ordering::Less,
        Operator::Lt => order == Ordering::Less,
        _ => order != Ordering::Greater,
    })
}

impl List {
    fn evaluate(&self, found: &Datum<'_>) -> Truth {
        if matches!(found, Datum::UnknownLabel(_)) && !self.values.is_empty() {
            return Truth::Undecided;
        }
        // The annotation shortens the lifetime of the stored values to that of the row, as
        // `contains` requires.
        let values: &HashSet<Datum<'_>> = &self.values;
        let outcome = match values.contains(found) {
            true => Truth::True,
            false if self.has_null => Truth::Unknown,
            false => Truth::False,
        };
        if self.negated { outcome.not() } else { outcome }
    }
}
