//! Converts juniper's syntax tree into [`Document`]. Some functions are macros, because many of
//! juniper's types cannot be named outside of juniper.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use juniper::{Definition, OperationType, Selection as Parsed};

use super::{Scalar, literal, location};
use crate::definition::OperationKind;
use crate::document::{
    Argument, Condition, Document, Field, Fragment, InputType, Operation, Selection,
    VariableDefinition,
};
use crate::error::{Code, Error, Errors};

/// The indexes of fragments, by name.
type Fragments<'p> = HashMap<&'p str, usize>;

/// Reports a directive that occurs twice at the same place. juniper's rules do not report it.
macro_rules! unique {
    ($directives:expr, $errors:expr) => {
        let mut names = HashSet::new();
        for directive in $directives.iter().flatten() {
            let name = directive.item.name.item;
            if !names.insert(name) {
                let message = format!("The directive `@{name}` may stand only once here");
                $errors.push(
                    Error::new(Code::ValidationFailed, message).at(location(directive.span.start)),
                );
            }
        }
    };
}

macro_rules! conditions {
    ($directives:expr, $errors:expr) => {{
        unique!($directives, $errors);
        let directives = $directives.iter().flatten();
        directives
            .filter_map(|directive| {
                let wanted = match directive.item.name.item {
                    "include" => true,
                    "skip" => false,
                    _ => return None,
                };
                let arguments = directive.item.arguments.as_ref()?;
                let mut arguments = arguments.item.items.iter();
                let (_, value) = arguments.find(|(name, _)| name.item == "if")?;
                Some(Condition {
                    wanted,
                    value: literal::value(&value.item),
                    location: location(directive.span.start),
                })
            })
            .collect::<Vec<_>>()
    }};
}

/// Converts a document. The result for invalid parts is unspecified, because juniper's rules reject
/// them afterwards.
///
/// # Errors
///
/// Repeated directives.
pub(super) fn document(parsed: &[Definition<'_, Scalar>]) -> Result<Document, Vec<Error>> {
    let names = parsed.iter().filter_map(|definition| match definition {
        Definition::Fragment(fragment) => Some(fragment.item.name.item),
        Definition::Operation(_) => None,
    });
    let names: Fragments<'_> = names.enumerate().map(|(at, name)| (name, at)).collect();
    let mut errors = Errors::default();
    let mut document = Document {
        operations: Vec::new(),
        fragments: Vec::new(),
    };
    for definition in parsed {
        match definition {
            Definition::Operation(operation) => {
                let parsed = &operation.item;
                unique!(parsed.directives, errors);
                let variables = parsed.variables_definition.iter();
                let variables = variables.flat_map(|variables| variables.item.iter());
                let variables: Vec<_> = variables
                    .map(|(name, variable)| {
                        unique!(variable.directives, errors);
                        let default = variable.default_value.as_ref();
                        VariableDefinition {
                            name: name.item.into(),
                            r#type: input_type(&variable.var_type.item.to_string()),
                            default: default.map(|value| literal::value(&value.item)),
                            location: location(name.span.start),
                        }
                    })
                    .collect();
                let numbers = variables.iter().enumerate();
                document.operations.push(Operation {
                    kind: match parsed.operation_type {
                        OperationType::Query => OperationKind::Query,
                        OperationType::Mutation => OperationKind::Mutation,
                        OperationType::Subscription => OperationKind::Subscription,
                    },
                    name: parsed.name.map(|name| name.item.into()),
                    numbers: numbers
                        .map(|(number, variable)| (variable.name.clone(), number))
                        .collect(),
                    variables,
                    selection: selection(&parsed.selection_set, &names, &mut errors),
                    location: location(operation.span.start),
                });
            }
            Definition::Fragment(fragment) => {
                unique!(fragment.item.directives, errors);
                document.fragments.push(Fragment {
                    selection: selection(&fragment.item.selection_set, &names, &mut errors),
                });
            }
        }
    }
    errors.into_result()?;
    Ok(document)
}

fn selection(
    parsed: &[Parsed<'_, Scalar>],
    names: &Fragments<'_>,
    errors: &mut Errors,
) -> Vec<Selection> {
    let lower = |part: &Parsed<'_, Scalar>| match part {
        Parsed::Field(field) => {
            let parsed = &field.item;
            let arguments = parsed.arguments.iter().flat_map(|list| &list.item.items);
            Selection::Field(Field {
                key: Arc::from(parsed.alias.unwrap_or(parsed.name).item),
                name: parsed.name.item.into(),
                arguments: arguments
                    .map(|(name, value)| Argument {
                        name: name.item.into(),
                        value: literal::value(&value.item),
                        location: location(value.span.start),
                    })
                    .collect(),
                conditions: conditions!(parsed.directives, errors),
                selection: parsed
                    .selection_set
                    .as_deref()
                    .map(|parts| selection(parts, names, errors))
                    .unwrap_or_default(),
                location: location(field.span.start),
                meaning: OnceLock::new(),
            })
        }
        Parsed::FragmentSpread(spread) => {
            let conditions = conditions!(spread.item.directives, errors);
            match names.get(spread.item.name.item) {
                Some(&at) => Selection::Spread(at, conditions),
                None => Selection::Inline(Vec::new(), conditions),
            }
        }
        Parsed::InlineFragment(inline) => {
            let conditions = conditions!(inline.item.directives, errors);
            let parts = selection(&inline.item.selection_set, names, errors);
            Selection::Inline(parts, conditions)
        }
    };
    parsed.iter().map(lower).collect()
}

/// Parses a type as juniper prints it.
fn input_type(printed: &str) -> InputType {
    if let Some(of) = printed.strip_suffix('!') {
        return InputType::NonNull(Box::new(input_type(of)));
    }
    match printed
        .strip_prefix('[')
        .and_then(|of| of.strip_suffix(']'))
    {
        Some(of) => InputType::List(Box::new(input_type(of))),
        None => InputType::Named(printed.into()),
    }
}
