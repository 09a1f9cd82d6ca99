//! Lowers root fields that write.

use std::borrow::Cow;

use tidegate_catalog::model::{ColumnId, IdentityKind, RelationId};
use tidegate_filter::{Filter, Json};
use tidegate_plan::operation::{ConflictTarget, Delete, Insert, OnConflict, Update};
use tidegate_values::json::{self, JsonKind};

use super::Lowerer;
use super::arguments::refused;
use crate::collect::CollectedField;
use crate::document::{Field, Missing};
use crate::error::Error;

impl<'d> Lowerer<'d> {
    pub(super) fn insert(
        &self,
        id: RelationId,
        group: &CollectedField<'d>,
    ) -> Result<Insert<'d>, Error> {
        let field = group.field;
        let given = |name| {
            let value = self.argument(field, name, Missing::Omit)?;
            Ok::<_, Error>(value.filter(|value| !value.is_null()))
        };
        let (rows, listed) = match (given("data")?, given("objects")?) {
            (Some(data), None) if data.kind() == JsonKind::Array => (elements(data)?, true),
            (Some(data), None) => (vec![data], false),
            (None, Some(objects)) => (elements(objects)?, true),
            (Some(_), Some(_)) => {
                return Err(Error::input("`data` and `objects` exclude each other"));
            }
            (None, None) => {
                return Err(Error::input("an insert needs `data` or `objects`"));
            }
        };
        let on_conflict = given("onConflict")?;
        let on_conflict = on_conflict.map(|value| self.on_conflict(id, &value));
        Ok(Insert {
            rows,
            listed,
            on_conflict: on_conflict.transpose()?,
            returning: self.selection(id, group)?,
        })
    }

    fn on_conflict(&self, id: RelationId, value: &Json<'_>) -> Result<OnConflict, Error> {
        let (mut constraint, mut columns, mut update) = (None, None, Vec::new());
        for (name, value) in value
            .members(&"onConflict")
            .map_err(|error| refused(&error))?
        {
            let place = format!("onConflict.{name}");
            match &*name {
                "constraint" => {
                    constraint = Some(
                        value
                            .string(&place)
                            .map_err(|error| refused(&error))?
                            .into(),
                    );
                }
                "columns" => columns = Some(self.key(id, &value, &place)?),
                "update" => update = self.updated(id, &value, &place)?,
                _ => {
                    return Err(Error::input(format!(
                        "`{place}` is not known, expected constraint, columns or update"
                    )));
                }
            }
        }
        let target = match (constraint, columns) {
            (Some(constraint), None) => ConflictTarget::Constraint(constraint),
            (None, Some(columns)) => ConflictTarget::Columns(columns),
            _ => {
                return Err(Error::input(
                    "`onConflict` needs either `constraint` or `columns`",
                ));
            }
        };
        Ok(OnConflict { target, update })
    }

    /// The columns in the member `columns` of `onConflict`. They identify a unique index.
    fn key(&self, id: RelationId, value: &Json<'_>, place: &str) -> Result<Vec<ColumnId>, Error> {
        let columns = self.columns(id, value, place)?;
        if columns.is_empty() {
            let message = format!("`{place}` is empty, expected the columns of a unique index");
            return Err(Error::input(message));
        }
        Ok(columns)
    }

    /// The columns in the member `update` of `onConflict`, which get the new row's values after a
    /// conflict.
    fn updated(
        &self,
        id: RelationId,
        value: &Json<'_>,
        place: &str,
    ) -> Result<Vec<ColumnId>, Error> {
        let columns = self.columns(id, value, place)?;
        for (at, known) in columns.iter().enumerate() {
            let column = self.schema.relation(id).column(*known);
            let problem =
                if column.generated.is_some() || column.identity == Some(IdentityKind::Always) {
                    "which PostgreSQL alone sets"
                } else if columns[..at].contains(known) {
                    "which stands there twice"
                } else {
                    continue;
                };
            let name = &column.field;
            return Err(Error::input(format!(
                "`{place}[{at}]` is `{name}`, {problem}"
            )));
        }
        Ok(columns)
    }

    /// The columns whose names are in the list `value`. `place` is the path of the list, for
    /// errors.
    pub(super) fn columns(
        &self,
        id: RelationId,
        value: &Json<'_>,
        place: &str,
    ) -> Result<Vec<ColumnId>, Error> {
        let relation = self.schema.relation(id);
        let elements = value.elements(&place).map_err(|error| refused(&error))?;
        let columns = elements.iter().enumerate().map(|(at, element)| {
            let place = format!("{place}[{at}]");
            let name = element.string(&place).map_err(|error| refused(&error))?;
            relation.find_column(&name).ok_or_else(|| {
                let table = &relation.name;
                Error::input(format!(
                    "`{place}` is `{name}`, which is not a column of `{table}`"
                ))
            })
        });
        columns.collect()
    }

    pub(super) fn update(
        &self,
        id: RelationId,
        group: &CollectedField<'d>,
    ) -> Result<Update<'d>, Error> {
        let field = group.field;
        let filter = self.bounded(id, field)?;
        let data = self.argument(field, "data", Missing::Omit)?;
        let data = data.filter(|value| !value.is_null());
        let data = data.ok_or_else(|| Error::input("an update needs `data`"))?;
        let relation = self.schema.relation(id);
        let values = members(data)?.into_iter().map(|(name, value)| {
            let column = relation.find_column(&name).ok_or_else(|| {
                let table = &relation.name;
                Error::input(format!("`data.{name}` names no column of `{table}`"))
            })?;
            Ok((column, value))
        });
        Ok(Update {
            filter,
            values: values.collect::<Result<_, Error>>()?,
            returning: self.selection(id, group)?,
        })
    }

    pub(super) fn delete(
        &self,
        id: RelationId,
        group: &CollectedField<'d>,
    ) -> Result<Delete, Error> {
        Ok(Delete {
            filter: self.bounded(id, group.field)?,
            returning: self.selection(id, group)?,
        })
    }

    /// The filter for the arguments `where` and `id` of an update or a delete. An empty filter is
    /// an error.
    fn bounded(&self, id: RelationId, field: &'d Field) -> Result<Filter, Error> {
        if field.argument("id").is_some() {
            let value = self.argument(field, "id", Missing::Refuse)?;
            if value.is_none_or(|value| value.is_null()) {
                let message = "`id` has no value; leave it out to choose rows by `where` alone";
                return Err(Error::input(message));
            }
        }
        let filter = self.rows(id, field)?;
        if filter.is_empty() {
            let relation = self.schema.relation(id);
            let by_key = if relation.single_key().is_some() {
                "an `id` or "
            } else {
                ""
            };
            return Err(Error::input(format!(
                "`{}` needs {by_key}a `where` that is not empty",
                field.name
            )));
        }
        Ok(filter)
    }
}

