//! The members of introspection's objects.

use super::Node;
use super::builtin::{BuiltinType, DIRECTIVES, Directive, Field, Holds, TYPES};
use crate::definition::{
    ArgumentDefinition, Definitions, FieldDefinition, TypeDefinition, TypeKind,
};

/// An object of introspection.
#[derive(Clone, Copy)]
enum Object<'o> {
    Schema,
    /// A type as it is written: `[Name!]!`.
    Reference(&'o str),
    Defined(&'o TypeDefinition<'o>),
    Builtin(&'static BuiltinType),
    Field(&'o FieldDefinition<'o>),
    BuiltinField(&'static Field),
    Argument(Input<'o>),
    Value(&'static str),
    Directive(&'static Directive),
}

/// An argument: name, type, default, description.
#[derive(Clone, Copy)]
struct Input<'o> {
    name: &'o str,
    r#type: &'o str,
    default: Option<&'o str>,
    description: Option<&'o str>,
}

const INCLUDE_DEPRECATED: Input<'_> = Input {
    name: "includeDeprecated",
    r#type: "Boolean",
    default: Some("false"),
    description: None,
};

/// Appends the value of `__schema` or `__type`.
pub(crate) fn write(node: &Node, definitions: &Definitions<'_>, out: &mut String) {
    let mut writer = Writer { definitions, out };
    if &*node.name == "__schema" {
        return writer.object(Object::Schema, &node.below);
    }
    let name: Option<String> = node
        .argument
        .as_deref()
        .and_then(|text| serde_json::from_str(text).ok());
    match name.and_then(|name| writer.named(&name)) {
        Some(object) => writer.object(object, &node.below),
        None => writer.out.push_str("null"),
    }
}

struct Writer<'o, 's> {
    definitions: &'o Definitions<'s>,
    out: &'o mut String,
}

impl<'o> Writer<'o, '_> {
    /// The type of a name.
    fn named(&self, name: &str) -> Option<Object<'o>> {
        let defined = self.definitions.find(name).map(Object::Defined);
        defined.or_else(|| {
            let mut types = TYPES.iter();
            types
                .find(|builtin| builtin.name == name)
                .map(Object::Builtin)
        })
    }

    fn object(&mut self, object: Object<'_>, below: &[Node]) {
        // A use of a named type shows what the type shows.
        if let Object::Reference(name) = object
            && !name.ends_with(['!', ']'])
        {
            return match self.named(name) {
                Some(object) => self.object(object, below),
                None => self.out.push_str("null"),
            };
        }
        self.out.push('{');
        for (at, node) in below.iter().enumerate() {
            if at > 0 {
                self.out.push(',');
            }
            self.out.push_str(&node.key);
            if &*node.name == "__typename" {
                self.string(Some(type_name(object)));
            } else {
                self.member(object, node);
            }
        }
        self.out.push('}');
    }

    fn member(&mut self, object: Object<'_>, node: &Node) {
        match object {
            Object::Schema => self.schema(node),
            Object::Reference(written) => self.reference(written, node),
            Object::Defined(defined) => self.defined(defined, node),
            Object::Builtin(builtin) => self.builtin(builtin, node),
            Object::Field(field) => self.field(field, node),
            Object::BuiltinField((name, r#type, deprecated)) => match &*node.name {
                "name" => self.string(Some(name)),
                "type" => self.object(Object::Reference(r#type), &node.below),
                "args" => {
                    let arguments = deprecated.then_some(Object::Argument(INCLUDE_DEPRECATED));
                    self.list(arguments, node);
                }
                _ => self.rest(node),
            },
            Object::Argument(input) => match &*node.name {
                "name" => self.string(Some(input.name)),
                "description" => self.string(input.description),
                "type" => self.object(Object::Reference(input.r#type), &node.below),
                "defaultValue" => self.string(input.default),
                _ => self.rest(node),
            },
            Object::Value(name) => match &*node.name {
                "name" => self.string(Some(name)),
                _ => self.rest(node),
            },
            Object::Directive(directive) => self.directive(directive, node),
        }
    }

    fn schema(&mut self, node: &Node) {
        let root = |exists: bool, name: &'static str| exists.then_some(Object::Reference(name));
        match &*node.name {
            "types" => {
                let defined = self.definitions.types.iter().map(Object::Defined);
                self.list(defined.chain(TYPES.iter().map(Object::Builtin)), node);
            }
            "queryType" => self.maybe(root(true, "Query"), node),
            "mutationType" => self.maybe(root(self.definitions.mutation, "Mutation"), node),
            "subscriptionType" => {
                self.maybe(root(self.definitions.subscription, "Subscription"), node);
            }
            "directives" => self.list(DIRECTIVES.iter().map(Object::Directive), node),
            _ => self.rest(node),
        }
    }

    /// A list, or a type that is never null.
    fn reference(&mut self, written: &str, node: &Node) {
        let (kind, of) = match written.strip_suffix('!') {
            Some(of) => ("NON_NULL", of),
            None => (
                "LIST",
                written.trim_start_matches('[').trim_end_matches(']'),
            ),
        };
        match &*node.name {
            "kind" => self.string(Some(kind)),
            "ofType" => self.object(Object::Reference(of), &node.below),
            _ => self.rest(node),
        }
    }

    fn defined(&mut self, defined: &TypeDefinition<'_>, node: &Node) {
        let fields = match &defined.kind {
            TypeKind::Object(fields) => Some(fields),
            TypeKind::Scalar(_) => None,
        };
        match (&*node.name, fields) {
            ("kind", Some(_)) => self.string(Some("OBJECT")),
            ("kind", None) => self.string(Some("SCALAR")),
            ("name", _) => self.string(Some(&defined.name)),
            ("description", _) => self.string(defined.description.as_deref()),
            ("fields", Some(fields)) => self.list(fields.iter().map(Object::Field), node),
            ("interfaces", Some(_)) => self.out.push_str("[]"),
            _ => self.rest(node),
        }
    }

    fn builtin(&mut self, builtin: &'static BuiltinType, node: &Node) {
        match (&*node.name, &builtin.holds) {
            ("kind", Holds::Fields(_)) => self.string(Some("OBJECT")),
            ("kind", Holds::Values(_)) => self.string(Some("ENUM")),
            ("name", _) => self.string(Some(builtin.name)),
            ("description", _) => self.string(Some(builtin.description)),
            ("fields", Holds::Fields(fields)) => {
                self.list(fields.iter().map(Object::BuiltinField), node);
            }
            ("interfaces", Holds::Fields(_)) => self.out.push_str("[]"),
            ("enumValues", Holds::Values(values)) => {
                self.list(values.iter().map(|value| Object::Value(value)), node);
            }
            _ => self.rest(node),
        }
    }

    fn field(&mut self, field: &FieldDefinition<'_>, node: &Node) {
        match &*node.name {
            "name" => self.string(Some(&field.name)),
            "description" => self.string(field.description.as_deref()),
            "args" => self.arguments(field.arguments, node),
            "type" => self.object(Object::Reference(&field.r#type.to_string()), &node.below),
            _ => self.rest(node),
        }
    }

    fn arguments(&mut self, arguments: &[ArgumentDefinition], node: &Node) {
        let types: Vec<_> = arguments
            .iter()
            .map(|argument| argument.r#type.to_string())
            .collect();
        let inputs = arguments.iter().zip(&types).map(|(argument, r#type)| {
            Object::Argument(Input {
                name: argument.name,
                r#type,
                default: None,
                description: Some(argument.description),
            })
        });
        self.list(inputs, node);
    }

    fn directive(&mut self, directive: &'static Directive, node: &Node) {
        let stands_at = |location: &str| directive.locations.contains(&location);
        match &*node.name {
            "name" => self.string(Some(directive.name)),
            "description" => self.string(Some(directive.description)),
            "locations" => {
                let locations = serde_json::to_string(directive.locations);
                self.out.push_str(&locations.unwrap_or_default());
            }
            "args" => {
                let argument = directive
                    .argument
                    .map(|(name, r#type, default, description)| {
                        Object::Argument(Input {
                            name,
                            r#type,
                            default,
                            description: Some(description),
                        })
                    });
                self.list(argument, node);
            }
            "onOperation" => self.boolean(stands_at("QUERY")),
            "onFragment" => self.boolean(stands_at("FRAGMENT_SPREAD")),
            "onField" => self.boolean(stands_at("FIELD")),
            _ => self.rest(node),
        }
    }

    /// Members that say the same everywhere.
    fn rest(&mut self, node: &Node) {
        match &*node.name {
            "isDeprecated" | "isRepeatable" => self.boolean(false),
            _ => self.out.push_str("null"),
        }
    }

    fn list<'l>(&mut self, objects: impl IntoIterator<Item = Object<'l>>, node: &Node) {
        self.out.push('[');
        for (at, object) in objects.into_iter().enumerate() {
            if at > 0 {
                self.out.push(',');
            }
            self.object(object, &node.below);
        }
        self.out.push(']');
    }

    fn maybe(&mut self, object: Option<Object<'_>>, node: &Node) {
        match object {
            Some(object) => self.object(object, &node.below),
            None => self.out.push_str("null"),
        }
    }

    fn boolean(&mut self, value: bool) {
        self.out.push_str(if value { "true" } else { "false" });
    }

    fn string(&mut self, text: Option<&str>) {
        let Some(text) = text else {
            return self.out.push_str("null");
        };
        // Names need no escape, and most texts are names.
        if text
            .bytes()
            .all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\')
        {
            self.out.push('"');
            self.out.push_str(text);
            self.out.push('"');
        } else {
            self.out
                .push_str(&serde_json::Value::from(text).to_string());
        }
    }
}

fn type_name(object: Object<'_>) -> &'static str {
    match object {
        Object::Schema => "__Schema",
        Object::Reference(_) | Object::Defined(_) | Object::Builtin(_) => "__Type",
        Object::Field(_) | Object::BuiltinField(_) => "__Field",
        Object::Argument(_) => "__InputValue",
        Object::Value(_) => "__EnumValue",
        Object::Directive(_) => "__Directive",
    }
}
