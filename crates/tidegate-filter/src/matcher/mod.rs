//! The filter of a subscription, judged on the images of rows outside the database.

mod compile;
mod constant;
mod datum;
mod decimal;
mod key;
mod letters;
mod pattern;
mod relabel;
mod scalar;
mod whole;

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

use tidegate_catalog::ColumnId;

pub use self::key::{Key, KeyReader, Pin};
pub use self::letters::Letters;

use self::datum::Datum;
use self::pattern::Pattern;
use self::scalar::{Malformed, Scalar};
use crate::operator::Operator;

/// A filter that is judged on images of rows, with the truth that PostgreSQL would find.
///
/// It is compiled once for a subscription by [`Matcher::compile`].
#[derive(Clone, Debug)]
pub struct Matcher {
    node: Node,
    columns: Box<[ColumnId]>,
    pins: Box<[Pin]>,
}

/// A column's value in the image of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Image<'a> {
    /// NULL.
    Null,
    /// The output function's text, under `DateStyle ISO`, `IntervalStyle postgres` and
    /// `extra_float_digits` above 0, in UTF-8.
    Text(&'a [u8]),
    /// The send function's bytes.
    Binary(&'a [u8]),
    /// The image lacks the column.
    Missing,
}

/// What a matcher finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// True: the row passes.
    True,
    /// False.
    False,
    /// Unknown, in the sense of SQL: NULL.
    Unknown,
    /// It depends on what only PostgreSQL can tell: on a column that the image lacks, on an enum's
    /// label that is newer than the schema, or on a letter whose lower case is a matter of a
    /// language that was not told ([`Matcher::with_letters`]).
    Undecided,
}

#[derive(Clone, Debug)]
enum Node {
    All(Box<[Node]>),
    Any(Box<[Node]>),
    Not(Box<Node>),
    /// Whether the column is NULL (true) or not (false).
    Null(ColumnId, bool),
    Compare(Operand, Operator, Datum<'static>),
    /// One of these values, or the negation.
    In(Operand, Box<List>),
    Like(ColumnId, Pattern),
}

/// A column and how its values are read.
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
    /// The columns that it looks at, each once, in their order.
    pub fn columns(&self) -> &[ColumnId] {
        &self.columns
    }

    /// The columns whose letters ILIKE folds by the rules of their collations, each once.
    pub fn folding(&self) -> Vec<ColumnId> {
        let mut folding = Vec::new();
        self.node.folding(&mut folding);
        folding.sort_unstable();
        folding.dedup();
        folding
    }

    /// The same matcher with the rules of collations, by which it can tell of every text whether it
    /// is of a pattern.
    #[must_use]
    pub fn with_letters(&self, letters: &dyn Fn(ColumnId) -> Option<Arc<Letters>>) -> Self {
        let mut matcher = self.clone();
        matcher.node.learn(letters);
        matcher
    }

    /// Equalities that every row that passes fulfils: a hub finds the subscriptions of a row by the
    /// values of its columns. None means that any row may pass.
    pub fn pins(&self) -> &[Pin] {
        &self.pins
    }

    /// Judges the image of a row; `image` gives a column's value.
    ///
    /// # Errors
    ///
    /// [`tidegate_sql::Error::Internal`] when bytes are no value of their column's type.
    pub fn judge<'r>(
        &self,
        image: impl Fn(ColumnId) -> Image<'r>,
    ) -> tidegate_sql::Result<Verdict> {
        Ok(self.node.judge(&image)?)
    }
}

impl Verdict {
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

impl Node {
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

    fn learn(&mut self, letters: &dyn Fn(ColumnId) -> Option<Arc<Letters>>) {
        match self {
            Self::All(nodes) | Self::Any(nodes) => {
                nodes.iter_mut().for_each(|node| node.learn(letters));
            }
            Self::Not(node) => node.learn(letters),
            Self::Like(column, pattern) if pattern.folds() => {
                if let Some(letters) = letters(*column) {
                    pattern.learn(letters);
                }
            }
            Self::Null(..) | Self::Compare(..) | Self::In(..) | Self::Like(..) => {}
        }
    }

    fn judge<'r>(&self, image: &impl Fn(ColumnId) -> Image<'r>) -> Result<Verdict, Malformed> {
        Ok(match self {
            Self::All(nodes) => joined(nodes, Verdict::False, image)?,
            Self::Any(nodes) => joined(nodes, Verdict::True, image)?,
            Self::Not(node) => node.judge(image)?.not(),
            Self::Null(column, wanted) => match image(*column) {
                Image::Missing => Verdict::Undecided,
                image => Verdict::of((image == Image::Null) == *wanted),
            },
            Self::Compare(operand, operator, value) => match operand.read(image)? {
                Ok(found) => compare(&found, *operator, value),
                Err(verdict) => verdict,
            },
            Self::In(operand, list) => match operand.read(image)? {
                Ok(found) => list.judge(&found),
                Err(verdict) => verdict,
            },
            Self::Like(column, pattern) => match image(*column) {
                Image::Null => Verdict::Unknown,
                Image::Missing => Verdict::Undecided,
                Image::Text(text) | Image::Binary(text) => pattern
                    .matches(text)
                    .map_or(Verdict::Undecided, Verdict::of),
            },
        })
    }
}

/// AND, which false decides, or OR, which true decides.
fn joined<'r>(
    nodes: &[Node],
    decides: Verdict,
    image: &impl Fn(ColumnId) -> Image<'r>,
) -> Result<Verdict, Malformed> {
    let mut joined = decides.not();
    for node in nodes {
        match node.judge(image)? {
            verdict if verdict == decides => return Ok(decides),
            Verdict::Undecided => joined = Verdict::Undecided,
            Verdict::Unknown if joined != Verdict::Undecided => joined = Verdict::Unknown,
            _ => {}
        }
    }
    Ok(joined)
}

impl Operand {
    /// The value, or what a comparison with none gives.
    fn read<'r>(
        &self,
        image: &impl Fn(ColumnId) -> Image<'r>,
    ) -> Result<Result<Datum<'r>, Verdict>, Malformed> {
        let image = image(self.column);
        let none = match image {
            Image::Missing => Verdict::Undecided,
            _ => Verdict::Unknown,
        };
        Ok(self.scalar.read(image)?.ok_or(none))
    }
}

fn compare(found: &Datum<'_>, operator: Operator, value: &Datum<'static>) -> Verdict {
    let order = match operator {
        // It may be a known one by another name.
        _ if matches!(found, Datum::Unplaced(_)) => return Verdict::Undecided,
        Operator::Eq => return Verdict::of(found == value),
        Operator::Neq => return Verdict::of(found != value),
        _ => found.cmp(value),
    };
    Verdict::of(match operator {
        Operator::Gt => order == Ordering::Greater,
        Operator::Gte => order != Ordering::Less,
        Operator::Lt => order == Ordering::Less,
        _ => order != Ordering::Greater,
    })
}

impl List {
    fn judge(&self, found: &Datum<'_>) -> Verdict {
        if matches!(found, Datum::Unplaced(_)) && !self.values.is_empty() {
            return Verdict::Undecided;
        }
        // A set of values that live for ever is one of values that live less long.
        let values: &HashSet<Datum<'_>> = &self.values;
        let verdict = match values.contains(found) {
            true => Verdict::True,
            false if self.has_null => Verdict::Unknown,
            false => Verdict::False,
        };
        if self.negated { verdict.not() } else { verdict }
    }
}
