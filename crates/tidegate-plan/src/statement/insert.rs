//! Inserts: one statement for all objects with the same columns.

use std::borrow::Cow;

use bytes::BytesMut;
use tidegate_catalog::model::{Column, IdentityKind};
use tidegate_catalog::{ColumnId, Relation, RelationId, Schema};
use tidegate_filter::{Json, non_text_kind};
use tidegate_sql::statement::{Kind, SqlWriter};
use tidegate_sql::{BoundStatement, DatabaseError, InputError};
use tidegate_values::parameter::{self, IsNull};
use tidegate_values::{Parameter, TypeKind, ValueError};

use super::elements::ArrayElements;
use super::name::target;
use super::overflow::{Overflow, column_text};
use super::{returning, type_name};
use crate::Result;
use crate::operation::{ConflictTarget, Insert, OnConflict};
use crate::row::{Program, push_element};

/// A group of objects that have the same columns.
#[derive(Debug)]
pub(crate) struct InsertGroup<'a> {
    /// The columns, in the order of the relation.
    columns: Vec<ColumnId>,
    /// The indexes of the objects in the request, in ascending order.
    pub(crate) objects: Vec<u32>,
    /// The values of the objects, row by row.
    values: Vec<Json<'a>>,
}

/// Groups the objects of an insert by their columns.
///
/// # Errors
///
/// [`InputError::InvalidField`] for a row that is not an object, and for a column that is unknown,
/// computed by PostgreSQL or given twice. [`InputError::Value`] for a number or a boolean in a
/// column that takes only text.
pub(crate) fn groups<'a>(
    relation: &Relation,
    wanted: &mut Insert<'a>,
) -> Result<Vec<InsertGroup<'a>>> {
    let mut groups: Vec<InsertGroup<'a>> = Vec::new();
    let mut last = 0;
    for (at, object) in std::mem::take(&mut wanted.rows).into_iter().enumerate() {
        let place = ObjectPath {
            listed: wanted.listed,
            object: at,
        };
        let mut members = members(relation, object, &place)?;
        members.sort_unstable_by_key(|(column, _)| *column);
        let same = |group: &InsertGroup<'_>| {
            let given = members.iter().map(|(column, _)| column);
            group.columns.iter().eq(given)
        };
        if groups.get(last).is_none_or(|group| !same(group)) {
            last = groups.iter().position(same).unwrap_or(groups.len());
        }
        if last == groups.len() {
            groups.push(InsertGroup {
                columns: members.iter().map(|(column, _)| *column).collect(),
                objects: Vec::new(),
                values: Vec::new(),
            });
        }
        let group = &mut groups[last];
        group.objects.push(u32::try_from(at).unwrap_or(u32::MAX));
        group
            .values
            .extend(members.into_iter().map(|(_, value)| value));
    }
    Ok(groups)
}

/// The path of an object in the request, for errors. If `listed` is false, the path is `data`.
#[derive(Clone, Copy, Debug)]
struct ObjectPath {
    listed: bool,
    object: usize,
}

impl ObjectPath {
    fn object(self) -> String {
        if self.listed {
            format!("objects[{}]", self.object)
        } else {
            "data".to_owned()
        }
    }

    fn column(self, name: &str) -> String {
        format!("{}.{name}", self.object())
    }
}

/// The members of an object, as columns and values.
fn members<'a>(
    relation: &Relation,
    object: Json<'a>,
    place: &ObjectPath,
) -> Result<Vec<(ColumnId, Json<'a>)>> {
    let find = |name: &str| {
        let id = relation.find_column(name).ok_or_else(|| {
            wrong(
                place.column(name),
                format!("`{}` has no such column", relation.name),
            )
        })?;
        require_given(relation.column(id), || place.column(name))?;
        Ok::<_, InputError>(id)
    };
    let read: Vec<(ColumnId, Json<'a>)> = match object {
        Json::Object(members) => {
            let members = members.into_iter();
            members
                .map(|(name, value)| Ok((find(&name)?, value)))
                .collect::<Result<_, InputError>>()?
        }
        Json::Text(Cow::Borrowed(text)) if is_object(text) => {
            let members =
                tidegate_values::json::members(text).map_err(|error| unreadable(place, &error))?;
            let members = members.into_iter();
            members
                .map(|(name, raw)| Ok((find(&name)?, Json::Text(Cow::Borrowed(raw.get())))))
                .collect::<Result<_, InputError>>()?
        }
        Json::Text(text) if is_object(&text) => {
            let members =
                tidegate_values::json::members(&text).map_err(|error| unreadable(place, &error))?;
            let members = members.into_iter();
            members
                .map(|(name, raw)| Ok((find(&name)?, Json::Text(Cow::Owned(raw.get().to_owned())))))
                .collect::<Result<_, InputError>>()?
        }
        other => {
            let problem = format!("{}, expected an object", other.kind());
            return Err(wrong(place.object(), problem).into());
        }
    };
    for (at, (column, value)) in read.iter().enumerate() {
        if read[..at].iter().any(|(known, _)| known == column) {
            let name = &relation.column(*column).field;
            return Err(wrong(place.column(name), "given twice".to_owned()).into());
        }
        let place = || place.column(&relation.column(*column).field);
        require_text(relation, *column, value, place)?;
    }
    Ok(read)
}

