//! The root fields of a schema: their definitions, and the mapping from their names to relations.

use std::collections::{BTreeMap, HashSet};

use tidegate_catalog::model::{Persistence, Relation, RelationId, RelationKind, Schema};

use super::aggregate::aggregate_type;
use super::table::{LIST, LIST_BY_KEY};
use super::{
    ArgumentDefinition, ChangeKind, FieldDefinition, FieldIter, OperationKind, TypeReference,
    with_placeholder,
};

/// The kind of a root field, and the relation that the field reads, writes or reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    /// The field `get<T>`.
    Get(RelationId),
    /// The field `get<T>Aggregate`.
    Aggregate(RelationId),
    /// The field `insert<T>`.
    Insert(RelationId),
    /// The field `update<T>`.
    Update(RelationId),
    /// The field `delete<T>`.
    Delete(RelationId),
    /// One of the fields `<T>MessageAdded`, `<T>MessageUpdated` and `<T>MessageDeleted`.
    Message(RelationId, ChangeKind),
    /// The only field of a root type that would otherwise have no field.
    Empty,
}

/// The root fields of a schema, sorted by name.
#[derive(Debug, Default)]
pub(crate) struct Roots {
    query: BTreeMap<Box<str>, Root>,
    mutation: BTreeMap<Box<str>, Root>,
    subscription: BTreeMap<Box<str>, Root>,
}

const WHERE: ArgumentDefinition = ArgumentDefinition {
    name: "where",
    r#type: TypeReference::nullable("JSON"),
    description: "Which rows.",
};
const DATA: ArgumentDefinition = ArgumentDefinition {
    name: "data",
    r#type: TypeReference::nullable("JSON"),
    description: "The values of one row, by column.",
};
const ID: ArgumentDefinition = ArgumentDefinition {
    name: "id",
    r#type: TypeReference::nullable("ID"),
    description: "Only the row with this primary key.",
};
static AGGREGATE: &[ArgumentDefinition] = &[
    WHERE,
    ArgumentDefinition {
        name: "groupBy",
        r#type: TypeReference::list_of_required("String"),
        description: "Columns: one group for each set of their values; without them one group of all rows.",
    },
];
static INSERT: &[ArgumentDefinition] = &[
    DATA,
    ArgumentDefinition {
        name: "objects",
        r#type: TypeReference::list("JSON"),
        description: "The values of several rows. A column that one lacks gets its default.",
    },
    ArgumentDefinition {
        name: "onConflict",
        r#type: TypeReference::nullable("JSON"),
        description: "`{constraint: \"name\"}` or `{columns: [\"name\"]}`, and `update: [\"column\"]`: what happens to a row whose key is there already.",
    },
];
static UPDATE: &[ArgumentDefinition] = &[WHERE, DATA];
static UPDATE_BY_KEY: &[ArgumentDefinition] = &[ID, WHERE, DATA];
static DELETE: &[ArgumentDefinition] = &[WHERE];
static DELETE_BY_KEY: &[ArgumentDefinition] = &[ID, WHERE];
static MESSAGE: &[ArgumentDefinition] = &[ArgumentDefinition {
    name: "where",
    r#type: TypeReference::nullable("JSON"),
    description: "Which events: a condition on scalar columns as in queries, or a text such as `price > 10`.",
}];

impl Roots {
    /// The root fields of a schema. If `feed` is false, there are no subscriptions.
    pub(crate) fn of(schema: &Schema, feed: bool) -> Self {
        let mut roots = Self::default();
        for (id, relation) in schema.relations() {
            let name = &relation.type_name;
            if relation.rights.select {
                roots
                    .query
                    .insert(format!("get{name}").into(), Root::Get(id));
                let aggregate = format!("get{}", aggregate_type(relation));
                roots.query.insert(aggregate.into(), Root::Aggregate(id));
            }
            for (verb, root, allowed) in [
                ("insert", Root::Insert(id), relation.rights.insert),
                ("update", Root::Update(id), relation.rights.update),
                ("delete", Root::Delete(id), relation.rights.delete),
            ] {
                if allowed {
                    roots.mutation.insert(format!("{verb}{name}").into(), root);
                }
            }
            if feed && is_followed(relation) {
                for change in ChangeKind::ALL {
                    let field = format!("{name}Message{}", change.suffix());
                    roots
                        .subscription
                        .insert(field.into(), Root::Message(id, change));
                }
            }
        }
        if roots.query.is_empty() {
            roots.query.insert(super::EMPTY.into(), Root::Empty);
        }
        roots
    }

