//! Lowers the selection of a relation's row.

use std::sync::Arc;

use tidegate_catalog::model::{Cardinality, RelationId};
use tidegate_plan::operation::{Output, SelectedField, Selection, Subfield, SubfieldOutput};

use super::{Lowerer, unknown_field};
use crate::collect::CollectedField;
use crate::definition::EMPTY;
use crate::document::Meaning;
use crate::error::Error;
use crate::field_type::{FieldType, MemberContent, Named, ValueObject};

impl<'d> Lowerer<'d> {
    /// Lowers the selection of a field whose values are rows of a relation.
    pub(crate) fn selection(
        &self,
        relation: RelationId,
        group: &CollectedField<'d>,
    ) -> Result<Selection, Error> {
        let groups = self.collect.below(group)?;
        let fields = groups.iter().map(|group| {
            let output = self.output(relation, group);
            Ok(SelectedField {
                key: Arc::clone(group.key()),
                output: output.map_err(|error| error.within(group.key(), group.field.location))?,
            })
        });
        Ok(Selection {
            fields: fields.collect::<Result<_, Error>>()?,
        })
    }

    fn output(&self, id: RelationId, group: &CollectedField<'d>) -> Result<Output, Error> {
        let known = group.field.meaning.get().copied();
        let meaning = known.map_or_else(|| self.meaning(id, &group.field.name), Ok)?;
        // A concurrent request may have set the meaning already. Its meaning is the same.
        let _ = group.field.meaning.set(meaning);
        Ok(match meaning {
            Meaning::Typename => Output::Typename,
            Meaning::Column(column) => Output::Column(column),
            Meaning::Object(column, object) => Output::Parts(column, self.parts(object, group)?),
            Meaning::One(end, target) => Output::One(end, self.selection(target, group)?),
            Meaning::Many(end, target) => Output::Many(end, self.list(target, group)?),
        })
    }

    /// The meaning of the field with this name in a row.
    fn meaning(&self, id: RelationId, name: &str) -> Result<Meaning, Error> {
        if name == "__typename" {
            return Ok(Meaning::Typename);
        }
        let relation = self.schema.relation(id);
        let columns = relation.columns();
        let column = columns
            .into_iter()
            .find(|(_, column)| &*column.field == name && column.rights.select);
        if let Some((column, _)) = column {
            return Ok(match FieldType::of_column(relation, column).named {
                Named::Scalar(_) => Meaning::Column(column),
                Named::Object(object) => Meaning::Object(column, object),
            });
        }
        if let Some(relationship) = relation.find_relationship(name) {
            let end = relation.relationship(relationship);
            return Ok(match end.cardinality {
                Cardinality::One => Meaning::One(relationship, end.target),
                Cardinality::Many => Meaning::Many(relationship, end.target),
            });
        }
        match name {
            EMPTY => Ok(Meaning::Typename),
            _ => Err(unknown_field(name)),
        }
    }

    /// Lowers the selection of a column whose values are objects.
    pub(super) fn parts(
        &self,
        object: &'static ValueObject,
        group: &CollectedField<'d>,
    ) -> Result<Vec<Subfield>, Error> {
        let groups = self.collect.below(group)?;
        let parts = groups.iter().map(|group| self.part(object, group));
        parts.collect()
    }

    fn part(
        &self,
        object: &'static ValueObject,
        group: &CollectedField<'d>,
    ) -> Result<Subfield, Error> {
        let name = &*group.field.name;
        let key = Arc::clone(group.key());
        if name == "__typename" {
            return Ok(Subfield {
                key,
                output: SubfieldOutput::Typename(object.name.into()),
                not_null: true,
            });
        }
        let mut members = object.members.iter();
        let member = members.find(|member| member.name == name);
        let member = member.ok_or_else(|| unknown_field(name))?;
        let output = match member.content {
            MemberContent::Scalar(_) => SubfieldOutput::Member(member.name, Vec::new()),
            MemberContent::Object(inner) | MemberContent::List(inner) => {
                SubfieldOutput::Member(member.name, self.parts(inner, group)?)
            }
            MemberContent::Whole(inner) => SubfieldOutput::Itself(self.parts(inner, group)?),
        };
        Ok(Subfield {
            key,
            output,
            not_null: member.not_null,
        })
    }
}
