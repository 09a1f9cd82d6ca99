//! The named types of a schema. Only their names are stored. Their definitions are generated
//! whenever they are read.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use tidegate_catalog::model::{RelationId, Schema};

use super::OperationKind;
use super::aggregate::{self, AGGREGATE_FUNCTIONS};
use super::{FieldDefinition, FieldIter, Roots, describe_relation, table, value};
use crate::field_type::{SCALARS, ScalarInput, ScalarType, VALUE_OBJECTS, ValueObject};

/// All named types of a schema, sorted by name.
pub(crate) struct Types {
    schema: Arc<Schema>,
    roots: Roots,
    entries: Box<[TypeEntry]>,
}

struct TypeEntry {
    name: Box<str>,
    source: TypeSource,
}

/// The source from which a type is generated.
#[derive(Clone, Copy)]
enum TypeSource {
    Scalar(&'static ScalarType),
    /// An object type for the values of columns, such as `Point`.
    Value(&'static ValueObject),
    /// The type of a relation's rows.
    Relation(RelationId),
    /// The type of groups of a relation's rows.
    Group(RelationId),
    /// The type of the results of an aggregate function over a relation's columns. The number is
    /// the function's index in [`AGGREGATE_FUNCTIONS`].
    Function(RelationId, usize),
    /// A root type, such as `Query`.
    Operation(OperationKind),
}

/// A named type, whose definition is generated when it is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TypeDefinition<'s> {
    types: &'s Types,
    at: usize,
}

impl Types {
    /// The types of a schema. If `feed` is false, there is no type `Subscription`.
    pub(crate) fn of(schema: Arc<Schema>, feed: bool) -> Self {
        let roots = Roots::of(&schema, feed);
        let mut entries = Vec::new();
        let mut add = |name: &str, source| {
            let name = name.into();
            entries.push(TypeEntry { name, source });
        };
        for scalar in &SCALARS {
            add(scalar.name, TypeSource::Scalar(scalar));
        }
        for object in VALUE_OBJECTS {
            add(object.name, TypeSource::Value(object));
        }
        for (id, relation) in schema.relations() {
            add(&relation.type_name, TypeSource::Relation(id));
            if !relation.rights.select {
                continue;
            }
            add(aggregate::aggregate_type(relation), TypeSource::Group(id));
            for at in 0..AGGREGATE_FUNCTIONS.len() {
                if aggregate::takes_any(relation, at) {
                    let name = aggregate::function_type(relation, at);
                    add(name, TypeSource::Function(id, at));
                }
            }
        }
        for kind in [
            OperationKind::Query,
            OperationKind::Mutation,
            OperationKind::Subscription,
        ] {
            if roots.has(kind) {
                add(kind.type_name(), TypeSource::Operation(kind));
            }
        }
        entries.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Self {
            schema,
            roots,
            entries: entries.into(),
        }
    }

    /// The schema of the catalog from which the types are generated.
    pub(crate) fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    pub(crate) fn roots(&self) -> &Roots {
        &self.roots
    }

    /// All types, sorted by name.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = TypeDefinition<'_>> + Send + Clone {
        (0..self.entries.len()).map(|at| TypeDefinition { types: self, at })
    }

    pub(crate) fn find(&self, name: &str) -> Option<TypeDefinition<'_>> {
        let known = |entry: &TypeEntry| (*entry.name).cmp(name);
        let at = self.entries.binary_search_by(known).ok()?;
        Some(TypeDefinition { types: self, at })
    }

    /// The root type of a kind of operation; `None` if the schema has no fields for that kind.
    pub(crate) fn operation(&self, kind: OperationKind) -> Option<TypeDefinition<'_>> {
        self.find(kind.type_name()).filter(|_| self.roots.has(kind))
    }
}

impl fmt::Debug for Types {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Types")
            .field("number", &self.entries.len())
            .finish_non_exhaustive()
    }
}

impl<'s> TypeDefinition<'s> {
    fn entry(self) -> &'s TypeEntry {
        &self.types.entries[self.at]
    }

    pub(crate) fn name(self) -> &'s str {
        &self.entry().name
    }

    pub(crate) fn description(self) -> Option<Cow<'s, str>> {
        let relation = |id| self.types.schema.relation(id);
        match self.entry().source {
            TypeSource::Scalar(scalar) => Some(scalar.description.into()),
            TypeSource::Value(object) => Some(object.description.into()),
            TypeSource::Relation(id) => describe_relation(relation(id)),
            TypeSource::Group(id) => Some(aggregate::describe_group(relation(id)).into()),
            TypeSource::Function(..) => None,
            TypeSource::Operation(kind) => Some(Cow::Borrowed(match kind {
                OperationKind::Query => "Reads, all in one snapshot.",
                OperationKind::Mutation => "Writes, in their order and in one transaction.",
                OperationKind::Subscription => "Changes as they are committed.",
            })),
        }
    }

    /// Whether the type is a built-in scalar of GraphQL.
    pub(crate) fn is_standard(self) -> bool {
        matches!(self.entry().source, TypeSource::Scalar(scalar) if scalar.input == ScalarInput::Standard)
    }

    /// The URL of a scalar type's specification; `None` if no URL is known, and for an object type.
    pub(crate) fn specified_by(self) -> Option<&'static str> {
        match self.entry().source {
            TypeSource::Scalar(scalar) => scalar.specified_by,
            _ => None,
        }
    }

    /// Whether the type is a scalar. All other types are objects.
    pub(crate) fn is_scalar(self) -> bool {
        matches!(self.entry().source, TypeSource::Scalar(..))
    }

    /// The fields of the type whose names are in `names`.
    pub(crate) fn fields_named(self, names: &HashSet<&str>) -> Vec<FieldDefinition<'s>> {
        if let TypeSource::Operation(kind) = self.entry().source {
            let roots = &self.types.roots;
            return roots.fields_named(kind, &self.types.schema, names);
        }
        let fields = self.fields();
        fields
            .filter(|field| names.contains(&*field.name))
            .collect()
    }

    /// The fields of the type. A scalar has none, an object has at least one.
    pub(crate) fn fields(self) -> FieldIter<'s> {
        let schema = &*self.types.schema;
        match self.entry().source {
            TypeSource::Scalar(..) => Box::new(std::iter::empty()),
            TypeSource::Value(object) => value::fields(object),
            TypeSource::Relation(id) => table::fields(schema, schema.relation(id)),
            TypeSource::Group(id) => aggregate::group_fields(schema.relation(id)),
            TypeSource::Function(id, at) => aggregate::function_fields(schema.relation(id), at),
            TypeSource::Operation(kind) => self.types.roots.fields(kind, schema),
        }
    }
}
