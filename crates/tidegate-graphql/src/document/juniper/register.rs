//! The true schema for juniper. Every type is registered flat and named by text, so that no chain
//! of foreign keys becomes a chain of calls.

use std::sync::Arc;

use juniper::{
    FromInputValue, GraphQLType, GraphQLValue, InputValue, ParseScalarValue, Registry, SchemaType,
    Type, arcstr, meta, parser::ScalarToken,
};

use super::Scalar;
use crate::definition::{
    ArgumentDefinition, Definitions, FieldDefinition, TypeDefinition, TypeKind, TypeReference,
};

/// Objects by name, handed to juniper and taken away again one by one.
type Objects = Arc<std::collections::HashMap<arcstr::ArcStr, Vec<meta::Field<Scalar>>>>;

/// Registers all types of a schema.
pub(super) fn schema(definitions: &Definitions<'_>) -> SchemaType<Scalar> {
    let objects = definitions.types.iter().filter_map(|definition| {
        let TypeKind::Object(fields) = &definition.kind else {
            return None;
        };
        Some((name(definition), fields.iter().map(field).collect()))
    });
    let objects: Objects = Arc::new(objects.collect());
    let info = |name: &str| Info {
        name: name.into(),
        objects: Arc::clone(&objects),
    };
    let mutation = if definitions.mutation {
        "Mutation"
    } else {
        "_EmptyMutation"
    };
    let subscription = if definitions.subscription {
        "Subscription"
    } else {
        "_EmptySubscription"
    };
    SchemaType::new::<Query, Object, Object>(&info("Query"), &info(mutation), &info(subscription))
}

fn name(definition: &TypeDefinition<'_>) -> arcstr::ArcStr {
    (&*definition.name).into()
}

fn field(definition: &FieldDefinition<'_>) -> meta::Field<Scalar> {
    let arguments = definition
        .arguments
        .iter()
        .map(argument)
        .collect::<Vec<_>>();
    meta::Field {
        name: (&*definition.name).into(),
        // Introspection is answered from the definitions.
        description: None,
        arguments: Some(arguments).filter(|arguments| !arguments.is_empty()),
        field_type: reference(&definition.r#type),
        deprecation_status: meta::DeprecationStatus::Current,
    }
}

fn argument(definition: &ArgumentDefinition) -> meta::Argument<Scalar> {
    meta::Argument::new(definition.name, reference(&definition.r#type))
}

fn reference(of: &TypeReference<'_>) -> Type {
    let mut r#type = Type::nullable(&*of.name);
    if of.list {
        if of.elements_not_null {
            r#type = r#type.wrap_non_null();
        }
        r#type = r#type.wrap_list(None);
    }
    if of.not_null {
        r#type = r#type.wrap_non_null();
    }
    r#type
}

struct Info {
    name: arcstr::ArcStr,
    objects: Objects,
}

/// Any object type but the first.
struct Object;

impl GraphQLType<Scalar> for Object {
    fn name(info: &Info) -> Option<arcstr::ArcStr> {
        Some(info.name.clone())
    }

    fn meta(info: &Info, registry: &mut Registry<Scalar>) -> meta::MetaType<Scalar> {
        let fields = info
            .objects
            .get(&info.name)
            .map_or(&[][..], |fields| fields);
        registry.build_object_type::<Self>(info, fields).into_meta()
    }
}

impl GraphQLValue<Scalar> for Object {
    type Context = ();
    type TypeInfo = Info;

    fn type_name(&self, info: &Info) -> Option<arcstr::ArcStr> {
        Some(info.name.clone())
    }
}

/// The first type, which brings all others with it.
struct Query;

impl GraphQLType<Scalar> for Query {
    fn name(info: &Info) -> Option<arcstr::ArcStr> {
        <Object as GraphQLType<Scalar>>::name(info)
    }

    fn meta(info: &Info, registry: &mut Registry<Scalar>) -> meta::MetaType<Scalar> {
        registry.get_type::<i32>(&());
        registry.get_type::<f64>(&());
        registry.get_type::<bool>(&());
        registry.get_type::<String>(&());
        registry.get_type::<Opaque<true>>(&"JSON");
        for name in ["ID", "Date", "Time", "DateTime"] {
            registry.get_type::<Opaque<false>>(&name);
        }
        for name in info.objects.keys() {
            if !matches!(name.as_str(), "Query" | "Mutation" | "Subscription") {
                registry.get_type::<Object>(&Info {
                    name: name.clone(),
                    objects: Arc::clone(&info.objects),
                });
            }
        }
        Object::meta(info, registry)
    }
}

impl GraphQLValue<Scalar> for Query {
    type Context = ();
    type TypeInfo = Info;

    fn type_name(&self, info: &Info) -> Option<arcstr::ArcStr> {
        Some(info.name.clone())
    }
}

/// A scalar of our own, which takes strings, or `ANY` scalar.
struct Opaque<const ANY: bool>;

impl<const ANY: bool> GraphQLType<Scalar> for Opaque<ANY> {
    fn name(name: &&'static str) -> Option<arcstr::ArcStr> {
        Some((*name).into())
    }

    fn meta(name: &&'static str, registry: &mut Registry<Scalar>) -> meta::MetaType<Scalar> {
        registry.build_scalar_type::<Self>(name).into_meta()
    }
}

impl<const ANY: bool> GraphQLValue<Scalar> for Opaque<ANY> {
    type Context = ();
    type TypeInfo = &'static str;

    fn type_name(&self, name: &&'static str) -> Option<arcstr::ArcStr> {
        Some((*name).into())
    }
}

impl<const ANY: bool> FromInputValue<Scalar> for Opaque<ANY> {
    type Error = String;

    fn from_input_value(value: &InputValue<Scalar>) -> Result<Self, String> {
        match value {
            InputValue::Scalar(Scalar::String(_)) => Ok(Self),
            InputValue::Scalar(_) if ANY => Ok(Self),
            _ => Err("not a value of this type".to_owned()),
        }
    }
}

impl<const ANY: bool> ParseScalarValue<Scalar> for Opaque<ANY> {
    fn from_str(token: ScalarToken<'_>) -> juniper::ParseScalarResult<Scalar> {
        Ok(Scalar::String(match token {
            ScalarToken::String(literal) => literal.parse()?.into_owned(),
            ScalarToken::Int(digits) | ScalarToken::Float(digits) => digits.to_owned(),
        }))
    }
}
