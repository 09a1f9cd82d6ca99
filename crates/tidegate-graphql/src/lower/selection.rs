//! What is shown of a row.

use std::sync::Arc;

use tidegate_catalog::model::{Cardinality, RelationId};
use tidegate_plan::operation::{Field, Part, PartShows, Selection, Shows};

use super::{Lowerer, unknown_field};
use crate::collect::Group;
use crate::definition::EMPTY;
use crate::document::Meaning;
use crate::error::Error;
use crate::kind::{Holds, Kind, Named, ValueObject};

impl<'d> Lowerer<'d> {
    /// The selection below a field whose type is that of a relation.
    pub(crate) fn selection(
        &self,
        relation: RelationId,
        group: &Group<'d>,
    ) -> Result<Selection, Error> {
        let groups = self.collect.below(group)?;
        let fields = groups.iter().map(|group| {
            let shows = self.shows(relation, group);
            Ok(Field {
                key: Arc::clone(group.key()),
                shows: shows.map_err(|error| error.within(group.key(), group.field.location))?,
            })
        });
        Ok(Selection {
            fields: fields.collect::<Result<_, Error>>()?,
        })
    }

    fn shows(&self, id: RelationId, group: &Group<'d>) -> Result<Shows, Error> {
        let known = group.field.meaning.get().copied();
        let meaning = known.map_or_else(|| self.meaning(id, &group.field.name), Ok)?;
        // Another request was first, with the same result.
        let _ = group.field.meaning.set(meaning);
        Ok(match meaning {
            Meaning::Typename => Shows::Typename,
            Meaning::Column(column) => Shows::Column(column),
            Meaning::Object(column, object) => Shows::Parts(column, self.parts(object, group)?),
            Meaning::One(end, target) => Shows::One(end, self.selection(target, group)?),
            Meaning::Many(end, target) => Shows::Many(end, self.list(target, group)?),
        })
    }

    /// What a field of this name shows of a row.
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
            return Ok(match Kind::of_column(relation, column).named {
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

    /// The selection below a column whose values are objects.
    pub(super) fn parts(
        &self,
        object: &'static ValueObject,
        group: &Group<'d>,
    ) -> Result<Vec<Part>, Error> {
        let groups = self.collect.below(group)?;
        let parts = groups.iter().map(|group| self.part(object, group));
        parts.collect()
    }

    fn part(&self, object: &'static ValueObject, group: &Group<'d>) -> Result<Part, Error> {
        let name = &*group.field.name;
        let key = Arc::clone(group.key());
        if name == "__typename" {
            return Ok(Part {
                key,
                shows: PartShows::Typename(object.name.into()),
                not_null: true,
            });
        }
        let mut members = object.members.iter();
        let member = members.find(|member| member.name == name);
        let member = member.ok_or_else(|| unknown_field(name))?;
        let shows = match member.holds {
            Holds::Scalar(_) => PartShows::Member(member.name, Vec::new()),
            Holds::Object(inner) | Holds::List(inner) => {
                PartShows::Member(member.name, self.parts(inner, group)?)
            }
            Holds::Itself(inner) => PartShows::Itself(self.parts(inner, group)?),
        };
        Ok(Part {
            key,
            shows,
            not_null: member.not_null,
        })
    }
}