/// The elements of a list of rows.
fn elements(list: Json<'_>) -> Result<Vec<Json<'_>>, Error> {
    match list {
        Json::List(elements) => Ok(elements),
        Json::Text(Cow::Borrowed(text)) => {
            let elements = json::elements(text).map_err(|error| unreadable(&error))?;
            Ok(elements
                .into_iter()
                .map(|raw| Json::from(raw.get()))
                .collect())
        }
        Json::Text(Cow::Owned(text)) => {
            let elements = json::elements(&text).map_err(|error| unreadable(&error))?;
            let elements = elements
                .into_iter()
                .map(|raw| Json::from(raw.get().to_owned()));
            Ok(elements.collect())
        }
        one @ Json::Object(_) => Ok(vec![one]),
    }
}

type RowMembers<'a> = Vec<(Cow<'a, str>, Json<'a>)>;

/// The members of the argument `data`. It is an error if two of them have the same name.
fn members(data: Json<'_>) -> Result<RowMembers<'_>, Error> {
    // This call only checks the members, because the conversions below do not report all errors.
    // Its result is not used.
    data.members(&"data").map_err(|error| refused(&error))?;
    match data {
        Json::Object(members) => Ok(members),
        Json::Text(Cow::Borrowed(text)) => {
            let members = json::members(text)
                .map_err(|error| unreadable(&error))?
                .into_iter();
            Ok(members
                .map(|(name, raw)| (name, Json::from(raw.get())))
                .collect())
        }
        Json::Text(Cow::Owned(text)) => {
            let members = json::members(&text)
                .map_err(|error| unreadable(&error))?
                .into_iter();
            let own = |(name, raw): (Cow<'_, str>, &serde_json::value::RawValue)| {
                (
                    Cow::Owned(name.into_owned()),
                    Json::from(raw.get().to_owned()),
                )
            };
            Ok(members.map(own).collect())
        }
        Json::List(_) => Ok(Vec::new()),
    }
}

fn unreadable(error: &serde_json::Error) -> Error {
    Error::input(json::problem(error))
}
