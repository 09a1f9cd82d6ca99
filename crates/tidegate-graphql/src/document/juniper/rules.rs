//! Rules that juniper lacks, or that juniper cannot check because `adapt` has replaced literals.

use std::collections::{HashMap, HashSet};

use crate::definition::OperationKind;
use crate::document::{
    Condition, Document, Field, InputType, Operation, Selection, Value, VariableDefinition, coerce,
};
use crate::error::{Code, Error, Errors, Location};
use crate::field_type::SCALARS;

/// Checks that the types of variables exist and are input types. Otherwise juniper's rules would
/// panic.
///
/// # Errors
///
/// `GRAPHQL_VALIDATION_FAILED` for each variable whose type does not exist or is not an input type.
pub(super) fn check_types(document: &Document) -> Result<(), Vec<Error>> {
    let variables = document
        .operations
        .iter()
        .flat_map(|operation| &operation.variables);
    let wrong = variables.filter(|variable| !is_input(innermost(&variable.r#type)));
    let errors: Errors = wrong
        .map(|variable| {
            let name = innermost(&variable.r#type);
            let message = format!(
                "Variable `${}`: `{name}` is not an input type",
                variable.name
            );
            Error::new(Code::ValidationFailed, message).at(variable.location)
        })
        .collect();
    errors.into_result()
}

fn is_input(name: &str) -> bool {
    SCALARS.iter().any(|scalar| scalar.name == name)
        || matches!(name, "__TypeKind" | "__DirectiveLocation")
}

/// Checks a document that has passed juniper's rules. Its fragments therefore have no cycles.
/// `exists` returns whether the API has operations of a kind.
///
/// # Errors
///
/// `GRAPHQL_VALIDATION_FAILED` for each violation of a rule.
pub(super) fn check(
    document: &Document,
    exists: impl Fn(OperationKind) -> bool,
) -> Result<(), Vec<Error>> {
    let mut errors = Errors::default();
    for operation in &document.operations {
        if !exists(operation.kind) {
            let kind = match operation.kind {
                OperationKind::Query => "queries",
                OperationKind::Mutation => "mutations",
                OperationKind::Subscription => "subscriptions",
            };
            let message = format!("There are no {kind} here that the role may use");
            errors.push(Error::new(Code::ValidationFailed, message).at(operation.location));
            continue;
        }
        let mut check = Check {
            document,
            operation,
            variables: operation
                .variables
                .iter()
                .map(|known| (&*known.name, known))
                .collect(),
            seen: HashSet::new(),
            errors: &mut errors,
        };
        for variable in &operation.variables {
            check.variable(variable);
        }
        check.selection(&operation.selection);
        if operation.kind == OperationKind::Subscription {
            check.single_root();
        }
    }
    errors.into_result()
}

struct Check<'d, 'e> {
    document: &'d Document,
    operation: &'d Operation,
    /// The variables of the operation, by name.
    variables: HashMap<&'d str, &'d VariableDefinition>,
    /// The indexes of the fragments that were visited for this operation.
    seen: HashSet<usize>,
    errors: &'e mut Errors,
}

impl<'d> Check<'d, '_> {
    fn fail(&mut self, message: String, location: Location) {
        let error = Error::new(Code::ValidationFailed, message).at(location);
        self.errors.push(error);
    }

    fn variable(&mut self, variable: &VariableDefinition) {
        let Some(default) = &variable.default else {
            return;
        };
        if let Err(problem) = coerce::literal(default, &variable.r#type) {
            let message = format!("Variable `${}`: its default {problem}", variable.name);
            self.fail(message, variable.location);
        }
    }

    fn selection(&mut self, selection: &'d [Selection]) {
        for part in selection {
            if self.errors.is_full() {
                return;
            }
            match part {
                Selection::Field(field) => {
                    self.conditions(&field.conditions, field.location);
                    self.field(field);
                    self.selection(&field.selection);
                }
                Selection::Inline(parts, conditions) => {
                    self.conditions(conditions, self.operation.location);
                    self.selection(parts);
                }
                Selection::Spread(at, conditions) => {
                    self.conditions(conditions, self.operation.location);
                    if self.seen.insert(*at) {
                        self.selection(&self.document.fragments[*at].selection);
                    }
                }
            }
        }
    }

    fn field(&mut self, field: &'d Field) {
        for argument in &field.arguments {
            argument.value.variables(&mut |name| {
                if !self.errors.is_full() && !self.variables.contains_key(name) {
                    let message = format!("Variable `${name}` is not defined");
                    self.fail(message, argument.location);
                }
            });
            if let Some(name) = repeated_key(&argument.value) {
                let message = format!("`{name}` stands twice in one object");
                self.fail(message, argument.location);
            }
            // Only the argument of `__type(name: $name)` is non-null, so only fields with the name
            // `__type` are checked.
            if &*field.name == "__type" {
                self.not_null(&argument.value, argument.location);
            }
        }
    }

    fn conditions(&mut self, conditions: &[Condition], location: Location) {
        for condition in conditions {
            self.not_null(&condition.value, location);
        }
    }

    /// Rejects a nullable variable in a non-null position, unless the variable has a non-null
    /// default (GraphQL, section 5.8.5).
    fn not_null(&mut self, value: &Value, location: Location) {
        let Value::Variable(name) = value else { return };
        let Some(variable) = self.variables.get(&**name) else {
            return;
        };
        let nullable = !matches!(variable.r#type, InputType::NonNull(_));
        if nullable && matches!(variable.default, None | Some(Value::Null)) {
            let message = format!(
                "Variable `${name}` of type `{}` stands where null is not allowed",
                variable.r#type
            );
            self.fail(message, location);
        }
    }

    /// Checks that a subscription has exactly one root field, which is unconditional and not an
    /// introspection field (GraphQL, section 5.2.3.1).
    fn single_root(&mut self) {
        let mut keys = HashSet::new();
        let mut conditional = false;
        roots(self.document, &self.operation.selection, &mut |field| {
            keys.insert(&*field.key);
            conditional |= !field.conditions.is_empty() || field.name.starts_with("__");
        });
        if keys.len() > 1 || conditional {
            let message = "A subscription has one root field, without a condition".to_owned();
            self.fail(message, self.operation.location);
        }
    }
}

fn roots<'d>(
    document: &'d Document,
    selection: &'d [Selection],
    visit: &mut impl FnMut(&'d Field),
) {
    for part in selection {
        match part {
            Selection::Field(field) => visit(field),
            Selection::Inline(parts, _) => roots(document, parts, visit),
            Selection::Spread(at, _) => roots(document, &document.fragments[*at].selection, visit),
        }
    }
}

fn innermost(r#type: &InputType) -> &str {
    match r#type {
        InputType::Named(name) => name,
        InputType::List(of) | InputType::NonNull(of) => innermost(of),
    }
}

/// The first name that occurs twice in an object literal (GraphQL, section 5.6.3).
fn repeated_key(value: &Value) -> Option<&str> {
    match value {
        Value::List(items) => items.iter().find_map(repeated_key),
        Value::Object(members) => {
            let mut names = HashSet::with_capacity(members.len());
            let twice = members.iter().find(|(name, _)| !names.insert(&**name));
            twice
                .map(|(name, _)| &**name)
                .or_else(|| members.iter().find_map(|(_, value)| repeated_key(value)))
        }
        _ => None,
    }
}
