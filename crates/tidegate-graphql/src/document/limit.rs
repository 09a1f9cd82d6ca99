//! Limits on the size of an operation (docs/API.md, "Limits").

use super::{Document, Operation, Selection};
use crate::error::{Code, Error};
use crate::limits::Limits;

/// The limit on fragment spreads in a document is half of the field limit, but at least this
/// number.
const MIN_SPREADS: usize = 100;

/// The deepest nesting of lists in an introspection. Each level of lists multiplies the size of the
/// response, and no tool needs more than one level.
const LISTS: usize = 3;

/// The size of a selection in the text of the document. A fragment spread counts as one spread,
/// whatever the fragment contains.
#[derive(Clone, Copy, Debug, Default)]
struct DocumentSize {
    fields: usize,
    spreads: usize,
}

/// Checks the size of a document before it is validated, because validation takes time quadratic in
/// the number of adjacent selections.
///
/// # Errors
///
/// `TOO_COMPLEX` if a limit is exceeded.
pub(crate) fn check_text(document: &Document, limits: &Limits) -> Result<(), Error> {
    let operations = document.operations.iter().map(|one| &one.selection);
    let fragments = document.fragments.iter().map(|one| &one.selection);
    let (mut most, mut spread) = (0, 0);
    for selection in operations.chain(fragments) {
        let text = count(selection);
        most = most.max(text.fields);
        spread += text.spreads;
    }
    let spreads = (limits.fields / 2).max(MIN_SPREADS);
    let problem = if most > limits.fields {
        let allowed = limits.fields;
        format!("a selection has {most} fields, at most {allowed} are allowed")
    } else if spread > spreads {
        format!("the document spreads fragments {spread} times, at most {spreads} are allowed")
    } else {
        return Ok(());
    };
    Err(Error::new(Code::TooComplex, problem))
}

fn count(selection: &[Selection]) -> DocumentSize {
    let mut text = DocumentSize::default();
    for part in selection {
        let inner = match part {
            Selection::Field(field) => {
                text.fields += 1;
                count(&field.selection)
            }
            Selection::Inline(parts, _) => count(parts),
            Selection::Spread(..) => {
                text.spreads += 1;
                continue;
            }
        };
        text.fields += inner.fields;
        text.spreads += inner.spreads;
    }
    text
}

/// The size of a selection, with its fragments expanded.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    fields: usize,
    depth: usize,
    /// How deeply list fields of introspection (`fields`, `interfaces` and so on) are nested in the
    /// selection.
    lists: usize,
    /// How deeply list fields of introspection are nested in `__schema` or `__type`. [`LISTS`]
    /// limits this number.
    introspected: usize,
}

impl Size {
    fn combined(self, other: Self) -> Self {
        Self {
            fields: self.fields.saturating_add(other.fields),
            depth: self.depth.max(other.depth),
            lists: self.lists.max(other.lists),
            introspected: self.introspected.max(other.introspected),
        }
    }
}

/// Checks the size of an operation in a valid document.
///
/// # Errors
///
/// `TOO_COMPLEX` if a limit is exceeded.
pub(crate) fn check(
    document: &Document,
    operation: &Operation,
    limits: &Limits,
) -> Result<(), Error> {
    let mut known = vec![None; document.fragments.len()];
    let size = measure(document, &operation.selection, &mut known);
    let problem = if size.depth > limits.depth {
        format!(
            "the operation is {} levels deep, at most {} are allowed",
            size.depth, limits.depth
        )
    } else if size.fields > limits.fields {
        format!(
            "the operation has {} fields, at most {} are allowed",
            size.fields, limits.fields
        )
    } else if size.introspected > LISTS {
        format!(
            "the introspection has {} lists in each other, at most {LISTS} are allowed",
            size.introspected
        )
    } else {
        return Ok(());
    };
    Err(Error::new(Code::TooComplex, problem).at(operation.location))
}

/// Whether an introspection field is a list that can be long.
fn is_list(name: &str) -> bool {
    let lists = ["fields", "interfaces", "possibleTypes", "inputFields"];
    lists.contains(&name)
}

fn measure(document: &Document, selection: &[Selection], known: &mut [Option<Size>]) -> Size {
    let mut size = Size::default();
    for part in selection {
        let part = match part {
            Selection::Field(field) => {
                let inner = measure(document, &field.selection, known);
                // Clients nest `ofType` deeply, so introspection has no depth limit. Only the
                // nesting of its lists is limited.
                let introspection = field.name.starts_with("__");
                Size {
                    fields: inner.fields.saturating_add(1),
                    depth: if introspection { 1 } else { inner.depth + 1 },
                    lists: inner.lists + usize::from(is_list(&field.name)),
                    introspected: if introspection {
                        inner.lists
                    } else {
                        inner.introspected
                    },
                }
            }
            Selection::Inline(parts, _) => measure(document, parts, known),
            Selection::Spread(at, _) => known[*at].unwrap_or_else(|| {
                let size = measure(document, &document.fragments[*at].selection, known);
                known[*at] = Some(size);
                size
            }),
        };
        size = size.combined(part);
    }
    size
}
