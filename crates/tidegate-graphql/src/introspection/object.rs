//! The members of introspection's objects.

use super::Node;
use super::builtin::{BuiltinType, DIRECTIVES, Directive, Field, Holds, TYPES};
use super::json;
use crate::definition::{
    ArgumentDefinition, FieldDefinition, TypeDefinition, TypeReference, Types,
};
use crate::document::OperationKind;

/// An object of introspection.
pub(super) enum Object<'o> {
    Schema,
    /// A type as it is used: `[Name!]!`.
    Reference(TypeReference<'o>),
    Defined(TypeDefinition<'o>),
    Builtin(&'static BuiltinType),
    Field(FieldDefinition<'o>),
    BuiltinField(&'static Field),
    Argument(Input),
    Value(&'static str),
    Directive(&'static Directive),
}

/// An argument.
pub(super) struct Input {
    name: &'static str,
    r#type: TypeReference<'static>,
    default: Option<&'static str>,
    description: Option<&'static str>,
}

/// Objects, made one after the other.
pub(super) type Objects<'o> = Box<dyn Iterator<Item = Object<'o>> + Send + 'o>;

/// What a member holds.
pub(super) enum Member<'o> {
    /// A text, a number of them or null, which has been written.
    Written,
    Object(Object<'o>),
    List(Objects<'o>),
}

impl<'o> Object<'o> {
    /// The schema or a type, as a root field asks for it; `None` for a type that is not there.
    pub(super) fn root(node: &Node, types: &'o Types) -> Option<Self> {
        if &*node.name == "__schema" {
            return Some(Self::Schema);
        }
        let name: String = serde_json::from_str(node.argument.as_deref()?).ok()?;
        Self::named(&name, types)
    }

    /// The type of a name.
    fn named(name: &str, types: &'o Types) -> Option<Self> {
        types.find(name).map(Self::Defined).or_else(|| {
            let mut builtin = TYPES.iter();
            builtin
                .find(|builtin| builtin.name == name)
                .map(Self::Builtin)
        })
    }

    /// A use of a type; that of a named type shows what the type shows.
    fn reference(of: TypeReference<'o>, types: &'o Types) -> Option<Self> {
        if of.list || of.not_null {
            return Some(Self::Reference(of));
        }
        Self::named(&of.name, types)
    }

    /// Appends a member that is a text, or tells what is in it.
    pub(super) fn member(&self, node: &Node, types: &'o Types, out: &mut String) -> Member<'o> {
        if &*node.name == "__typename" {
            return json::text(Some(self.type_name()), out);
        }
        match self {
            Self::Schema => schema(node, types, out),
            Self::Reference(of) => wrapper(of, node, types, out),
            Self::Defined(defined) => self::defined(*defined, node, out),
            Self::Builtin(builtin) => self::builtin(builtin, node, out),
            Self::Field(field) => self::field(field, node, types, out),
            Self::BuiltinField((name, r#type, deprecated)) => match &*node.name {
                "name" => json::text(Some(name), out),
                "type" => one(Self::reference(written(r#type), types), out),
                "args" => list(deprecated.then(include_deprecated).map(Self::Argument)),
                _ => rest(node, out),
            },
            Self::Argument(input) => match &*node.name {
                "name" => json::text(Some(input.name), out),
                "description" => json::text(input.description, out),
                "type" => one(Self::reference(input.r#type.clone(), types), out),
                "defaultValue" => json::text(input.default, out),
                _ => rest(node, out),
            },
            Self::Value(name) => match &*node.name {
                "name" => json::text(Some(name), out),
                _ => rest(node, out),
            },
            Self::Directive(directive) => self::directive(directive, node, out),
        }
    }

    fn type_name(&self) -> &'static str {
        match self {
            Self::Schema => "__Schema",
            Self::Reference(_) | Self::Defined(_) | Self::Builtin(_) => "__Type",
            Self::Field(_) | Self::BuiltinField(_) => "__Field",
            Self::Argument(_) => "__InputValue",
            Self::Value(_) => "__EnumValue",
            Self::Directive(_) => "__Directive",
        }
    }
}

fn schema<'o>(node: &Node, types: &'o Types, out: &mut String) -> Member<'o> {
    let operation = |kind| types.operation(kind).map(Object::Defined);
    match &*node.name {
        "types" => {
            let defined = types.iter().map(Object::Defined);
            list(defined.chain(TYPES.iter().map(Object::Builtin)))
        }
        "queryType" => one(operation(OperationKind::Query), out),
        "mutationType" => one(operation(OperationKind::Mutation), out),
        "subscriptionType" => one(operation(OperationKind::Subscription), out),
        "directives" => list(DIRECTIVES.iter().map(Object::Directive)),
        _ => rest(node, out),
    }
}

/// A list, or a type that is never null.
fn wrapper<'o>(
    of: &TypeReference<'o>,
    node: &Node,
    types: &'o Types,
    out: &mut String,
) -> Member<'o> {
    match &*node.name {
        "kind" => json::text(Some(if of.not_null { "NON_NULL" } else { "LIST" }), out),
        "ofType" => one(Object::reference(of.clone().unwrapped(), types), out),
        _ => rest(node, out),
    }
}

fn defined<'o>(defined: TypeDefinition<'o>, node: &Node, out: &mut String) -> Member<'o> {
    let is_scalar = defined.is_scalar();
    match &*node.name {
        "kind" => json::text(Some(if is_scalar { "SCALAR" } else { "OBJECT" }), out),
        "name" => json::text(Some(defined.name()), out),
        "description" => json::text(defined.description().as_deref(), out),
        "specifiedByURL" => json::text(defined.specified_by(), out),
        "fields" if !is_scalar => list(defined.fields().map(Object::Field)),
        "interfaces" if !is_scalar => list(None),
        _ => rest(node, out),
    }
}

fn builtin<'o>(builtin: &'static BuiltinType, node: &Node, out: &mut String) -> Member<'o> {
    match (&*node.name, &builtin.holds) {
        ("kind", Holds::Fields(_)) => json::text(Some("OBJECT"), out),
        ("kind", Holds::Values(_)) => json::text(Some("ENUM"), out),
        ("name", _) => json::text(Some(builtin.name), out),
        ("description", _) => json::text(Some(builtin.description), out),
        ("fields", Holds::Fields(fields)) => list(fields.iter().map(Object::BuiltinField)),
        ("interfaces", Holds::Fields(_)) => list(None),
        ("enumValues", Holds::Values(values)) => list(values.iter().copied().map(Object::Value)),
        _ => rest(node, out),
    }
}

fn field<'o>(
    field: &FieldDefinition<'o>,
    node: &Node,
    types: &'o Types,
    out: &mut String,
) -> Member<'o> {
    match &*node.name {
        "name" => json::text(Some(&field.name), out),
        "description" => json::text(field.description.as_deref(), out),
        "args" => list(field.arguments.iter().map(argument)),
        "type" => one(Object::reference(field.r#type.clone(), types), out),
        _ => rest(node, out),
    }
}

fn argument<'o>(definition: &'static ArgumentDefinition) -> Object<'o> {
    Object::Argument(Input {
        name: definition.name,
        r#type: definition.r#type.clone(),
        default: None,
        description: Some(definition.description),
    })
}

fn include_deprecated() -> Input {
    Input {
        name: "includeDeprecated",
        r#type: TypeReference::nullable("Boolean"),
        default: Some("false"),
        description: None,
    }
}

fn directive<'o>(directive: &'static Directive, node: &Node, out: &mut String) -> Member<'o> {
    let stands_at = |location: &str| directive.locations.contains(&location);
    match &*node.name {
        "name" => json::text(Some(directive.name), out),
        "description" => json::text(Some(directive.description), out),
        "locations" => {
            json::texts(directive.locations, out);
            Member::Written
        }
        "args" => {
            let argument = directive.argument.as_ref();
            list(argument.map(|(name, r#type, default, description)| {
                Object::Argument(Input {
                    name,
                    r#type: written(r#type),
                    default: *default,
                    description: Some(description),
                })
            }))
        }
        "onOperation" => json::boolean(stands_at("QUERY"), out),
        "onFragment" => json::boolean(stands_at("FRAGMENT_SPREAD"), out),
        "onField" => json::boolean(stands_at("FIELD"), out),
        _ => rest(node, out),
    }
}

/// Members that say the same everywhere.
fn rest<'o>(node: &Node, out: &mut String) -> Member<'o> {
    match &*node.name {
        "isDeprecated" | "isRepeatable" => json::boolean(false, out),
        _ => json::text(None, out),
    }
}

/// Reads a type as it is written.
fn written(text: &'static str) -> TypeReference<'static> {
    let nullable = text.strip_suffix('!');
    let list = nullable.unwrap_or(text).strip_prefix('[');
    let element = list.map(|list| list.trim_end_matches(']'));
    let named = element.or(nullable).unwrap_or(text);
    TypeReference {
        list: element.is_some(),
        elements_not_null: element.is_some_and(|element| element.ends_with('!')),
        not_null: nullable.is_some(),
        ..TypeReference::nullable(named.trim_end_matches('!'))
    }
}

fn list<'o, I>(objects: I) -> Member<'o>
where
    I: IntoIterator<Item = Object<'o>>,
    I::IntoIter: Send + 'o,
{
    Member::List(Box::new(objects.into_iter()))
}

fn one<'o>(object: Option<Object<'o>>, out: &mut String) -> Member<'o> {
    object.map_or_else(|| json::text(None, out), Member::Object)
}
