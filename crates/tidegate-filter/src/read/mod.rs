//! From the JSON of a request to a filter.

mod path;
mod target;
mod text;
mod value;

pub use self::text::no_text;
pub(crate) use self::value::{is_range_text, part};

use serde_json::value::RawValue;
use tidegate_catalog::{ColumnId, Relation, RelationId, Schema};
use tidegate_values::json::JsonKind;

pub(crate) use self::path::Path;
pub(crate) use self::target::{Compared, Target};
use crate::error::{Error, Result};
use crate::family::Family;
use crate::filter::Filter;
use crate::json::Json;
use crate::operator::Operator;

/// How many objects may stand inside each other.
pub(crate) const DEEPEST: usize = 32;
/// How many conditions a filter may have. PostgreSQL takes 65,535 parameters in a statement.
pub(crate) const MOST_CONDITIONS: usize = 10_000;

impl Filter {
    /// Reads the JSON of a `where` over the rows of `relation`.
    ///
    /// `place` is how errors call it, such as `where`. Null and `{}` say nothing: the filter
    /// [is empty](Filter::is_empty). A key is a column, by its field name or its name in
    /// PostgreSQL; a relationship; or `and`, `or`, `not` in any letter case. A column of exactly
    /// that name wins, and the combinator is then to be had in another letter case.
    ///
    /// # Errors
    ///
    /// An [`Error`] that names the path: an unknown name or operator, a value of the wrong kind or
    /// out of its type's range, and objects nested too deeply. What only PostgreSQL can tell, such
    /// as a date that does not exist, is refused by PostgreSQL; [`Filter::place_of`] tells then
    /// where the value stood.
    pub fn parse(
        json: &Json<'_>,
        schema: &Schema,
        relation: RelationId,
        place: &str,
    ) -> Result<Self> {
        let root = Path::Root(place);
        match json.kind() {
            JsonKind::Null => Ok(Self::everything()),
            JsonKind::Object => Reader::new(schema).object(json, relation, &root, 1),
            _ => Err(json.not(&root, "an object")),
        }
    }

    /// The rows whose column has this value, which must not be null. A string for a jsonb column is
    /// the text of its value, as an ID of one is shown, or is the value where it is no such text.
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
        let target = Target::of(relation, column);
        let shown = (Family::of(&target.column.r#type) == Family::Jsonb)
            .then(|| shown(json))
            .flatten();
        let json = shown.as_ref().unwrap_or(json);
        target.compare(Operator::Eq, json, &Path::Root(place))
    }
}

/// The document that a JSON string holds.
fn shown(json: &Json<'_>) -> Option<Json<'static>> {
    let text = json.string(&"").ok()?;
    serde_json::from_str::<&RawValue>(&text).ok()?;
    Some(Json::from(text.into_owned())).filter(|document| !document.is_null())
}

/// Reads one filter.
struct Reader<'s> {
    schema: &'s Schema,
    conditions: usize,
}

impl<'s> Reader<'s> {
    fn new(schema: &'s Schema) -> Self {
        Self {
            schema,
            conditions: 0,
        }
    }

    /// An object: all of its members.
    fn object(
        &mut self,
        json: &Json<'_>,
        relation: RelationId,
        path: &Path<'_>,
        depth: usize,
    ) -> Result<Filter> {
        if depth > DEEPEST {
            return Err(Error::TooDeep {
                place: path.to_string(),
                most: DEEPEST,
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
            return self.column(&Target::of(found, id), value, path);
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

    /// An array of objects.
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

    /// A column's value or its object of operators.
    fn column(&mut self, target: &Target<'_>, value: &Json<'_>, path: &Path<'_>) -> Result<Filter> {
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
        if self.conditions > MOST_CONDITIONS {
            return Err(Error::TooLarge {
                place: path.to_string(),
                most: MOST_CONDITIONS,
            });
        }
        Ok(())
    }
}
