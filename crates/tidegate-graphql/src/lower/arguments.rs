//! Lowers the arguments that select rows.

use tidegate_catalog::model::{ColumnId, RelationId};
use tidegate_filter::{Filter, Json, is_sortable};
use tidegate_plan::operation::Order;

use super::Lowerer;
use crate::document::{Field, Missing};
use crate::error::Error;

/// The GraphQL error for an invalid filter.
pub(super) fn refused(error: &tidegate_filter::Error) -> Error {
    Error::input(error.to_string())
}

impl<'d> Lowerer<'d> {
    /// The value of an argument; `None` if the argument is absent, or is a variable without a
    /// value.
    pub(super) fn argument(
        &self,
        field: &'d Field,
        name: &str,
        missing: Missing,
    ) -> Result<Option<Json<'d>>, Error> {
        let Some(argument) = field.argument(name) else {
            return Ok(None);
        };
        let value = self.variables.value(&argument.value, missing);
        value.map_err(|error| error.at(argument.location))
    }

    /// If `result` is an error, converts it to a GraphQL error with the location of the argument
    /// `name`.
    pub(super) fn at<T>(
        field: &'d Field,
        name: &str,
        result: Result<T, tidegate_filter::Error>,
    ) -> Result<T, Error> {
        result.map_err(|error| match field.argument(name) {
            Some(argument) => refused(&error).at(argument.location),
            None => refused(&error),
        })
    }

    /// The filter for the arguments `where` and `id`: a row must match both.
    pub(super) fn rows(&self, relation: RelationId, field: &'d Field) -> Result<Filter, Error> {
        let condition = self.argument(field, "where", Missing::Refuse)?;
        let filter = match condition {
            None => Filter::everything(),
            Some(value) => {
                let parsed = Filter::parse(&value, self.schema, relation, "where");
                Self::at(field, "where", parsed)?
            }
        };
        let Some(id) = self.argument(field, "id", Missing::Refuse)? else {
            return Ok(filter);
        };
        let key = self.schema.relation(relation).single_key();
        let key = key.ok_or_else(|| super::unknown_field("id"))?;
        if id.is_null() {
            // A key is never null, so null selects no row. If null were ignored, every row would be
            // selected.
            return Ok(Filter::Any(Vec::new()));
        }
        let equals = Filter::equals(&id, self.schema.relation(relation), key, "id");
        Ok(Self::at(field, "id", equals)?.and(filter))
    }

    /// The value of the argument `limit` or `offset`; `None` if it is absent or null.
    pub(super) fn count(&self, field: &'d Field, name: &str) -> Result<Option<u64>, Error> {
        let Some(value) = self.argument(field, name, Missing::Omit)? else {
            return Ok(None);
        };
        if value.is_null() {
            return Ok(None);
        }
        let count = value.text().parse().map(Some);
        count.map_err(|_| {
            let error = Error::input(format!("`{name}` must not be negative"));
            match field.argument(name) {
                Some(argument) => error.at(argument.location),
                None => error,
            }
        })
    }

    /// The terms of the argument `orderBy`, which is an object or a list of objects.
    pub(super) fn order(
        &self,
        relation: RelationId,
        field: &'d Field,
    ) -> Result<Vec<Order>, Error> {
        let value = self.argument(field, "orderBy", Missing::Omit)?;
        let Some(value) = value.filter(|value| !value.is_null()) else {
            return Ok(Vec::new());
        };
        let mut options = Vec::new();
        let result = if value.kind() == tidegate_values::json::JsonKind::Array {
            Self::at(field, "orderBy", value.elements(&"orderBy")).and_then(|elements| {
                elements.iter().enumerate().try_for_each(|(at, element)| {
                    self.options(relation, element, &format!("orderBy[{at}]"), &mut options)
                })
            })
        } else {
            self.options(relation, &value, "orderBy", &mut options)
        };
        match (result, field.argument("orderBy")) {
            (Ok(()), _) => Ok(options),
            (Err(error), Some(argument)) => Err(error.at(argument.location)),
            (Err(error), None) => Err(error),
        }
    }

    fn options(
        &self,
        relation: RelationId,
        object: &Json<'_>,
        place: &str,
        options: &mut Vec<Order>,
    ) -> Result<(), Error> {
        for (name, direction) in object.members(&place).map_err(|error| refused(&error))? {
            let column = self.readable(relation, &name, place)?;
            let place = format!("{place}.{name}");
            let known = self.schema.relation(relation).column(column);
            if !is_sortable(known) {
                let name = known.r#type.name();
                return Err(Error::input(format!(
                    "`{place}` cannot be: values of the type {name} have no order"
                )));
            }
            let text = direction.string(&place).map_err(|error| refused(&error))?;
            options.push(term(column, &text).ok_or_else(|| {
                Error::input(format!(
                    "`{place}` is `{text}`, expected asc or desc, alone or with _nulls_first or _nulls_last"
                ))
            })?);
        }
        Ok(())
    }

    /// The column that a request calls `name`. It is an error if there is no such column, or if the
    /// role may not read it. `place` is the path of the enclosing object, for errors.
    pub(super) fn readable(
        &self,
        relation: RelationId,
        name: &str,
        place: &str,
    ) -> Result<ColumnId, Error> {
        let relation = self.schema.relation(relation);
        let column = relation.find_column(name);
        column
            .filter(|id| relation.column(*id).rights.select)
            .ok_or_else(|| {
                let table = &relation.name;
                Error::input(format!("`{place}.{name}` names no column of `{table}`"))
            })
    }
}

fn term(column: ColumnId, direction: &str) -> Option<Order> {
    let direction = direction.to_ascii_lowercase();
    let (base, nulls_first) = if let Some(base) = direction.strip_suffix("_nulls_first") {
        (base, Some(true))
    } else if let Some(base) = direction.strip_suffix("_nulls_last") {
        (base, Some(false))
    } else {
        (&*direction, None)
    };
    let descending = match base {
        "asc" => false,
        "desc" => true,
        _ => return None,
    };
    Some(Order {
        column,
        descending,
        nulls_first,
    })
}
