//! The GraphQL API of a schema as a role sees it.

use std::sync::{Arc, OnceLock};

use tidegate_catalog::model::Schema;

use crate::cache::Cache;
use crate::collect::{CollectedField, Collector};
use crate::definition::{OperationKind, Roots, Types};
use crate::document::{Document, Operation, Validator, check_limits, check_overlaps};
use crate::error::{Code, Error};
use crate::introspection::IntrospectionNode;
use crate::large_text::{GeneratedText, LargeText};
use crate::limits::Limits;
use crate::lower::Introspector;
use crate::response::ResponseText;
use crate::templates::{Budget, Templates};

/// The limits of the document cache: the number of documents, and the bytes of their texts.
const DOCUMENTS: (usize, usize) = (1_000, 4 << 20);
/// The approximate number of bytes in memory for each byte of a cached document's text.
const WEIGHT: usize = 8;
/// The limits of the cache of introspection results: the number of results, and their size in
/// bytes.
const INTROSPECTIONS: (usize, usize) = (16, 16 << 20);
/// The size in bytes that the cache counts for a large introspection result. The text of such a
/// result is not cached but generated for each response, so its length does not count.
const LARGE_RESULT_SIZE: usize = 64 << 10;

/// The GraphQL API of a schema. It is immutable; a changed schema gets a new API.
#[derive(Debug)]
pub struct Api {
    types: Arc<Types>,
    validator: Validator,
    limits: Limits,
    documents: Cache<Arc<str>, Arc<CachedDocument>>,
    introspections: Cache<Arc<IntrospectionNode>, GeneratedText>,
    sdl: OnceLock<GeneratedText>,
    templates: Budget,
}

/// A cached document, or the errors of an invalid document.
type CachedDocument = Result<Valid, Vec<Error>>;

#[derive(Debug)]
struct Valid {
    document: Document,
    /// For each operation, the templates from which its plans are made.
    templates: Vec<Templates>,
}

/// An operation of a valid document.
#[derive(Clone, Debug)]
pub struct PreparedOperation {
    known: Arc<CachedDocument>,
    operation: usize,
}

impl Api {
    /// Makes the API of a schema, with subscriptions if `feed` is true. This takes only about 10 µs
    /// for each table, because the definition of a type is not built before a document uses the
    /// type.
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

    /// The limits on requests.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The memory budget for the templates of the API's operations.
    pub(crate) fn templates(&self) -> &Budget {
        &self.templates
    }

    pub(crate) fn roots(&self) -> &Roots {
        self.types.roots()
    }

    /// The schema in the schema definition language (SDL).
    pub fn sdl(&self) -> ResponseText {
        let write = || LargeText::Sdl(Arc::clone(&self.types)).write();
        self.sdl.get_or_init(write).clone().into()
    }

    /// Parses and validates a document, and selects one of its operations. The validated document,
    /// or its errors, are cached.
    ///
    /// # Errors
    ///
    /// `GRAPHQL_PARSE_FAILED`, `GRAPHQL_VALIDATION_FAILED` and `TOO_COMPLEX`. `BAD_USER_INPUT` if
    /// there is no operation of this name, or if the name is missing and the document has several
    /// operations.
    pub fn prepare(
        &self,
        query: &str,
        operation_name: Option<&str>,
    ) -> Result<PreparedOperation, Vec<Error>> {
        let known = self.documents.get(query).unwrap_or_else(|| {
            let known = Arc::new(self.read(query));
            let text: Arc<str> = query.into();
            self.documents
                .put(text, Arc::clone(&known), query.len() * WEIGHT);
            known
        });
        let valid = known.as_ref().as_ref().map_err(Clone::clone)?;
        let operation = choose(&valid.document, operation_name).map_err(|error| vec![error])?;
        Ok(PreparedOperation { known, operation })
    }

    /// Whether the selected operation is a subscription. A subscription is recognised even if the
    /// document is invalid, because in an API without subscriptions every subscription makes a
    /// document invalid. Returns false if the document is too large or cannot be parsed.
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

    fn read(&self, query: &str) -> CachedDocument {
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

/// The index of the operation that a request selects (GraphQL, section 6.1, "Executing Requests").
fn choose(document: &Document, name: Option<&str>) -> Result<usize, Error> {
    let operations = &document.operations;
    // Some clients send an empty string instead of no name, so an empty string counts as no name.
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

impl PreparedOperation {
    /// Whether the operation is a mutation.
    pub fn is_mutation(&self) -> bool {
        self.operation()
            .is_some_and(|(_, operation)| operation.kind == OperationKind::Mutation)
    }

    /// Whether the operation is a subscription.
    pub fn is_subscription(&self) -> bool {
        self.operation()
            .is_some_and(|(_, operation)| operation.kind == OperationKind::Subscription)
    }

    pub(crate) fn operation(&self) -> Option<(&Document, &Operation)> {
        let document = &self.known.as_ref().as_ref().ok()?.document;
        Some((document, document.operations.get(self.operation)?))
    }

    /// The templates from which plans of the operation are made; `None` if the document is invalid.
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
    fn introspect<'d>(
        &self,
        group: &CollectedField<'d>,
        collect: Collector<'d>,
    ) -> Result<GeneratedText, Error> {
        let node = Arc::new(IntrospectionNode::of(group, collect, collect.variables)?);
        if let Some(known) = self.introspections.get(&node) {
            return Ok(known);
        }
        let text = LargeText::Introspection(Arc::clone(&node), Arc::clone(&self.types));
        let written = text.write();
        let size = match &written {
            GeneratedText::Whole(text) => text.len() * 2,
            GeneratedText::Large(_) => LARGE_RESULT_SIZE,
        };
        self.introspections.put(node, written.clone(), size);
        Ok(written)
    }
}