    /// The kind and relation of a field of the type `Query`; `None` for an unknown field.
    pub(crate) fn query(&self, field: &str) -> Option<Root> {
        self.query.get(field).copied()
    }

    /// The kind and relation of a field of the type `Mutation`; `None` for an unknown field.
    pub(crate) fn mutation(&self, field: &str) -> Option<Root> {
        self.mutation.get(field).copied()
    }

    /// The kind and relation of a field of the type `Subscription`; `None` for an unknown field.
    pub(crate) fn subscription(&self, field: &str) -> Option<Root> {
        self.subscription.get(field).copied()
    }

    /// Whether the root type of a kind of operation has any field.
    pub(super) fn has(&self, kind: OperationKind) -> bool {
        !self.kind(kind).is_empty()
    }

    /// The fields of the root type of a kind of operation.
    pub(super) fn fields<'s>(&'s self, kind: OperationKind, schema: &'s Schema) -> FieldIter<'s> {
        let fields = self.kind(kind).iter();
        with_placeholder(fields.filter_map(|(name, root)| field(schema, name, *root)))
    }

    /// Those fields of the root type of `kind` whose names are in `names`.
    pub(super) fn fields_named<'s>(
        &'s self,
        kind: OperationKind,
        schema: &'s Schema,
        names: &HashSet<&str>,
    ) -> Vec<FieldDefinition<'s>> {
        let known = self.kind(kind);
        if known.len() <= names.len() {
            let fields = self.fields(kind, schema);
            return fields
                .filter(|field| names.contains(&*field.name))
                .collect();
        }
        let found = names.iter().filter_map(|name| known.get_key_value(*name));
        let fields = found.filter_map(|(name, root)| field(schema, name, *root));
        fields.collect()
    }

    fn kind(&self, kind: OperationKind) -> &BTreeMap<Box<str>, Root> {
        match kind {
            OperationKind::Query => &self.query,
            OperationKind::Mutation => &self.mutation,
            OperationKind::Subscription => &self.subscription,
        }
    }
}

fn field<'s>(schema: &'s Schema, name: &'s str, root: Root) -> Option<FieldDefinition<'s>> {
    let rows = |id: RelationId| TypeReference::list(&schema.relation(id).type_name);
    let by_key = |id: RelationId| schema.relation(id).single_key().is_some();
    let (arguments, r#type) = match root {
        Root::Get(id) if by_key(id) => (LIST_BY_KEY, rows(id)),
        Root::Get(id) => (LIST, rows(id)),
        Root::Aggregate(id) => {
            let r#type = TypeReference {
                name: aggregate_type(schema.relation(id)).into(),
                ..TypeReference::list("")
            };
            (AGGREGATE, r#type)
        }
        Root::Insert(id) => (INSERT, rows(id)),
        Root::Update(id) if by_key(id) => (UPDATE_BY_KEY, rows(id)),
        Root::Update(id) => (UPDATE, rows(id)),
        Root::Delete(id) if by_key(id) => (DELETE_BY_KEY, rows(id)),
        Root::Delete(id) => (DELETE, rows(id)),
        Root::Message(id, _) => (MESSAGE, rows(id)),
        Root::Empty => return None,
    };
    Some(FieldDefinition {
        name: name.into(),
        description: describe(schema, root).map(Into::into),
        arguments,
        r#type,
    })
}

fn describe(schema: &Schema, root: Root) -> Option<String> {
    let name = |id: RelationId| &schema.relation(id).name;
    Some(match root {
        Root::Get(id) => format!("Rows of {}.", name(id)),
        Root::Aggregate(id) => format!("Counts and sums over rows of {}.", name(id)),
        Root::Insert(id) => format!("Adds rows to {} and returns them.", name(id)),
        Root::Update(id) => format!(
            "Changes the rows of {} that `id` or `where` names, and returns them.",
            name(id)
        ),
        Root::Delete(id) => format!(
            "Removes the rows of {} that `id` or `where` names, and returns them as they were.",
            name(id)
        ),
        Root::Message(id, change) => format!("{} of {}.", change.event(), name(id)),
        Root::Empty => return None,
    })
}

/// Whether clients can subscribe to a relation: the change log has its changes, and the role may
/// see its rows.
fn is_followed(relation: &Relation) -> bool {
    let logged = relation.persistence == Persistence::Permanent;
    let table = matches!(
        relation.kind,
        RelationKind::Table | RelationKind::Partitioned
    );
    logged && table && relation.rights.select
}
