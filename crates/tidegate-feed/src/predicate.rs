//! Which rows a subscription wants: a filter of the where language, ready for what a table is like
//! at a place of the log.

use std::collections::HashMap;
use std::sync::Arc;

use tidegate_catalog::{ColumnId, Relation};
use tidegate_filter::{Filter, Image, Key, KeyReader, Letters, Matcher, Verdict};
use tidegate_sql::{Type, TypeKind};

use crate::change::Row;
use crate::pgoutput::Value;
use crate::shape::Shape;

/// A filter that is judged on images of rows.
#[derive(Clone, Debug)]
pub struct Predicate {
    matcher: Arc<Matcher>,
    /// The columns of the relation that it was compiled for; those that it looks at have a name.
    columns: Arc<[Option<Looked>]>,
    equality: Option<Arc<Equality>>,
}

/// A column that a filter looks at.
#[derive(Clone, Debug)]
struct Looked {
    name: Box<str>,
    r#type: Type,
}

/// A column that equals one of some values in every row that passes.
#[derive(Clone, Debug)]
pub(crate) struct Equality {
    id: ColumnId,
    pub(crate) column: Box<str>,
    pub(crate) r#type: Type,
    pub(crate) keys: Vec<Key<'static>>,
    pub(crate) reader: KeyReader,
}

impl Predicate {
    /// Compiles a filter over the rows of a relation.
    ///
    /// # Errors
    /// Those of [`Matcher::compile`]: what cannot be judged exactly outside the database.
    pub fn new(filter: &Filter, relation: &Relation) -> tidegate_filter::Result<Self> {
        let matcher = Matcher::compile(filter, relation)?;
        let mut columns = vec![None; relation.columns.len()];
        for id in matcher.columns() {
            let column = relation.column(*id);
            columns[id.index()] = Some(Looked {
                name: column.name.clone(),
                r#type: base(&column.r#type).clone(),
            });
        }
        // The pin with the fewest values sorts out the most.
        let pins = matcher.pins().iter().filter_map(|pin| {
            let column = relation.column(pin.column);
            Some(Equality {
                id: pin.column,
                column: column.name.clone(),
                r#type: column.r#type.clone(),
                keys: pin.keys.clone(),
                reader: KeyReader::new(column)?,
            })
        });
        let equality = pins.min_by_key(|equality| equality.keys.len());
        Ok(Self {
            columns: columns.into(),
            equality: equality.map(Arc::new),
            matcher: Arc::new(matcher),
        })
    }

    /// The columns that it looks at.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().flatten().map(|column| &*column.name)
    }

    /// The columns whose letters it folds by the rules of their collations.
    pub(crate) fn folding(&self) -> Vec<&str> {
        let named = |id: ColumnId| Some(&*self.columns[id.index()].as_ref()?.name);
        self.matcher
            .folding()
            .into_iter()
            .filter_map(named)
            .collect()
    }

    /// Takes the rules of collations, by the names of columns.
    pub(crate) fn learn(&mut self, letters: &HashMap<Box<str>, Arc<Letters>>) {
        let of = |id: ColumnId| {
            let looked = self.columns[id.index()].as_ref()?;
            letters.get(&looked.name).cloned()
        };
        self.matcher = Arc::new(self.matcher.with_letters(&of));
    }

    pub(crate) fn equality(&self) -> Option<&Arc<Equality>> {
        self.equality.as_ref()
    }

    /// Finds the columns in a shape.
    ///
    /// # Errors
    /// What does not fit, in words.
    pub(crate) fn place(&self, shape: &Shape) -> Result<Placed, String> {
        let mut places = Vec::with_capacity(self.columns.len());
        let mut types = HashMap::new();
        for (id, column) in self.columns.iter().enumerate() {
            let Some(Looked { name, r#type }) = column else {
                places.push(usize::MAX);
                continue;
            };
            let at = shape
                .find(name)
                .ok_or_else(|| format!("the column `{name}` is gone"))?;
            let today = base(&shape.columns[at].r#type);
            if today != r#type {
                match relabelled(r#type, today) {
                    Some(true) => drop(types.insert(id, today.clone())),
                    Some(false) => {}
                    None => return Err(format!("the type of the column `{name}` is another one")),
                }
            }
            places.push(at);
        }
        let (matcher, equality) = self.relabel(&types)?;
        Ok(Placed {
            matcher,
            equality,
            places: places.into(),
        })
    }

    /// The filter and its equality for the labels that columns have today.
    fn relabel(
        &self,
        types: &HashMap<usize, Type>,
    ) -> Result<(Arc<Matcher>, Option<Arc<Equality>>), String> {
        if types.is_empty() {
            return Ok((self.matcher.clone(), self.equality.clone()));
        }
        let today = |id: ColumnId| labels(types.get(&id.index())?);
        let matcher = self.matcher.with_labels(&today);
        let matcher = matcher.ok_or("a label that it is compared with is gone")?;
        let equality = self.equality.as_ref().map(|equality| {
            let (Some(r#type), Some(today)) = (types.get(&equality.id.index()), today(equality.id))
            else {
                return equality.clone();
            };
            let mut pins = matcher.pins().iter();
            let pin =
                pins.find(|pin| pin.column == equality.id && pin.keys.len() == equality.keys.len());
            Arc::new(Equality {
                keys: pin.map_or_else(|| equality.keys.clone(), |pin| pin.keys.clone()),
                reader: equality.reader.with_labels(today),
                r#type: r#type.clone(),
                ..Equality::clone(equality)
            })
        });
        Ok((Arc::new(matcher), equality))
    }
}

/// Whether an enum has other labels than before; not where it has fewer, and is what is older.
/// `None` for another type.
fn relabelled(before: &Type, today: &Type) -> Option<bool> {
    match (before.kind(), today.kind()) {
        (TypeKind::Enum(known), TypeKind::Enum(labels)) if before.oid() == today.oid() => {
            Some(labels.len() >= known.len())
        }
        _ => None,
    }
}

/// The labels of an enum.
pub(crate) fn labels(r#type: &Type) -> Option<Arc<[String]>> {
    match base(r#type).kind() {
        TypeKind::Enum(labels) => Some(labels.as_slice().into()),
        _ => None,
    }
}

/// A type below its domains, which PostgreSQL does not tell of a column of a result.
pub(crate) fn base(r#type: &Type) -> &Type {
    match r#type.kind() {
        TypeKind::Domain(inner) => base(inner),
        _ => r#type,
    }
}

/// A filter on the rows of one shape.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    matcher: Arc<Matcher>,
    equality: Option<Arc<Equality>>,
    places: Box<[usize]>,
}

impl Placed {
    pub(crate) fn equality(&self) -> Option<&Arc<Equality>> {
        self.equality.as_ref()
    }

    /// Whether a row passes; `None` when that depends on what the log does not tell.
    pub(crate) fn passes(&self, row: Row<'_>) -> Option<bool> {
        let image = |id: ColumnId| {
            let at = self.places.get(id.index()).copied().unwrap_or(usize::MAX);
            image(row.value(at))
        };
        match self.matcher.judge(image) {
            Ok(Verdict::True) => Some(true),
            Ok(Verdict::False | Verdict::Unknown) => Some(false),
            Ok(Verdict::Undecided) | Err(_) => None,
        }
    }
}

/// A value as filters take it.
pub(crate) fn image(value: Value<'_>) -> Image<'_> {
    match value {
        Value::Null => Image::Null,
        Value::Text(text) => Image::Text(text),
        Value::Absent => Image::Missing,
    }
}
