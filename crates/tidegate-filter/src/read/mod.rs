//! From the JSON of a request to a filter.

mod path;
mod text;
mod value;

pub use self::text::no_text;
pub(crate) use self::value::{is_range_text, part};

use serde_json::value::RawValue;
use tidegate_catalog::model::Column;
use tidegate_catalog::{ColumnId, Relation, RelationId, Schema};
use tidegate_sql::json::JsonKind;
use tidegate_sql::{Parameter, Type};

pub(crate) use self::path::Path;
use crate::error::{Error, Result};
use crate::family::{Family, base, number_type, written};
use crate::filter::{Comparison, Filter};
use crate::json::{Json, Members};
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
                if target.is_value(&members) {
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

/// How PostgreSQL compares a column with a number of an SQL text (PostgreSQL, "Operators", type
/// resolution).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compared {
    /// As `double precision`.
    Real,
    /// As `numeric`, where the number is no integer of the column's type.
    Integer,
    /// As any other value.
    Other,
}

/// A column that is compared.
pub(crate) struct Target<'a> {
    pub(crate) id: ColumnId,
    pub(crate) column: &'a Column,
    /// Whether it belongs to the primary key: an ID may be a number, whatever the column holds.
    is_key: bool,
}

impl<'a> Target<'a> {
    pub(crate) fn of(relation: &'a Relation, id: ColumnId) -> Self {
        Self {
            id,
            column: relation.column(id),
            is_key: relation.is_key(id),
        }
    }
}

impl Target<'_> {
    /// Whether an object is a value of the column's type rather than operators: its keys tell.
    /// Nothing at all is no operators.
    fn is_value(&self, members: &Members<'_>) -> bool {
        Family::of(&self.column.r#type).takes_objects()
            && !members.is_empty()
            && members
                .iter()
                .all(|(name, _)| Operator::find(name).is_none())
    }

    /// One operator of a column's object.
    fn operator(&self, name: &str, value: &Json<'_>, path: &Path<'_>) -> Result<Filter> {
        let operator = Operator::find(name);
        let Some(operator) = operator.filter(|operator| self.has(*operator)) else {
            return Err(self.unknown(path));
        };
        if operator == Operator::IsNull {
            let operator = match &*value.text() {
                "true" => Operator::IsNull,
                "false" => Operator::IsNotNull,
                _ => return Err(value.not(path, "true or false")),
            };
            return Ok(self.null(operator, path));
        }
        match (operator, value.kind()) {
            (Operator::Eq, JsonKind::Null) => Ok(self.null(Operator::IsNull, path)),
            (Operator::Neq, JsonKind::Null) => Ok(self.null(Operator::IsNotNull, path)),
            _ => self.compare(operator, value, path),
        }
    }

    /// The error of an operator that the column's type does not have.
    fn unknown(&self, path: &Path<'_>) -> Error {
        let names: Vec<_> = Family::operators(&self.column.r#type)
            .map(|operator| format!("`{}`", operator.name()))
            .collect();
        Error::UnknownOperator {
            place: path.to_string(),
            r#type: written(&self.column.r#type),
            expected: names.join(", "),
        }
    }

    /// A comparison with a value that is not null.
    pub(crate) fn compare(
        &self,
        operator: Operator,
        value: &Json<'_>,
        path: &Path<'_>,
    ) -> Result<Filter> {
        self.check(operator, path)?;
        value::check(&self.column.r#type, operator, value, path)?;
        text::check(self, operator, value, path)?;
        match operator {
            Operator::In if value.elements(path)?.is_empty() => Ok(Filter::Any(Vec::new())),
            Operator::NotIn if value.elements(path)?.is_empty() => Ok(Filter::everything()),
            _ => Ok(self.comparison((operator, value.parameter()), false, path)),
        }
    }

    /// How PostgreSQL compares the column with a number of an SQL text.
    pub(crate) fn compared(&self) -> Compared {
        match *base(&self.column.r#type) {
            Type::FLOAT4 => Compared::Real,
            Type::INT2 | Type::INT4 | Type::INT8 => Compared::Integer,
            _ => Compared::Other,
        }
    }

    /// A comparison with a number of an SQL text, or with a list of such, by its own type: PostgreSQL
    /// compares `real` with one as `double precision`, and an integer as `numeric`.
    pub(crate) fn compare_number(
        &self,
        operator: Operator,
        value: &Json<'_>,
        path: &Path<'_>,
    ) -> Result<Filter> {
        self.check(operator, path)?;
        value::check(number_type(&self.column.r#type), operator, value, path)?;
        Ok(self.comparison((operator, value.parameter()), true, path))
    }

    pub(crate) fn null(&self, operator: Operator, path: &Path<'_>) -> Filter {
        self.comparison((operator, Parameter::Null), false, path)
    }

    fn comparison(
        &self,
        (operator, value): (Operator, Parameter),
        number: bool,
        path: &Path<'_>,
    ) -> Filter {
        Filter::Compare(Comparison {
            column: self.id,
            operator,
            value,
            number,
            place: path.to_string().into(),
        })
    }

    fn has(&self, operator: Operator) -> bool {
        Family::operators(&self.column.r#type).any(|own| own == operator)
    }

    /// Refuses an operator that the column's type does not have.
    fn check(&self, operator: Operator, path: &Path<'_>) -> Result<()> {
        if self.has(operator) {
            return Ok(());
        }
        Err(self.unknown(&Path::Member(path, operator.name())))
    }
}
