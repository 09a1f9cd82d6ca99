//! The members of introspection objects.

use super::IntrospectionNode;
use super::builtin::{BuiltinContent, BuiltinType, DIRECTIVES, Directive, Field, TYPES};
use crate::definition::{
    ArgumentDefinition, FieldDefinition, OperationKind, TypeDefinition, TypeReference, Types,
};

/// An object in the result of an introspection.
pub(super) enum Object<'o> {
    Schema,
    /// A type reference with a wrapper, such as `[Name!]!`.
    Reference(TypeReference<'o>),
    Defined(TypeDefinition<'o>),
    Builtin(&'static BuiltinType),
    Field(FieldDefinition<'o>),
    BuiltinField(&'static Field),
    Argument(Input),
    Value(&'static str),
    Directive(&'static Directive),
}

/// An argument of a field or directive.
pub(super) struct Input {
    name: &'static str,
    r#type: TypeReference<'static>,
    default: Option<&'static str>,
    description: Option<&'static str>,
}

/// A list of objects, which are generated one by one.
pub(super) type Objects<'o> = Box<dyn Iterator<Item = Object<'o>> + Send + 'o>;

/// The content of a member of an introspection object.
pub(super) enum MemberContent<'o> {
    /// The member has no selection, and has been written already.
    Written,
    Object(Object<'o>),
    List(Objects<'o>),
}

impl<'o> Object<'o> {
    /// The object that `__schema` or `__type` returns; `None` for an unknown type.
    pub(super) fn root(node: &IntrospectionNode, types: &'o Types) -> Option<Self> {
        if &*node.name == "__schema" {
            return Some(Self::Schema);
        }
        let name: String = serde_json::from_str(node.argument.as_deref()?).ok()?;
        Self::named(&name, types)
    }

    /// The object for the type with this name; `None` for an unknown type.
    fn named(name: &str, types: &'o Types) -> Option<Self> {
        types.find(name).map(Self::Defined).or_else(|| {
            let mut builtin = TYPES.iter();
            builtin
                .find(|builtin| builtin.name == name)
                .map(Self::Builtin)
        })
    }

    /// The object for a type reference. If the reference has no list and no `!`, this is the object
    /// for the named type.
    fn reference(of: TypeReference<'o>, types: &'o Types) -> Option<Self> {
        if of.list || of.not_null {
            return Some(Self::Reference(of));
        }
        Self::named(&of.name, types)
    }

    /// Appends the value of a member if it is null, a scalar or a list of scalars. Otherwise
    /// returns the objects that the member contains, and appends nothing.
    pub(super) fn member(
        &self,
        node: &IntrospectionNode,
        types: &'o Types,
        out: &mut String,
    ) -> MemberContent<'o> {
        if &*node.name == "__typename" {
            return text(Some(self.type_name()), out);
        }
        match self {
            Self::Schema => schema(node, types, out),
            Self::Reference(of) => wrapper(of, node, types, out),
            Self::Defined(defined) => self::defined(*defined, node, out),
            Self::Builtin(builtin) => self::builtin(builtin, node, out),
            Self::Field(field) => self::field(field, node, types, out),
            Self::BuiltinField((name, r#type, deprecated)) => match &*node.name {
                "name" => text(Some(name), out),
                "type" => one(Self::reference(written(r#type), types), out),
                "args" => list(deprecated.then(include_deprecated).map(Self::Argument)),
                _ => rest(node, out),
            },
            Self::Argument(input) => match &*node.name {
                "name" => text(Some(input.name), out),
                "description" => text(input.description, out),
                "type" => one(Self::reference(input.r#type.clone(), types), out),
                "defaultValue" => text(input.default, out),
                _ => rest(node, out),
            },
            Self::Value(name) => match &*node.name {
                "name" => text(Some(name), out),
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

fn schema<'o>(node: &IntrospectionNode, types: &'o Types, out: &mut String) -> MemberContent<'o> {
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

/// Does the same as [`Object::member`], for a list type or a non-null type.
fn wrapper<'o>(
    of: &TypeReference<'o>,
    node: &IntrospectionNode,
    types: &'o Types,
    out: &mut String,
) -> MemberContent<'o> {
    match &*node.name {
        "kind" => text(Some(if of.not_null { "NON_NULL" } else { "LIST" }), out),
        "ofType" => one(Object::reference(of.clone().unwrapped(), types), out),
        _ => rest(node, out),
    }
}

fn defined<'o>(
    defined: TypeDefinition<'o>,
    node: &IntrospectionNode,
    out: &mut String,
) -> MemberContent<'o> {
    let is_scalar = defined.is_scalar();
    match &*node.name {
        "kind" => text(Some(if is_scalar { "SCALAR" } else { "OBJECT" }), out),
        "name" => text(Some(defined.name()), out),
        "description" => text(defined.description().as_deref(), out),
        "specifiedByURL" => text(defined.specified_by(), out),
        "fields" if !is_scalar => list(defined.fields().map(Object::Field)),
        "interfaces" if !is_scalar => list(None),
        _ => rest(node, out),
    }
}

fn builtin<'o>(
    builtin: &'static BuiltinType,
    node: &IntrospectionNode,
    out: &mut String,
) -> MemberContent<'o> {
    match (&*node.name, &builtin.content) {
        ("kind", BuiltinContent::Fields(_)) => text(Some("OBJECT"), out),
        ("kind", BuiltinContent::Values(_)) => text(Some("ENUM"), out),
        ("name", _) => text(Some(builtin.name), out),
        ("description", _) => text(Some(builtin.description), out),
        ("fields", BuiltinContent::Fields(fields)) => list(fields.iter().map(Object::BuiltinField)),
        ("interfaces", BuiltinContent::Fields(_)) => list(None),
        ("enumValues", BuiltinContent::Values(values)) => {
            list(values.iter().copied().map(Object::Value))
        }
        _ => rest(node, out),
    }
}

fn field<'o>(
    field: &FieldDefinition<'o>,
    node: &IntrospectionNode,
    types: &'o Types,
    out: &mut String,
) -> MemberContent<'o> {
    match &*node.name {
        "name" => text(Some(&field.name), out),
        "description" => text(field.description.as_deref(), out),
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

fn directive<'o>(
    directive: &'static Directive,
    node: &IntrospectionNode,
    out: &mut String,
) -> MemberContent<'o> {
    let stands_at = |location: &str| directive.locations.contains(&location);
    match &*node.name {
        "name" => text(Some(directive.name), out),
        "description" => text(Some(directive.description), out),
        "locations" => {
            texts(directive.locations, out);
            MemberContent::Written
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
        "onOperation" => boolean(stands_at("QUERY"), out),
        "onFragment" => boolean(stands_at("FRAGMENT_SPREAD"), out),
        "onField" => boolean(stands_at("FIELD"), out),
        _ => rest(node, out),
    }
}

/// Appends a member that has the same value in all objects: `false` for some booleans, and null for
/// all other members.
fn rest<'o>(node: &IntrospectionNode, out: &mut String) -> MemberContent<'o> {
    match &*node.name {
        "isDeprecated" | "isRepeatable" => boolean(false, out),
        _ => text(None, out),
    }
}

/// Parses a type reference, such as `[Name!]!`.
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

fn list<'o, I>(objects: I) -> MemberContent<'o>
where
    I: IntoIterator<Item = Object<'o>>,
    I::IntoIter: Send + 'o,
{
    MemberContent::List(Box::new(objects.into_iter()))
}

fn one<'o>(object: Option<Object<'o>>, out: &mut String) -> MemberContent<'o> {
    object.map_or_else(|| text(None, out), MemberContent::Object)
}

/// Appends a string, or null.
fn text<'o>(text: Option<&str>, out: &mut String) -> MemberContent<'o> {
    // Most texts are names, which need no escaping and are appended as they are.
    let plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
    match text {
        None => out.push_str("null"),
        Some(text) if text.bytes().all(plain) => {
            out.push('"');
            out.push_str(text);
            out.push('"');
        }
        Some(text) => out.push_str(&serde_json::Value::from(text).to_string()),
    }
    MemberContent::Written
}

/// Appends a list of strings.
fn texts(texts: &[&str], out: &mut String) {
    out.push_str(&serde_json::Value::from(texts).to_string());
}

/// Appends `true` or `false`.
fn boolean<'o>(value: bool, out: &mut String) -> MemberContent<'o> {
    out.push_str(if value { "true" } else { "false" });
    MemberContent::Written
}
