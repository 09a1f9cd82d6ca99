//! Adapts a parsed document so that juniper's rules apply to it.

use std::collections::HashSet;

use juniper::{Definition, InputValue, OperationType, SchemaType, Selection as Parsed};

use super::{Scalar, literal};
use crate::document::{Document, Selection};

/// The variables that an operation or a fragment uses.
#[derive(Default)]
struct Uses {
    /// Variables inside literals that [`adapt`] replaces, so that juniper does not see these
    /// variables.
    hidden: HashSet<String>,
    /// Variables that remain in the document, so that juniper sees them.
    seen: HashSet<String>,
}

/// Replaces every literal of a type that takes any JSON by a string, except null and variables, and
/// removes the marker letters that `parsing_schema` put before numbers and strings. Also removes
/// the definitions of variables that are used only in replaced literals, because juniper would
/// report these variables as unused. `rules::check` checks these variables instead.
pub(super) fn adapt(
    parsed: &mut [Definition<'_, Scalar>],
    schema: &SchemaType<Scalar>,
    document: &Document,
) {
    let (mut operations, mut fragments) = (Vec::new(), Vec::new());
    for definition in parsed.iter_mut() {
        let mut uses = Uses::default();
        match definition {
            Definition::Operation(operation) => {
                let root = match operation.item.operation_type {
                    OperationType::Query => "Query",
                    OperationType::Mutation => "Mutation",
                    OperationType::Subscription => "Subscription",
                };
                let variables = operation.item.variables_definition.iter_mut();
                for (_, variable) in variables.flat_map(|variables| &mut variables.item.items) {
                    let list = variable.var_type.item.to_string().starts_with('[');
                    let named = variable.var_type.item.innermost_name();
                    if let Some(default) = &mut variable.default_value {
                        literal::adapt(&mut default.item, named, list, &mut uses.hidden);
                    }
                }
                walk(
                    &mut operation.item.selection_set,
                    Some(root),
                    schema,
                    &mut uses,
                );
                operations.push(uses);
            }
            Definition::Fragment(fragment) => {
                let on = fragment.item.type_condition.item;
                walk(
                    &mut fragment.item.selection_set,
                    Some(on),
                    schema,
                    &mut uses,
                );
                fragments.push(uses);
            }
        }
    }
    retain(parsed, document, &operations, &fragments);
}

/// Removes the definitions of variables that are used only in replaced literals.
fn retain(
    parsed: &mut [Definition<'_, Scalar>],
    document: &Document,
    operations: &[Uses],
    fragments: &[Uses],
) {
    let mut number = 0;
    for definition in parsed {
        let Definition::Operation(operation) = definition else {
            continue;
        };
        let mut reached = HashSet::new();
        reach(
            &document.operations[number].selection,
            document,
            &mut reached,
        );
        let uses = || {
            let fragments = reached.iter().map(|at| &fragments[*at]);
            fragments.chain([&operations[number]])
        };
        if let Some(variables) = &mut operation.item.variables_definition {
            variables.item.items.retain(|(name, _)| {
                let hidden = |uses: &Uses| uses.hidden.contains(name.item);
                let seen = |uses: &Uses| uses.seen.contains(name.item);
                uses().any(seen) || !uses().any(hidden)
            });
        }
        number += 1;
    }
}

/// Collects the fragments that a selection spreads, directly or through other fragments.
fn reach(selection: &[Selection], document: &Document, reached: &mut HashSet<usize>) {
    for part in selection {
        match part {
            Selection::Field(field) => reach(&field.selection, document, reached),
            Selection::Inline(parts, _) => reach(parts, document, reached),
            Selection::Spread(at, _) => {
                if reached.insert(*at) {
                    reach(&document.fragments[*at].selection, document, reached);
                }
            }
        }
    }
}

macro_rules! arguments {
    ($arguments:expr, $known:expr, $uses:expr) => {
        for (name, value) in $arguments.iter_mut().flat_map(|list| &mut list.item.items) {
            let place = literal::argument_type($known, name.item);
            let (named, list) = place.unwrap_or_default();
            literal::adapt(&mut value.item, &named, list, &mut $uses.hidden);
            record_uses(&value.item, $uses);
        }
    };
}

macro_rules! directives {
    ($directives:expr, $schema:expr, $uses:expr) => {
        for directive in $directives.iter_mut().flatten() {
            let known = literal::directive($schema, directive.item.name.item);
            arguments!(directive.item.arguments, known, $uses);
        }
    };
}

fn walk(
    selection: &mut [Parsed<'_, Scalar>],
    parent: Option<&str>,
    schema: &SchemaType<Scalar>,
    uses: &mut Uses,
) {
    for part in selection {
        match part {
            Parsed::Field(field) => {
                let field = &mut field.item;
                let r#type = parent.and_then(|name| schema.concrete_type_by_name(name));
                let meta = r#type.and_then(|r#type| r#type.field_by_name(field.name.item));
                let known = meta
                    .and_then(|meta| meta.arguments.as_deref())
                    .unwrap_or_default();
                arguments!(field.arguments, known, uses);
                directives!(field.directives, schema, uses);
                if let Some(parts) = &mut field.selection_set {
                    let inner = meta.map(|meta| meta.field_type.innermost_name());
                    walk(parts, inner, schema, uses);
                }
            }
            Parsed::FragmentSpread(spread) => {
                directives!(spread.item.directives, schema, uses);
            }
            Parsed::InlineFragment(inline) => {
                directives!(inline.item.directives, schema, uses);
                let on = inline.item.type_condition.map(|name| name.item).or(parent);
                walk(&mut inline.item.selection_set, on, schema, uses);
            }
        }
    }
}

/// Records the variables in an adapted literal. juniper's rules will see these variables.
fn record_uses(value: &InputValue<Scalar>, uses: &mut Uses) {
    match value {
        InputValue::Variable(name) => {
            uses.seen.insert(name.clone());
        }
        InputValue::List(items) => {
            for item in items {
                record_uses(&item.item, uses);
            }
        }
        InputValue::Object(members) => {
            for (_, member) in members {
                record_uses(&member.item, uses);
            }
        }
        _ => {}
    }
}
