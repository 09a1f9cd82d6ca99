//! Introspection (GraphQL, section 4), which is generated from the definitions.
//!
//! juniper's own introspection is not used, because it is several times slower than this module,
//! and uses half a gigabyte of memory for a schema of ten thousand tables. The response for such a
//! schema has 150 MB, so this module can write it in chunks.

mod builtin;
mod object;
mod writer;

use crate::collect::{CollectedField, Collector};
use crate::document::{Missing, Variables};
use crate::error::Error;

pub(crate) use writer::IntrospectionWriter;

/// A field of an introspection, with fragments and conditions resolved.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct IntrospectionNode {
    /// The response key, as JSON text followed by a colon.
    key: Box<str>,
    name: Box<str>,
    /// The value of the field's only argument as JSON text: `name` of `__type`, or
    /// `includeDeprecated`. `None` if the argument is not given.
    argument: Option<Box<str>>,
    /// The selection of the field.
    below: Vec<IntrospectionNode>,
}

impl IntrospectionNode {
    /// Resolves the selection of a collected field.
    ///
    /// # Errors
    ///
    /// If the variable of `@skip` or `@include` is null or has no value.
    pub(crate) fn of<'d>(
        group: &CollectedField<'d>,
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
impl IntrospectionNode {
    /// An introspection of `__schema` that repeats `fields { type { ofType { ofType` in the
    /// selection of the types. `levels` is the number of repetitions. The type `__Type` has two
    /// fields of type `[__Type!]`, so each repetition doubles the size of the response.
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
