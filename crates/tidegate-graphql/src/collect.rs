//! Collects the fields of a selection (GraphQL, section 6.3.2, "Field Collection").

use std::sync::Arc;

use crate::document::{Document, Field, Selection, Variables};
use crate::error::Error;

/// All fields of a selection that have the same response key.
#[derive(Debug)]
pub(crate) struct CollectedField<'d> {
    /// The first field. The other fields have the same name and arguments.
    pub field: &'d Field,
    /// The other fields. Their selections are merged into the selection of the first field.
    others: Vec<&'d Field>,
}

impl<'d> CollectedField<'d> {
    /// The response key.
    pub(crate) fn key(&self) -> &'d Arc<str> {
        &self.field.key
    }
}

/// Collects the fields of selections in a document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Collector<'d> {
    pub document: &'d Document,
    pub variables: &'d Variables<'d>,
}

impl<'d> Collector<'d> {
    /// The fields of a selection set by response key, in the order in which the keys first occur.
    ///
    /// # Errors
    ///
    /// If the variable of `@skip` or `@include` is null or has no value.
    pub(crate) fn fields(
        self,
        selection: &'d [Selection],
    ) -> Result<Vec<CollectedField<'d>>, Error> {
        let mut groups = Vec::with_capacity(selection.len());
        self.collect(selection, &mut groups)?;
        Ok(groups)
    }

    /// The fields in the merged selections of a collected field.
    ///
    /// # Errors
    ///
    /// As [`Collector::fields`].
    pub(crate) fn below(
        self,
        group: &CollectedField<'d>,
    ) -> Result<Vec<CollectedField<'d>>, Error> {
        let mut groups = Vec::with_capacity(group.field.selection.len());
        self.collect(&group.field.selection, &mut groups)?;
        for other in &group.others {
            self.collect(&other.selection, &mut groups)?;
        }
        Ok(groups)
    }

    fn collect(
        self,
        selection: &'d [Selection],
        groups: &mut Vec<CollectedField<'d>>,
    ) -> Result<(), Error> {
        for part in selection {
            match part {
                Selection::Field(field) => {
                    if !self.variables.allow(&field.conditions)? {
                        continue;
                    }
                    let known = groups.iter_mut().find(|group| group.field.key == field.key);
                    match known {
                        Some(group) => group.others.push(field),
                        None => groups.push(CollectedField {
                            field,
                            others: Vec::new(),
                        }),
                    }
                }
                Selection::Inline(parts, conditions) => {
                    if self.variables.allow(conditions)? {
                        self.collect(parts, groups)?;
                    }
                }
                Selection::Spread(at, conditions) => {
                    if self.variables.allow(conditions)? {
                        self.collect(&self.document.fragments[*at].selection, groups)?;
                    }
                }
            }
        }
        Ok(())
    }
}