/// Returns an error if PostgreSQL computes the values of the column.
pub(crate) fn require_given(column: &Column, place: impl Fn() -> String) -> Result<(), InputError> {
    if column.identity == Some(IdentityKind::Always) || column.generated.is_some() {
        let problem = "PostgreSQL computes the column itself (GENERATED ALWAYS)".to_owned();
        return Err(wrong(place(), problem));
    }
    Ok(())
}

/// Returns an error if a number or a boolean is given for a column that takes only text. A number
/// is accepted for a column of the primary key, because the column is an `ID`.
pub(crate) fn require_text(
    relation: &Relation,
    id: ColumnId,
    value: &Json<'_>,
    place: impl Fn() -> String,
) -> Result<(), InputError> {
    let column = relation.column(id);
    let Some(found) = non_text_kind(column, relation.is_key(id), value) else {
        return Ok(());
    };
    Err(InputError::Value(ValueError::InvalidValue {
        place: place(),
        expected: match column.r#type.kind() {
            TypeKind::Array(element) => format!("{}[]", element.name()),
            _ => column.r#type.name().to_owned(),
        },
        problem: format!("{found}, expected a string"),
    }))
}

fn is_object(text: &str) -> bool {
    text.trim_ascii_start().starts_with('{')
}

fn unreadable(place: &ObjectPath, error: &serde_json::Error) -> InputError {
    wrong(place.object(), tidegate_values::json::problem(error))
}

fn wrong(field: String, problem: String) -> InputError {
    InputError::InvalidField { field, problem }
}

/// The statement that inserts a group.
///
/// # Errors
///
/// [`ValueError::InvalidValue`], with the path of a value that does not fit its column.
pub(crate) fn insert(
    schema: &Schema,
    relation: RelationId,
    wanted: &Insert<'_>,
    group: &InsertGroup<'_>,
    program: &Program,
) -> Result<BoundStatement> {
    let model = schema.relation(relation);
    let mut sql = SqlWriter::new();
    sql.syntax("insert into ");
    target(schema, relation, &mut sql);
    sql.syntax(" as t0");
    let mut separator = " (";
    for column in &group.columns {
        sql.syntax(separator)
            .identifier(&model.column(*column).name);
        separator = ", ";
    }
    match (&group.columns[..], &group.objects[..]) {
        ([], _) => {
            sql.syntax(" default values");
        }
        (_, [object]) => one(model, wanted.listed, *object, group, &mut sql),
        _ => many(model, group, &mut sql)?,
    }
    if let Some(conflict) = &wanted.on_conflict {
        on_conflict(model, conflict, &mut sql);
    }
    returning(schema, program, &mut sql);
    let mut bound = sql.finish(Kind::Write);
    if group.columns.is_empty() {
        // The objects have no columns, so the statement inserts a row of defaults. Each object gets
        // an empty parameter set, so that the statement runs once for each object.
        bound.sets = group.objects.iter().map(|_| Vec::new()).collect();
    }
    Ok(bound)
}

/// Appends the values of an insert of one object. PostgreSQL infers the types of the parameters
/// from the columns.
fn one(
    relation: &Relation,
    listed: bool,
    object: u32,
    group: &InsertGroup<'_>,
    sql: &mut SqlWriter,
) {
    let place = ObjectPath {
        listed,
        object: object as usize,
    };
    let mut separator = ") values (";
    for (id, value) in group.columns.iter().zip(&group.values) {
        let column = relation.column(*id);
        sql.syntax(separator)
            .placed(value.parameter(), place.column(&column.field));
        separator = ", ";
    }
    sql.syntax(")");
}

