//! The GraphQL API of one schema as one role sees it.

use std::sync::{Arc, OnceLock};

use tidegate_catalog::model::Schema;

use crate::cache::Cache;
use crate::collect::{Collector, Group};
use crate::definition::{Roots, Types};
use crate::document::{
    Document, Operation, OperationKind, Validator, check_limits, check_overlaps,
};
use crate::error::{Code, Error};
use crate::introspection::Node;
use crate::limits::Limits;
use crate::lower::Introspector;
use crate::templates::{Budget, Templates};
use crate::text::Text;
use crate::unwritten::{Unwritten, Written};

/// Documents that are kept, by number and by bytes of text.
const DOCUMENTS: (usize, usize) = (1_000, 4 << 20);
/// A document of that many bytes takes about that many times as much when it is kept.
const WEIGHT: usize = 8;
/// Introspections that are kept.
const INTROSPECTIONS: (usize, usize) = (16, 16 << 20);
/// About what is kept of one that is large: that it is.
const NODE: usize = 64 << 10;

/// The GraphQL API of a schema. It never changes: a schema that changed gets a new one.
#[derive(Debug)]
pub struct Api {
    types: Arc<Types>,
    validator: Validator,
    limits: Limits,
    documents: Cache<Arc<str>, Arc<Known>>,
    introspections: Cache<Arc<Node>, Written>,
    sdl: OnceLock<Written>,
    templates: Budget,
}

/// What is known of a document: itself, or what is wrong with it.
type Known = Result<Valid, Vec<Error>>;

/// A valid document.
#[derive(Debug)]
struct Valid {
    document: Document,
    /// By operation, what its requests share.
    templates: Vec<Templates>,
}

/// An operation of a document that is valid.
#[derive(Clone, Debug)]
pub struct Prepared {
    known: Arc<Known>,
    operation: usize,
}

impl Api {
    /// The API of a schema; with subscriptions when changes are fed. It takes about a hundredth of a
    /// millisecond a table: what a table's types say is made when a document names them.
    pub fn new(schema: Arc<Schema>, feed: bool, limits: Limits) -> Self {
        let types = Arc::new(Types::of(schema, feed));
        Self {
            validator: Validator::new(&types),
            limits,
            documents: Cache::new(DOCUMENTS.0, DOCUMENTS.1 * WEIGHT),
            introspections: Cache::new(INTROSPECTIONS.0, INTROSPECTIONS.1),
            sdl: OnceLock::new(),
            templates: Budget::default(),
            types,
        }
    }

    /// The schema.
    pub fn schema(&self) -> &Arc<Schema> {
        self.types.schema()
    }

    /// The limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The room for templates of its operations.
    pub(crate) fn templates(&self) -> &Budget {
        &self.templates
    }

    pub(crate) fn roots(&self) -> &Roots {
        self.types.roots()
    }

    /// The schema in the schema definition language.
    pub fn sdl(&self) -> Text {
        let write = || Unwritten::Sdl(Arc::clone(&self.types)).write();
        self.sdl.get_or_init(write).clone().into()
    }

    /// Reads a document and finds an operation in it; both are remembered.
    ///
    /// # Errors
    ///
    /// `GRAPHQL_PARSE_FAILED`, `GRAPHQL_VALIDATION_FAILED`, `TOO_COMPLEX`, and `BAD_USER_INPUT` for
    /// an operation that is not there.
    pub fn prepare(
        &self,
        query: &str,
        operation_name: Option<&str>,
    ) -> Result<Prepared, Vec<Error>> {
        let known = self.documents.get(query).unwrap_or_else(|| {
            let known = Arc::new(self.read(query));
            let text: Arc<str> = query.into();
            self.documents
                .put(text, Arc::clone(&known), query.len() * WEIGHT);
            known
        });
        let valid = known.as_ref().as_ref().map_err(Clone::clone)?;
        let operation = choose(&valid.document, operation_name).map_err(|error| vec![error])?;
        Ok(Prepared { known, operation })
    }

    /// Whether the operation that a document means is a subscription, whatever else is wrong with
    /// it: an API without subscriptions finds much wrong with one.
    pub fn means_subscription(&self, query: &str, operation_name: Option<&str>) -> bool {
        if query.len() > self.limits.document {
            return false;
        }
        let document = self.validator.parse(query);
        document.is_some_and(|document| {
            choose(&document, operation_name)
                .is_ok_and(|at| document.operations[at].kind == OperationKind::Subscription)
        })
    }

    fn read(&self, query: &str) -> Known {
        if query.len() > self.limits.document {
            let most = self.limits.document;
            let message = format!("the document is larger than {most} bytes");
            return Err(vec![Error::new(Code::TooComplex, message)]);
        }
        let document = self.validator.read(query, &self.limits)?;
        for operation in &document.operations {
            check_limits(&document, operation, &self.limits).map_err(|error| vec![error])?;
        }
        check_overlaps(&document)?;
        let operations = document.operations.iter();
        Ok(Valid {
            templates: operations.map(|_| Templates::default()).collect(),
            document,
        })
    }
}

/// GraphQL, section 6.1, "Executing Requests".
fn choose(document: &Document, name: Option<&str>) -> Result<usize, Error> {
    let operations = &document.operations;
    // Some clients send an empty name for none.
    match name.filter(|name| !name.is_empty()) {
        Some(name) => {
            let named = |operation: &Operation| operation.name.as_deref() == Some(name);
            operations
                .iter()
                .position(named)
                .ok_or_else(|| Error::input(format!("the document has no operation `{name}`")))
        }
        None => match operations.len() {
            1 => Ok(0),
            0 => Err(Error::input("the document has no operation")),
            _ => Err(Error::input(
                "the document has several operations: `operationName` says which",
            )),
        },
    }
}

impl Prepared {
    /// Whether it writes.
    pub fn is_mutation(&self) -> bool {
        self.operation()
            .is_some_and(|(_, operation)| operation.kind == OperationKind::Mutation)
    }

    /// Whether it waits for changes.
    pub fn is_subscription(&self) -> bool {
        self.operation()
            .is_some_and(|(_, operation)| operation.kind == OperationKind::Subscription)
    }

    pub(crate) fn operation(&self) -> Option<(&Document, &Operation)> {
        let document = &self.known.as_ref().as_ref().ok()?.document;
        Some((document, document.operations.get(self.operation)?))
    }

    /// What requests of the operation share.
    pub(crate) fn templates(&self) -> Option<&Templates> {
        self.known
            .as_ref()
            .as_ref()
            .ok()?
            .templates
            .get(self.operation)
    }
}

impl Introspector for Api {
    fn introspect<'d>(&self, group: &Group<'d>, collect: Collector<'d>) -> Result<Written, Error> {
        let node = Arc::new(Node::of(group, collect, collect.variables)?);
        if let Some(known) = self.introspections.get(&node) {
            return Ok(known);
        }
        let text = Unwritten::Introspection(Arc::clone(&node), Arc::clone(&self.types));
        let written = text.write();
        let size = match &written {
            Written::Whole(text) => text.len() * 2,
            Written::Large(_) => NODE,
        };
        self.introspections.put(node, written.clone(), size);
        Ok(written)
    }
}
