//! How large an operation may be (docs/API.md, "Limits").

use super::{Document, Operation, Selection};
use crate::error::{Code, Error};
use crate::limits::Limits;

/// The size of a selection, with its fragments put in.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    fields: usize,
    depth: usize,
}

impl Size {
    fn beside(self, other: Self) -> Self {
        Self {
            fields: self.fields.saturating_add(other.fields),
            depth: self.depth.max(other.depth),
        }
    }
}

/// Measures an operation of a valid document.
///
/// # Errors
///
/// `TOO_COMPLEX`.
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
    } else {
        return Ok(());
    };
    Err(Error::new(Code::TooComplex, problem).at(operation.location))
}

fn measure(document: &Document, selection: &[Selection], known: &mut [Option<Size>]) -> Size {
    let mut size = Size::default();
    for part in selection {
        let part = match part {
            Selection::Field(field) => {
                let inner = measure(document, &field.selection, known);
                // The types of a schema end somewhere, but clients ask for many levels of lists.
                let introspection = field.name.starts_with("__");
                Size {
                    fields: inner.fields.saturating_add(1),
                    depth: if introspection { 1 } else { inner.depth + 1 },
                }
            }
            Selection::Inline(parts, _) => measure(document, parts, known),
            Selection::Spread(at, _) => known[*at].unwrap_or_else(|| {
                let size = measure(document, &document.fragments[*at].selection, known);
                known[*at] = Some(size);
                size
            }),
        };
        size = size.beside(part);
    }
    size
}
