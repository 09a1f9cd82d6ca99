//! Introspection (GraphQL, section 4), written straight from the definitions.
//!
//! juniper can introspect too, but takes several times as long and half a gigabyte for a schema of
//! ten thousand tables. The answer for such a schema has 150 MB, so it can be written piece by piece.

mod builtin;
mod json;
mod object;
mod writer;

use crate::coerce::{Missing, Variables};
use crate::collect::{Collector, Group};
use crate::error::Error;

pub(crate) use writer::Writer;

/// A selection with its fragments and conditions put in.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Node {
    /// The response key, as JSON text with its colon.
    key: Box<str>,
    /// The field.
    name: Box<str>,
    /// The argument `name` of `__type`, or `includeDeprecated`.
    argument: Option<Box<str>>,
    /// What is below.
    below: Vec<Node>,
}

impl Node {
    /// Puts a selection together.
    ///
    /// # Errors
    ///
    /// A condition or a name whose variable is null.
    pub(crate) fn of<'d>(
        group: &Group<'d>,
        collect: Collector<'d>,
        variables: &'d Variables<'d>,
    ) -> Result<Self, Error> {
        let argument = group.field.arguments.first();
        let argument = argument.map(|argument| variables.value(&argument.value, Missing::Omit));
        let text = argument
            .transpose()?
            .flatten()
            .map(|value| value.text().into());
        let below = collect.below(group)?;
        let below = below
            .iter()
            .map(|group| Self::of(group, collect, variables));
        Ok(Self {
            key: format!("{}:", serde_json::Value::from(&**group.key())).into(),
            name: group.field.name.clone(),
            argument: text,
            below: below.collect::<Result<_, Error>>()?,
        })
    }
}

#[cfg(test)]
impl Node {
    /// `__schema` with so many `fields { type { ofType { ofType` in each other below its types.
    /// `__Type` has two fields of the type `[__Type!]`, so each level doubles the text.
    pub(crate) fn nested(levels: usize) -> Self {
        let node = |name: &str, below| Self {
            key: format!("\"{name}\":").into(),
            name: name.into(),
            argument: None,
            below,
        };
        let mut below = vec![node("name", Vec::new())];
        for _ in 0..levels {
            let named = node("ofType", vec![node("ofType", below)]);
            below = vec![node("fields", vec![node("type", vec![named])])];
        }
        node("__schema", vec![node("types", below)])
    }
}
