//! The true schema for juniper. Every type is registered flat and named by text, so that no chain
//! of foreign keys becomes a chain of calls.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use juniper::{
    FromInputValue, GraphQLType, GraphQLValue, InputValue, ParseScalarValue, Registry, SchemaType,
    Type, arcstr, meta, parser::ScalarToken,
};

use super::Scalar;
use crate::definition::{
    ArgumentDefinition, FieldDefinition, TypeDefinition, TypeReference, Types,
};
use crate::document::OperationKind;
use crate::kind::{SCALARS, Takes};

/// Registers all types of a schema.
pub(super) fn schema(types: &Arc<Types>) -> SchemaType<Scalar> {
    let names = Arc::new(Mutex::new(Names::default()));
    let info = |kind: OperationKind| Info {
        name: match types.operation(kind) {
            Some(r#type) => r#type.name().into(),
            None => format!("_Empty{}", kind.type_name()).into(),
        },
        types: Arc::clone(types),
        names: Arc::clone(&names),
    };
    SchemaType::new::<Query, Object, Object>(
        &info(OperationKind::Query),
        &info(OperationKind::Mutation),
        &info(OperationKind::Subscription),
    )
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

/// What juniper asks an object type about. It copies fields, so they are made for it and dropped.
struct Info {
    name: arcstr::ArcStr,
    types: Arc<Types>,
    names: Arc<Mutex<Names>>,
}

impl Info {
    fn name(&self, name: &str) -> arcstr::ArcStr {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.get(name)
    }

    fn fields(&self) -> Vec<meta::Field<Scalar>> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let fields = self.types.find(&self.name).map(TypeDefinition::fields);
        let fields = fields.into_iter().flatten();
        fields.map(|field| names.field(&field)).collect()
    }
}

/// Any object type but the first.
struct Object;

impl GraphQLType<Scalar> for Object {
    fn name(info: &Info) -> Option<arcstr::ArcStr> {
        Some(info.name.clone())
    }

    fn meta(info: &Info, registry: &mut Registry<Scalar>) -> meta::MetaType<Scalar> {
        registry
            .build_object_type::<Self>(info, &info.fields())
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
        registry.get_type::<Opaque<false>>(&"ID");
        for scalar in &SCALARS {
            match scalar.takes {
                Takes::Standard => {}
                Takes::Strings => drop(registry.get_type::<Opaque<false>>(&scalar.name)),
                Takes::AnyJson => drop(registry.get_type::<Opaque<true>>(&scalar.name)),
            }
        }
        let objects = info.types.iter().filter(|defined| !defined.is_scalar());
        for name in objects.map(TypeDefinition::name) {
            if !matches!(name, "Query" | "Mutation" | "Subscription") {
                registry.get_type::<Object>(&Info {
                    name: info.name(name),
                    types: Arc::clone(&info.types),
                    names: Arc::clone(&info.names),
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
