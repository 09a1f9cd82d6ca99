//! Lowers an operation: converts a document and its variables into an operation on tables.

mod aggregate;
mod arguments;
mod introspection;
mod mutation;
mod selection;
mod variable_uses;

use std::sync::Arc;

use bytes::Bytes;
use tidegate_catalog::model::{RelationId, Schema};
use tidegate_plan::Operation as Planned;
use tidegate_plan::operation::{List, Root as PlannedRoot, RootField};

use crate::collect::{CollectedField, Collector};
use crate::definition::{EMPTY, OperationKind, Root, Roots};
use crate::document::{Operation, Variables};
use crate::error::{Code, Error, FieldErrors};
use crate::large_text::{GeneratedText, LargeText};
use crate::limits::Limits;

pub(crate) use introspection::Introspector;
pub(crate) use variable_uses::VariableUses;

/// The input of lowering: the schema, the document and the variables.
#[derive(Clone, Copy)]
pub(crate) struct Lowerer<'d> {
    pub schema: &'d Schema,
    pub roots: &'d Roots,
    pub collect: Collector<'d>,
    pub variables: &'d Variables<'d>,
    pub introspect: &'d dyn Introspector,
    /// Records which variables become parameters of statements; `None` if no template is to be
    /// made.
    pub variable_uses: Option<&'d VariableUses>,
}

/// An operation on tables, and the introspection texts that are inserted into its response.
#[derive(Debug)]
pub(crate) struct Lowered<'d> {
    pub planned: Planned<'d>,
    pub introspections: Vec<LargeText>,
}

/// Lowers a query or a mutation. If a root field of a query already has an entry in `errors`, the
/// field becomes null. If a nullable root field cannot be lowered, its error is added to `errors`,
/// and the field becomes null too.
///
/// # Errors
///
/// Errors of the whole operation, and the error of a root field that cannot be null, with the path
/// of the field.
pub(crate) fn lower<'d>(
    lowerer: Lowerer<'d>,
    operation: &'d Operation,
    limits: &Limits,
    errors: &mut FieldErrors,
) -> Result<Lowered<'d>, Error> {
    let groups = lowerer.collect.fields(&operation.selection)?;
    if groups.len() > limits.roots {
        let message = format!(
            "the operation has {} root fields, at most {} are allowed",
            groups.len(),
            limits.roots
        );
        return Err(Error::new(Code::TooComplex, message).at(operation.location));
    }
    let mut introspections = Vec::new();
    let mut roots = Vec::with_capacity(groups.len());
    for (at, group) in groups.iter().enumerate() {
        let key = Arc::clone(group.key());
        if errors.contains_key(&at) {
            roots.push(PlannedRoot { key, field: NULL });
            continue;
        }
        let field = match lowerer.root(operation.kind, group, &mut introspections) {
            Err(mut error) if is_nullable(operation.kind, group) => {
                error.path.clear();
                errors.insert(at, error.within(group.key(), group.field.location));
                NULL
            }
            field => field.map_err(|error| error.within(group.key(), group.field.location))?,
        };
        roots.push(PlannedRoot { key, field });
    }
    let planned = match operation.kind {
        OperationKind::Query => Planned::Query(roots),
        OperationKind::Mutation => Planned::Mutation(roots),
        OperationKind::Subscription => {
            let text = "a subscription is sent over a WebSocket, not over HTTP";
            return Err(Error::input(text));
        }
    };
    Ok(Lowered {
        planned,
        introspections,
    })
}

/// The content of a root field that failed.
const NULL: RootField<'static> = RootField::Verbatim(Bytes::from_static(b"null"));

/// Whether a root field may be null after an error. A root field of a mutation may not, because a
/// mutation runs completely or not at all. `__schema` and `__typename` may not, because they are
/// non-null (GraphQL, section 6.4.4).
fn is_nullable(kind: OperationKind, group: &CollectedField<'_>) -> bool {
    kind == OperationKind::Query && !matches!(&*group.field.name, "__schema" | "__typename")
}

/// The error for an unknown field, which validation should have rejected.
pub(crate) fn unknown_field(name: &str) -> Error {
    Error::new(Code::Internal, format!("the field `{name}` is not known"))
}

impl<'d> Lowerer<'d> {
    fn root(
        &self,
        kind: OperationKind,
        group: &CollectedField<'d>,
        introspections: &mut Vec<LargeText>,
    ) -> Result<RootField<'d>, Error> {
        let name = &*group.field.name;
        let verbatim =
            |text: &'static str| Ok(RootField::Verbatim(Bytes::from_static(text.as_bytes())));
        match (name, kind) {
            ("__typename", OperationKind::Mutation) => return verbatim("\"Mutation\""),
            ("__typename", _) => return verbatim("\"Query\""),
            ("__schema" | "__type", _) => {
                return match self.introspect.introspect(group, self.collect)? {
                    GeneratedText::Whole(text) => Ok(RootField::Verbatim(text)),
                    GeneratedText::Large(introspection) => {
                        introspections.push(introspection);
                        Ok(RootField::Inserted)
                    }
                };
            }
            _ => {}
        }
        let root = match kind {
            OperationKind::Mutation => self.roots.mutation(name),
            _ => self.roots.query(name),
        };
        match root.ok_or_else(|| unknown_field(name))? {
            Root::Get(id) => Ok(RootField::Get(id, self.list(id, group)?)),
            Root::Aggregate(id) => Ok(RootField::Aggregate(id, self.aggregate(id, group)?)),
            Root::Insert(id) => Ok(RootField::Insert(id, self.insert(id, group)?)),
            Root::Update(id) => Ok(RootField::Update(id, self.update(id, group)?)),
            Root::Delete(id) => Ok(RootField::Delete(id, self.delete(id, group)?)),
            Root::Empty if name == EMPTY => verbatim("\"Query\""),
            Root::Empty | Root::Message(..) => Err(unknown_field(name)),
        }
    }

    /// The list of rows that the arguments of a field select.
    fn list(&self, relation: RelationId, group: &CollectedField<'d>) -> Result<List, Error> {
        let filter = self.rows(relation, group.field)?;
        Ok(List {
            origins: self.variable_sources(relation, group.field, &filter),
            filter,
            order: self.order(relation, group.field)?,
            limit: self.count(group.field, "limit")?,
            offset: self.count(group.field, "offset")?,
            selection: self.selection(relation, group)?,
        })
    }
}