/// Appends the values of several objects as one array for each column. `unnest` returns one row for
/// each object, in the order of the objects.
fn many(relation: &Relation, group: &InsertGroup<'_>, sql: &mut SqlWriter) -> Result<()> {
    let mut separator = ") select ";
    for (at, id) in group.columns.iter().enumerate() {
        sql.syntax(separator).numbered("u.c", at);
        separator = ", ";
        if let ArrayElements::Texts(r#type) = ArrayElements::of(&relation.column(*id).r#type) {
            sql.syntax("::");
            type_name(r#type, sql);
        }
    }
    separator = " from rows from (pg_catalog.unnest(";
    for (at, id) in group.columns.iter().enumerate() {
        let column = relation.column(*id);
        sql.syntax(separator);
        separator = "), pg_catalog.unnest(";
        let values = column_values(column, group, at)?;
        sql.placed(values, [MANY, &column.field].concat())
            .syntax("::");
        ArrayElements::of(&column.r#type).write(sql);
    }
    sql.syntax(")) u(");
    for at in 0..group.columns.len() {
        sql.syntax(if at == 0 { "" } else { ", " })
            .numbered("c", at);
    }
    sql.syntax(")");
    Ok(())
}

/// The array literal with a column's values.
fn column_values(column: &Column, group: &InsertGroup<'_>, at: usize) -> Result<Parameter> {
    let width = group.columns.len();
    let mut array = String::with_capacity(group.objects.len() * 16);
    let mut text = BytesMut::new();
    array.push('{');
    let values = group.values.iter().skip(at).step_by(width);
    for (row, (object, value)) in group.objects.iter().zip(values).enumerate() {
        if row > 0 {
            array.push(',');
        }
        let place = || {
            ObjectPath {
                listed: true,
                object: *object as usize,
            }
            .column(&column.field)
        };
        text.clear();
        let encoded =
            parameter::encode(&value.parameter(), &column.r#type, None, &place, &mut text);
        match encoded.map_err(InputError::from)? {
            IsNull::Yes => array.push_str("NULL"),
            IsNull::No => push_element(&String::from_utf8_lossy(&text), &mut array),
        }
    }
    array.push('}');
    Ok(Parameter::Text(array.into()))
}

/// The path of the value that PostgreSQL rejected in the insert of a group; `None` if the value is
/// not found. If the error is about a length or precision, the function finds the first value that
/// exceeds the limit of its column. Otherwise it searches the values of the reported column, and
/// finds the first one that the error message quotes. `listed` is true if the request has a list of
/// objects.
pub(crate) fn locate(
    relation: &Relation,
    listed: bool,
    group: &InsertGroup<'_>,
    rejection: &DatabaseError,
) -> Option<String> {
    let place = |object: usize| ObjectPath {
        listed,
        object: group.objects[object] as usize,
    };
    let width = group.columns.len();
    if let Some(overflow) = Overflow::of(rejection) {
        let column = |at: usize| relation.column(group.columns[at % width]);
        let mut values = group.values.iter().enumerate();
        let (at, _) = values.find(|(at, value)| overflow.is_in(column(*at), value))?;
        return Some(place(at / width).column(&column(at).field));
    }
    let field = rejection.place.as_deref()?.strip_prefix(MANY)?;
    let named = |id: &ColumnId| *relation.column(*id).field == *field;
    let at = group.columns.iter().position(named)?;
    let column = relation.column(group.columns[at]);
    let mut values = group.values.iter().skip(at).step_by(width);
    let quoted = |value: &Json<'_>| {
        let text = column_text(column, value);
        text.is_some_and(|text| rejection.message.contains(&format!("\"{text}\"")))
    };
    let object = values.position(quoted)?;
    Some(place(object).column(field))
}

/// The prefix of the path of a parameter that has the values of a column for all objects.
const MANY: &str = "objects[].";

fn on_conflict(relation: &Relation, conflict: &OnConflict, sql: &mut SqlWriter) {
    match &conflict.target {
        ConflictTarget::Constraint(name) => {
            sql.syntax(" on conflict on constraint ").identifier(name);
        }
        ConflictTarget::Columns(columns) => {
            let mut separator = " on conflict (";
            for column in columns {
                sql.syntax(separator)
                    .identifier(&relation.column(*column).name);
                separator = ", ";
            }
            sql.syntax(")");
        }
    }
    if conflict.update.is_empty() {
        sql.syntax(" do nothing");
    }
    let mut separator = " do update set ";
    for column in &conflict.update {
        let name = &relation.column(*column).name;
        sql.syntax(separator).identifier(name);
        sql.syntax(" = excluded.").identifier(name);
        separator = ", ";
    }
}
