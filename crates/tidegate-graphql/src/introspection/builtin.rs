//! The built-in types of introspection, such as `__Type`, and the directives.

/// A field of a [`BuiltinType`]: its name, its type, and whether it has the argument
/// `includeDeprecated`.
pub(super) type Field = (&'static str, &'static str, bool);

/// A built-in type of introspection.
pub(super) struct BuiltinType {
    pub name: &'static str,
    pub description: &'static str,
    pub content: BuiltinContent,
}

/// The content of a [`BuiltinType`].
pub(super) enum BuiltinContent {
    Fields(&'static [Field]),
    Values(&'static [&'static str]),
}

/// All built-in types of introspection, sorted by name (GraphQL, section 4.2).
pub(super) static TYPES: [BuiltinType; 8] = [
    BuiltinType {
        name: "__Directive",
        description: "A directive.",
        content: BuiltinContent::Fields(&[
            ("name", "String!", false),
            ("description", "String", false),
            ("isRepeatable", "Boolean!", false),
            ("locations", "[__DirectiveLocation!]!", false),
            ("args", "[__InputValue!]!", true),
        ]),
    },
    BuiltinType {
        name: "__DirectiveLocation",
        description: "Where a directive may stand.",
        content: BuiltinContent::Values(&[
            "QUERY",
            "MUTATION",
            "SUBSCRIPTION",
            "FIELD",
            "FRAGMENT_DEFINITION",
            "FRAGMENT_SPREAD",
            "INLINE_FRAGMENT",
            "VARIABLE_DEFINITION",
            "SCHEMA",
            "SCALAR",
            "OBJECT",
            "FIELD_DEFINITION",
            "ARGUMENT_DEFINITION",
            "INTERFACE",
            "UNION",
            "ENUM",
            "ENUM_VALUE",
            "INPUT_OBJECT",
            "INPUT_FIELD_DEFINITION",
        ]),
    },
    BuiltinType {
        name: "__EnumValue",
        description: "A value of an enum.",
        content: BuiltinContent::Fields(&[
            ("name", "String!", false),
            ("description", "String", false),
            ("isDeprecated", "Boolean!", false),
            ("deprecationReason", "String", false),
        ]),
    },
    BuiltinType {
        name: "__Field",
        description: "A field of an object.",
        content: BuiltinContent::Fields(&[
            ("name", "String!", false),
            ("description", "String", false),
            ("args", "[__InputValue!]!", true),
            ("type", "__Type!", false),
            ("isDeprecated", "Boolean!", false),
            ("deprecationReason", "String", false),
        ]),
    },
    BuiltinType {
        name: "__InputValue",
        description: "An argument.",
        content: BuiltinContent::Fields(&[
            ("name", "String!", false),
            ("description", "String", false),
            ("type", "__Type!", false),
            ("defaultValue", "String", false),
            ("isDeprecated", "Boolean!", false),
            ("deprecationReason", "String", false),
        ]),
    },
    BuiltinType {
        name: "__Schema",
        description: "The schema.",
        content: BuiltinContent::Fields(&[
            ("description", "String", false),
            ("types", "[__Type!]!", false),
            ("queryType", "__Type!", false),
            ("mutationType", "__Type", false),
            ("subscriptionType", "__Type", false),
            ("directives", "[__Directive!]!", false),
        ]),
    },
    BuiltinType {
        name: "__Type",
        description: "A type.",
        content: BuiltinContent::Fields(&[
            ("kind", "__TypeKind!", false),
            ("name", "String", false),
            ("description", "String", false),
            ("specifiedByURL", "String", false),
            ("fields", "[__Field!]", true),
            ("interfaces", "[__Type!]", false),
            ("possibleTypes", "[__Type!]", false),
            ("enumValues", "[__EnumValue!]", true),
            ("inputFields", "[__InputValue!]", true),
            ("ofType", "__Type", false),
            ("isOneOf", "Boolean", false),
        ]),
    },
    BuiltinType {
        name: "__TypeKind",
        description: "What a type is.",
        content: BuiltinContent::Values(&[
            "SCALAR",
            "OBJECT",
            "INTERFACE",
            "UNION",
            "ENUM",
            "INPUT_OBJECT",
            "LIST",
            "NON_NULL",
        ]),
    },
];

/// A directive of the API.
pub(super) struct Directive {
    pub name: &'static str,
    pub description: &'static str,
    pub locations: &'static [&'static str],
    /// The argument of the directive: its name, type, default and description.
    pub argument: Option<(
        &'static str,
        &'static str,
        Option<&'static str>,
        &'static str,
    )>,
}

const EXECUTABLE: &[&str] = &["FIELD", "FRAGMENT_SPREAD", "INLINE_FRAGMENT"];

/// All directives (GraphQL, section 3.13).
pub(super) static DIRECTIVES: [Directive; 5] = [
    Directive {
        name: "deprecated",
        description: "Marks what should not be used any more.",
        locations: &[
            "FIELD_DEFINITION",
            "ARGUMENT_DEFINITION",
            "INPUT_FIELD_DEFINITION",
            "ENUM_VALUE",
        ],
        argument: Some((
            "reason",
            "String",
            Some("\"No longer supported\""),
            "Why, and what to use instead.",
        )),
    },
    Directive {
        name: "include",
        description: "Counts the field or fragment only when `if` is true.",
        locations: EXECUTABLE,
        argument: Some(("if", "Boolean!", None, "Whether it counts.")),
    },
    Directive {
        name: "oneOf",
        description: "Marks an input object of which exactly one field is given.",
        locations: &["INPUT_OBJECT"],
        argument: None,
    },
    Directive {
        name: "skip",
        description: "Leaves the field or fragment out when `if` is true.",
        locations: EXECUTABLE,
        argument: Some(("if", "Boolean!", None, "Whether it is left out.")),
    },
    Directive {
        name: "specifiedBy",
        description: "Says where a scalar is specified.",
        locations: &["SCALAR"],
        argument: Some(("url", "String!", None, "The address of the specification.")),
    },
];
