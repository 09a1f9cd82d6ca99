//! Scalars, and objects for the values of columns.

use super::{FieldDefinition, TypeDefinition, TypeKind, TypeReference};
use crate::kind::{Holds, Member, SCALARS, VALUE_OBJECTS, ValueObject};

/// The types that every schema has.
pub(super) fn definitions<'s>() -> Vec<TypeDefinition<'s>> {
    let scalars = SCALARS
        .iter()
        .map(|&(name, description, builtin)| TypeDefinition {
            name: name.into(),
            description: Some(description.into()),
            kind: TypeKind::Scalar(builtin),
        });
    scalars
        .chain(VALUE_OBJECTS.iter().map(|object| define(object)))
        .collect()
}

fn define<'s>(object: &'static ValueObject) -> TypeDefinition<'s> {
    TypeDefinition {
        name: object.name.into(),
        description: Some(object.description.into()),
        kind: TypeKind::Object(object.members.iter().map(field).collect()),
    }
}

fn field<'s>(member: &'static Member) -> FieldDefinition<'s> {
    let mut r#type = match member.holds {
        Holds::Scalar(name) => TypeReference::nullable(name),
        Holds::Object(object) => TypeReference::nullable(object.name),
        Holds::List(object) | Holds::Itself(object) => TypeReference::list_of_required(object.name),
    };
    r#type.not_null = member.not_null;
    FieldDefinition {
        name: member.name.into(),
        description: None,
        arguments: &[],
        r#type,
    }
}
