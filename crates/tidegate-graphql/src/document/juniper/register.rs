//! The true schema for juniper. Every type is registered flat and named by text, so that no chain
//! of foreign keys becomes a chain of calls.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use juniper::{
    FromInputValue, GraphQLType, GraphQLValue, InputValue, ParseScalarValue, Registry, SchemaType,
    Type, arcstr, meta, parser::ScalarToken,
};

use super::Scalar;
use crate::definition::{
    ArgumentDefinition, Definitions, FieldDefinition, TypeKind, TypeReference,
};

/// The fields of objects by name, handed to juniper one by one and dropped: it copies them.
type Objects = Arc<Mutex<HashMap<arcstr::ArcStr, Vec<meta::Field<Scalar>>>>>;

/// Registers all types of a schema.
pub(super) fn schema(definitions: &Definitions<'_>) -> SchemaType<Scalar> {
    let mut names = Names::default();
    let mut objects = HashMap::with_capacity(definitions.types.len());
    for definition in &definitions.types {
        if let TypeKind::Object(fields) = &definition.kind {
            let fields = fields.iter().map(|field| names.field(field)).collect();
            objects.insert(names.get(&definition.name), fields);
        }
    }
    let objects: Objects = Arc::new(Mutex::new(objects));
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

/// Texts that are kept once, however many fields have them.
#[derive(Default)]
struct Names(HashSet<arcstr::ArcStr>);

impl Names {
    fn get(&mut self, name: &str) -> arcstr::ArcStr {
        if let Some(known) = self.0.get(name) {
            return known.clone();
        }
        let name = arcstr::ArcStr::from(name);
        self.0.insert(name.clone());
        name
    }

    fn field(&mut self, definition: &FieldDefinition<'_>) -> meta::Field<Scalar> {
        let arguments = definition.arguments.iter();
        let arguments: Vec<_> = arguments.map(|argument| self.argument(argument)).collect();
        meta::Field {
            name: self.get(&definition.name),
            // Introspection is answered from the definitions.
            description: None,
            arguments: Some(arguments).filter(|arguments| !arguments.is_empty()),
            field_type: self.reference(&definition.r#type),
            deprecation_status: meta::DeprecationStatus::Current,
        }
    }

    fn argument(&mut self, definition: &ArgumentDefinition) -> meta::Argument<Scalar> {
        let r#type = self.reference(&definition.r#type);
        meta::Argument::new(self.get(definition.name), r#type)
    }

    fn reference(&mut self, of: &TypeReference<'_>) -> Type {
        let mut r#type = Type::nullable(self.get(&of.name));
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
        let mut objects = info.objects.lock().unwrap_or_else(PoisonError::into_inner);
        let fields = objects.remove(&info.name).unwrap_or_default();
        drop(objects);
        registry
            .build_object_type::<Self>(info, &fields)
            .into_meta()
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
        let objects = info.objects.lock().unwrap_or_else(PoisonError::into_inner);
        let names: Vec<_> = objects.keys().cloned().collect();
        drop(objects);
        for name in names {
            if !matches!(name.as_str(), "Query" | "Mutation" | "Subscription") {
                registry.get_type::<Object>(&Info {
                    name,
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
