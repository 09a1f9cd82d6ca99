//! Parses the JSON of a request into a filter.

mod path;
mod target;
mod value;

pub use self::value::non_text_kind;
pub(crate) use self::value::{contained_element_type, is_range_text};

use serde_json::value::RawValue;
use tidegate_catalog::{ColumnId, Relation, RelationId, Schema};
use tidegate_values::json::JsonKind;

pub(crate) use self::path::Path;
pub(crate) use self::target::{Compared, ComparedColumn};
use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::json::Json;
use crate::operator::Operator;
use crate::type_class::TypeClass;

/// The deepest nesting of objects that is accepted.
pub(crate) const MAX_DEPTH: usize = 32;
/// The largest number of conditions in a filter. Most conditions have one parameter, and PostgreSQL
/// accepts at most 65,535 parameters in a statement.
pub(crate) const MAX_CONDITIONS: usize = 10_000;

impl Filter {
    /// Parses the JSON of a `where` over the rows of `relation`.
    ///
    /// `place` is the name of the value in errors, such as `where`. Null and `{}` give an
    /// [empty](Filter::is_empty) filter. A key of the object is a column, by its field name or its
    /// PostgreSQL name; a relationship; or `and`, `or` or `not` in any letter case. A column or
    /// relationship that is named exactly like the key takes precedence. Beside a column `and`, for
    /// example, the key for a conjunction must be written in another letter case, such as `AND`.
    ///
    /// # Errors
    ///
    /// An [`Error`] with the path of the problem: an unknown name or operator, a value of the wrong
    /// kind or out of its type's range, objects that are nested too deeply, or too many conditions.
    /// Other invalid values, such as the date 2026-02-30, are rejected by PostgreSQL when the
    /// statement runs. [`BoundStatement::place`](tidegate_sql::BoundStatement::place) gives the
    /// path of such a value.
    pub fn parse(
        json: &Json<'_>,
        schema: &Schema,
        relation: RelationId,
        place: &str,
    ) -> Result<Self> {
        let root = Path::Root(place);
        match json.kind() {
            JsonKind::Null => Ok(Self::everything()),
            JsonKind::Object => FilterParser::new(schema).object(json, relation, &root, 1),
            _ => Err(json.not(&root, "an object")),
        }
    }

