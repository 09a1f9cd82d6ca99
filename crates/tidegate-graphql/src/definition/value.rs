//! Defines the object types of column values.

use super::{FieldDefinition, FieldIter, TypeReference};
use crate::field_type::{MemberContent, ValueMember, ValueObject};

pub(super) fn fields<'s>(object: &'static ValueObject) -> FieldIter<'s> {
    Box::new(object.members.iter().map(field))
}

fn field<'s>(member: &'static ValueMember) -> FieldDefinition<'s> {
    let mut r#type = match member.content {
        MemberContent::Scalar(name) => TypeReference::nullable(name),
        MemberContent::Object(object) => TypeReference::nullable(object.name),
        MemberContent::List(object) | MemberContent::Whole(object) => {
            TypeReference::list_of_required(object.name)
        }
    };
    r#type.not_null = member.not_null;
    FieldDefinition {
        name: member.name.into(),
        description: None,
        arguments: &[],
        r#type,
    }
}
