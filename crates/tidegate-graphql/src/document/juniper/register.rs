//! Registers with juniper the part of the API's schema that a document refers to. The other parts
//! do not affect the document's validity, and registering thousands of tables is slow. Every type
//! is registered separately and refers to other types by name. Therefore a chain of foreign keys
//! does not cause a deep recursion.

use std::collections::{BTreeMap, HashSet};

use juniper::{
    FromInputValue, GraphQLType, GraphQLValue, InputValue, ParseScalarValue, Registry, SchemaType,
    Type, arcstr, meta, parser::ScalarToken,
};

use super::Scalar;
use super::mention::Mentioned;
use crate::definition::{ArgumentDefinition, FieldDefinition, OperationKind, TypeReference, Types};
use crate::field_type::{SCALARS, ScalarInput};

/// Registers the types that a document can reach, with the fields whose names occur in the
/// document.
pub(super) fn schema(types: &Types, mentioned: &Mentioned<'_>) -> SchemaType<Scalar> {
    let mut names = InternedNames::default();
    let mut objects = reach(types, mentioned, &mut names);
    let mut operation = |kind: OperationKind| {
        let name = match types.operation(kind) {
            Some(r#type) => r#type.name().to_owned(),
            None => format!("_Empty{}", kind.type_name()),
        };
        let fields = objects.remove(name.as_str()).unwrap_or_default();
        Info::new(name.into(), fields)
    };
    let mut query = operation(OperationKind::Query);
    let mutation = operation(OperationKind::Mutation);
    let subscription = operation(OperationKind::Subscription);
    let others = objects.into_iter();
    query.others = others
        .map(|(name, fields)| Info::new(names.get(name), fields))
        .collect();
    SchemaType::new::<Query, Object, Object>(&query, &mutation, &subscription)
}

/// The object types that a document can reach, with their fields. The search starts at the root
/// types and at the types of type conditions, and follows the fields whose names occur in the
/// document.
fn reach<'s>(
    types: &'s Types,
    mentioned: &Mentioned<'_>,
    names: &mut InternedNames,
) -> BTreeMap<&'s str, Vec<meta::Field<Scalar>>> {
    let mut reached = BTreeMap::new();
    let roots = ["Query", "Mutation", "Subscription"];
    let first = mentioned.types.iter().copied().chain(roots);
    let mut next: Vec<_> = first.filter_map(|name| types.find(name)).collect();
    while let Some(r#type) = next.pop() {
        if r#type.is_scalar() || reached.contains_key(r#type.name()) {
            continue;
        }
        let fields = r#type.fields_named(&mentioned.fields);
        next.extend(
            fields
                .iter()
                .filter_map(|field| types.find(&field.r#type.name)),
        );
        let fields = fields.iter().map(|field| names.field(field));
        reached.insert(r#type.name(), fields.collect());
    }
    reached
}

/// Interned names. Equal names share one allocation.
#[derive(Default)]
struct InternedNames(HashSet<arcstr::ArcStr>);

impl InternedNames {
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
            // Introspection is generated from the definitions and not by juniper, so descriptions
            // are not registered.
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

/// The type information that juniper passes to an object type.
struct Info {
    name: arcstr::ArcStr,
    fields: Vec<meta::Field<Scalar>>,
    /// The types that this type registers. For the root type `Query` these are all object types
    /// that are not root types; for every other type the list is empty.
    others: Vec<Info>,
}

impl Info {
    fn new(name: arcstr::ArcStr, fields: Vec<meta::Field<Scalar>>) -> Self {
        Self {
            name,
            fields,
            others: Vec::new(),
        }
    }
}

/// The juniper type of every registered object type except `Query`.
struct Object;

impl GraphQLType<Scalar> for Object {
    fn name(info: &Info) -> Option<arcstr::ArcStr> {
        Some(info.name.clone())
    }

    fn meta(info: &Info, registry: &mut Registry<Scalar>) -> meta::MetaType<Scalar> {
        registry
            .build_object_type::<Self>(info, &info.fields)
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

/// The root type `Query`, which juniper registers first. Its registration also registers the
/// scalars, and all object types that are not root types.
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
            match scalar.input {
                ScalarInput::Standard => {}
                ScalarInput::Strings => drop(registry.get_type::<Opaque<false>>(&scalar.name)),
                ScalarInput::AnyJson => drop(registry.get_type::<Opaque<true>>(&scalar.name)),
            }
        }
        for other in &info.others {
            registry.get_type::<Object>(other);
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

/// A custom scalar, or `ID`. It accepts strings and, if `ANY` is true, every other scalar.
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tidegate_catalog::Schema;

    use super::*;

    #[test]
    fn only_types_that_a_document_reaches_are_registered() {
        let tables: Vec<_> = (0..100)
            .map(|number| {
                format!(
                    r#"{{"name":"t{number}","kind":"table","rights":"s","columns":[
                        {{"name":"id","type":"int4"}},{{"name":"up","type":"int4"}}],
                       "constraints":[{{"name":"pk{number}","kind":"primary","columns":["id"]}},
                        {{"name":"up{number}","kind":"foreign","columns":["up"],"references":
                          {{"relation":"t{}","columns":["id"]}}}}]}}"#,
                    (number + 1) % 100
                )
            })
            .collect();
        let document = format!(r#"{{"name":"s","relations":[{}]}}"#, tables.join(","));
        let types = Types::of(Arc::new(Schema::parse(&document).unwrap()), false);
        let mentioned = Mentioned {
            fields: ["getT1", "id", "t2", "nothing"].into(),
            types: ["T7", "Nothing"].into(),
        };
        let schema = schema(&types, &mentioned);
        let fields = |name: &str| {
            let fields = ["getT1", "getT2", "id", "up", "t2", "t3"].into_iter();
            let r#type = schema.concrete_type_by_name(name)?;
            let known = fields.filter(|field| r#type.field_by_name(field).is_some());
            Some(known.collect::<Vec<_>>())
        };
        assert_eq!(fields("Query"), Some(vec!["getT1"]));
        assert_eq!(fields("T1"), Some(vec!["id", "t2"]));
        assert_eq!(fields("T2"), Some(vec!["id"]));
        assert_eq!(fields("T7"), Some(vec!["id"]));
        assert_eq!(fields("T3"), None);
    }
}