    /// A filter for the rows whose column equals the value `json`, which must not be null.
    ///
    /// GraphQL writes an `ID` as a string. So for a jsonb column, a string is parsed as JSON, and
    /// the column is compared with the result. A string that is not JSON, or is `null`, is compared
    /// as a string.
    ///
    /// # Errors
    ///
    /// As [`Filter::parse`].
    pub fn equals(
        json: &Json<'_>,
        relation: &Relation,
        column: ColumnId,
        place: &str,
    ) -> Result<Self> {
        let target = ComparedColumn::of(relation, column);
        let nested_json = (TypeClass::of(&target.column.r#type) == TypeClass::Jsonb)
            .then(|| nested_json(json))
            .flatten();
        let json = nested_json.as_ref().unwrap_or(json);
        target.compare(Operator::Eq, json, &Path::Root(place))
    }
}

/// The JSON value that the content of a JSON string describes. `None` if `json` is not a string, or
/// if its content is `null` or not JSON.
fn nested_json(json: &Json<'_>) -> Option<Json<'static>> {
    let text = json.string(&"").ok()?;
    serde_json::from_str::<&RawValue>(&text).ok()?;
    Some(Json::from(text.into_owned())).filter(|document| !document.is_null())
}

/// The state of parsing one filter.
struct FilterParser<'s> {
    schema: &'s Schema,
    conditions: usize,
}

impl<'s> FilterParser<'s> {
    fn new(schema: &'s Schema) -> Self {
        Self {
            schema,
            conditions: 0,
        }
    }

    /// Parses an object into the conjunction of its members.
    fn object(
        &mut self,
        json: &Json<'_>,
        relation: RelationId,
        path: &Path<'_>,
        depth: usize,
    ) -> Result<Filter> {
        if depth > MAX_DEPTH {
            return Err(Error::TooDeep {
                place: path.to_string(),
                most: MAX_DEPTH,
            });
        }
        let mut filters = Vec::new();
        for (name, value) in json.members(path)? {
            let path = Path::Member(path, &name);
            filters.push(self.member(&name, &value, relation, (&path, depth))?);
        }
        Ok(Filter::all(filters))
    }

    fn member(
        &mut self,
        name: &str,
        value: &Json<'_>,
        relation: RelationId,
        (path, depth): (&Path<'_>, usize),
    ) -> Result<Filter> {
        let found = self.schema.relation(relation);
        if let Some(id) = found.find_column(name) {
            return self.column(&ComparedColumn::of(found, id), value, path);
        }
        if let Some(id) = found.find_relationship(name) {
            let target = found.relationship(id).target;
            self.count(path)?;
            let inner = self.object(value, target, path, depth + 1)?;
            return Ok(Filter::Exists(id, Box::new(inner)));
        }
        let is = |word: &str| name.eq_ignore_ascii_case(word);
        if is("and") {
            return Ok(Filter::all(self.list(value, relation, path, depth)?));
        }
        if is("or") {
            return self.any(value, relation, path, depth);
        }
        if is("not") {
            let inner = match value.kind() {
                JsonKind::Array => Filter::all(self.list(value, relation, path, depth)?),
                JsonKind::Object => self.object(value, relation, path, depth + 1)?,
                _ => return Err(value.not(path, "an object, or an array of objects")),
            };
            return Ok(Filter::Not(Box::new(inner)));
        }
        Err(Error::UnknownName {
            place: path.to_string(),
            relation: found.name.clone(),
        })
    }

    fn any(
        &mut self,
        value: &Json<'_>,
        relation: RelationId,
        path: &Path<'_>,
        depth: usize,
    ) -> Result<Filter> {
        let mut filters = self.list(value, relation, path, depth)?;
        Ok(match filters.len() {
            1 => filters.swap_remove(0),
            _ => Filter::Any(filters),
        })
    }

    /// Parses an array of objects into filters.
    fn list(
        &mut self,
        value: &Json<'_>,
        relation: RelationId,
        path: &Path<'_>,
        depth: usize,
    ) -> Result<Vec<Filter>> {
        if value.kind() != JsonKind::Array {
            return Err(value.not(path, "an array of objects"));
        }
        let elements = value.elements(path)?.into_iter().enumerate();
        elements
            .map(|(index, element)| {
                let path = Path::Element(path, index);
                self.object(&element, relation, &path, depth + 1)
            })
            .collect()
    }

    /// Parses the operand of a column: a value, or an object of operators.
    fn column(
        &mut self,
        target: &ComparedColumn<'_>,
        value: &Json<'_>,
        path: &Path<'_>,
    ) -> Result<Filter> {
        match value.kind() {
            JsonKind::Null => {
                self.count(path)?;
                Ok(target.null(Operator::IsNull, path))
            }
            JsonKind::Object => {
                let members = value.members(path)?;
                if target.is_value(&members, path)? {
                    self.count(path)?;
                    return target.compare(Operator::Eq, value, path);
                }
                let mut filters = Vec::with_capacity(members.len());
                for (name, value) in members {
                    let path = Path::Member(path, &name);
                    self.count(&path)?;
                    filters.push(target.operator(&name, &value, &path)?);
                }
                Ok(Filter::all(filters))
            }
            _ => {
                self.count(path)?;
                target.compare(Operator::Eq, value, path)
            }
        }
    }

    fn count(&mut self, path: &Path<'_>) -> Result<()> {
        self.conditions += 1;
        if self.conditions > MAX_CONDITIONS {
            return Err(Error::TooLarge {
                place: path.to_string(),
                most: MAX_CONDITIONS,
            });
        }
        Ok(())
    }
}
