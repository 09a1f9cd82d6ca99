//! The parser and validator of documents, which uses the crate juniper
//! (docs/adr/0007-graphql-engine.md).
//!
//! juniper's parser checks literals against a schema, and rejects objects for custom scalars.
//! Therefore documents are parsed with a schema without fields and converted into the types of the
//! module `document`. Then every literal of a type that takes any JSON, except null and variables,
//! is replaced by a string, and the document is validated against the API's schema.

mod adapt;
mod literal;
mod lower;
mod mention;
mod parsing_schema;
mod register;
mod rules;
mod suggestion;

use std::fmt::Write as _;
use std::sync::Arc;

use juniper::parser::{ParseError, parse_document_source};
use juniper::validation::{ValidatorContext, visit_all_rules};
use juniper::{DefaultScalarValue, Definition, RuleError, Spanning};

use super::{Document, check_text};
use crate::definition::Types;
use crate::error::{Code, Error, Errors, Location};
use crate::limits::Limits;

use mention::Mentioned;

type Scalar = DefaultScalarValue;

/// Parses and validates documents.
pub(crate) struct Validator {
    types: Arc<Types>,
    parsing: parsing_schema::Root,
}

impl std::fmt::Debug for Validator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Validator").finish_non_exhaustive()
    }
}

impl Validator {
    /// A validator for documents of a schema.
    pub(crate) fn new(types: &Arc<Types>) -> Self {
        Self {
            types: Arc::clone(types),
            parsing: parsing_schema::root(),
        }
    }

    /// A definition that makes juniper report an error for every document. juniper applies its rule
    /// on overlapping fields only if no other rule has reported an error, so the definition turns
    /// this rule off. The rule is not wanted, because it compares all pairs of fields and
    /// fragments, and stops at a limit of its own. `document::overlap` checks overlapping fields
    /// instead.
    fn unused(&self) -> Option<Definition<'static, Scalar>> {
        let mut parsed = parse_document_source(UNUSED, &self.parsing.schema).ok()?;
        if let Some(Definition::Fragment(fragment)) = parsed.first_mut() {
            fragment.item.name.item = " ";
        }
        parsed.pop()
    }

    /// Parses a document without validating it; `None` if it cannot be parsed.
    pub(crate) fn parse(&self, text: &str) -> Option<Document> {
        let parsed = parse_document_source(text, &self.parsing.schema).ok()?;
        lower::document(&parsed).ok()
    }

    /// Parses and validates a document. Checks neither the limits of an operation nor overlapping
    /// fields.
    ///
    /// # Errors
    ///
    /// `GRAPHQL_PARSE_FAILED`, `TOO_COMPLEX`, or `GRAPHQL_VALIDATION_FAILED` for each violation,
    /// with its location. If there are many violations, only the first of them are reported.
    pub(crate) fn read(&self, text: &str, limits: &Limits) -> Result<Document, Vec<Error>> {
        if let Some(at) = text.find('\0') {
            return Err(vec![nul_error(&text[..at])]);
        }
        let mut parsed = parse_document_source(text, &self.parsing.schema)
            .map_err(|error| vec![parse_error(&error)])?;
        let document = lower::document(&parsed)?;
        check_text(&document, limits).map_err(|error| vec![error])?;
        rules::check_types(&document)?;
        let schema = register::schema(&self.types, &Mentioned::of(&parsed));
        adapt::adapt(&mut parsed, &schema, &document);
        parsed.extend(self.unused());
        let mut context = ValidatorContext::new(&schema, &parsed);
        visit_all_rules(&mut context, &parsed);
        let mut errors = context.into_errors();
        errors.retain(|error| error.message() != UNUSED_MESSAGE);
        let reported: Errors = errors.iter().map(rule_error).collect();
        reported
            .into_result()
            .map_err(|errors| self.suggest(errors))?;
        rules::check(&document, |kind| self.types.operation(kind).is_some())?;
        Ok(document)
    }

    /// Adds a suggestion to the first error if it is about an unknown field. Further errors get no
    /// suggestion, because finding one is slow: it compares all fields of a type.
    fn suggest(&self, mut errors: Vec<Error>) -> Vec<Error> {
        if let Some(first) = errors.first_mut()
            && let Some(name) = suggestion::suggestion(&self.types, &first.message)
        {
            let _ = write!(first.message, "; did you mean \"{name}\"?");
        }
        errors
    }
}

/// An unused fragment. Its name is replaced by a blank, which cannot be the name of a fragment in a
/// document.
const UNUSED: &str = "fragment unused on Query { __typename }";
/// The error that juniper reports for the unused fragment.
const UNUSED_MESSAGE: &str = "Fragment \" \" is never used";

fn location(position: juniper::parser::SourcePosition) -> Location {
    let one_based = |number: usize| u32::try_from(number + 1).unwrap_or(u32::MAX);
    Location {
        line: one_based(position.line()),
        column: one_based(position.column()),
    }
}

/// The error for U+0000 after the text `before`. No document may contain this character. The
/// validator itself checks for it, because juniper would take it for the end of the text.
fn nul_error(before: &str) -> Error {
    let begin = before.rfind('\n').map_or(0, |at| at + 1);
    let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let place = Location {
        line: number(before.matches('\n').count() + 1),
        column: number(before[begin..].chars().count() + 1),
    };
    Error::new(Code::ParseFailed, "Syntax error: unknown character U+0000").at(place)
}

fn parse_error(error: &Spanning<ParseError>) -> Error {
    let code = match error.item {
        ParseError::DepthLimitExceeded(_)
        | ParseError::TokenLimitExceeded(_)
        | ParseError::FieldLimitExceeded(_) => Code::TooComplex,
        _ => Code::ParseFailed,
    };
    let message = match code {
        Code::TooComplex => error.item.to_string(),
        _ => format!("Syntax error: {}", error.item),
    };
    Error::new(code, message).at(location(error.span.start))
}

fn rule_error(error: &RuleError) -> Error {
    let mut result = Error::new(Code::ValidationFailed, error.message());
    result.locations = error.locations().iter().copied().map(location).collect();
    result
}
