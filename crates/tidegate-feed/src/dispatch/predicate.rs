//! The row filters of subscriptions: `where` conditions that are evaluated on the row images of the
//! change log.

use std::collections::HashMap;
use std::sync::Arc;

use tidegate_catalog::{ColumnId, Relation};
use tidegate_filter::{CaseFolding, ComparableKey, Filter, KeyReader, Matcher, RowValue, Truth};
use tidegate_values::{Type, TypeKind, base_type};

use crate::decode::change::Row;
use crate::decode::pgoutput::ColumnValue;
use crate::decode::schema::{RelationSchema, enum_labels};

/// A filter that is evaluated outside of PostgreSQL, on the row images of the change log.
#[derive(Clone, Debug)]
pub struct Predicate {
    matcher: Arc<Matcher>,
    /// One entry for each column of the relation for which the filter was compiled. `None` if the
    /// filter does not use the column.
    columns: Arc<[Option<FilteredColumn>]>,
    /// An equality that holds for every row that passes the filter. The index stores the
    /// subscription under this equality. `None` if there is no such equality.
    equality: Option<Arc<Equality>>,
}

#[derive(Clone, Debug)]
struct FilteredColumn {
    name: Box<str>,
    r#type: Type,
}

/// States that a column has one of the values `keys` in every row that passes the filter.
#[derive(Clone, Debug)]
pub(crate) struct Equality {
    id: ColumnId,
    pub(crate) column: Box<str>,
    pub(crate) r#type: Type,
    pub(crate) keys: Vec<ComparableKey<'static>>,
    pub(crate) reader: KeyReader,
}

impl Predicate {
    /// Compiles a filter over the rows of a relation.
    ///
    /// # Errors
    ///
    /// The errors of [`Matcher::compile`], if a condition cannot be evaluated exactly outside of
    /// PostgreSQL.
    pub fn new(filter: &Filter, relation: &Relation) -> tidegate_filter::Result<Self> {
        let matcher = Matcher::compile(filter, relation)?;
        let mut columns = vec![None; relation.columns.len()];
        for id in matcher.columns() {
            let column = relation.column(*id);
            columns[id.index()] = Some(FilteredColumn {
                name: column.name.clone(),
                r#type: base_type(&column.r#type).clone(),
            });
        }
        // The equality with the fewest values is used, because it probably excludes the most rows.
        let pins = matcher.required_values().iter().filter_map(|pin| {
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

    /// The columns that the filter uses.
    pub(crate) fn column_names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().flatten().map(|column| &*column.name)
    }

    /// The columns that the filter compares case-insensitively. The collation of each column
    /// decides how case is folded.
    pub(crate) fn case_folded_columns(&self) -> Vec<&str> {
        let named = |id: ColumnId| Some(&*self.columns[id.index()].as_ref()?.name);
        self.matcher
            .folding()
            .into_iter()
            .filter_map(named)
            .collect()
    }

    /// Sets the case folding of columns. The keys of the map are the names of the columns.
    pub(crate) fn set_case_folding(&mut self, case_folding: &HashMap<Box<str>, Arc<CaseFolding>>) {
        let of = |id: ColumnId| {
            let column = self.columns[id.index()].as_ref()?;
            case_folding.get(&column.name).cloned()
        };
        self.matcher = Arc::new(self.matcher.with_case_folding(&of));
    }

    pub(crate) fn equality(&self) -> Option<&Arc<Equality>> {
        self.equality.as_ref()
    }

    /// Binds the filter to a schema: finds the filter's columns in the schema, and uses the
    /// schema's labels for enums whose labels have changed.
    ///
    /// # Errors
    ///
    /// A description of the mismatch for the client.
    pub(crate) fn bind(&self, schema: &RelationSchema) -> Result<BoundPredicate, String> {
        let mut positions = Vec::with_capacity(self.columns.len());
        let mut types = HashMap::new();
        for (id, column) in self.columns.iter().enumerate() {
            let Some(FilteredColumn { name, r#type }) = column else {
                positions.push(usize::MAX);
                continue;
            };
            let at = schema
                .find(name)
                .ok_or_else(|| format!("the column `{name}` was dropped or renamed"))?;
            let current = base_type(&schema.columns[at].r#type);
            if current != r#type {
                match labels_changed(r#type, current) {
                    Some(true) => drop(types.insert(id, current.clone())),
                    Some(false) => {}
                    None => return Err(format!("the type of the column `{name}` has changed")),
                }
            }
            positions.push(at);
        }
        let (matcher, equality) = self.with_current_labels(&types)?;
        Ok(BoundPredicate {
            matcher,
            equality,
            positions: positions.into(),
        })
    }

    /// The matcher and the equality of the filter, both with the current labels of enums. `types`
    /// contains the current type of each enum column whose labels have changed. The key is the
    /// index of the column in the relation.
    fn with_current_labels(
        &self,
        types: &HashMap<usize, Type>,
    ) -> Result<(Arc<Matcher>, Option<Arc<Equality>>), String> {
        if types.is_empty() {
            return Ok((self.matcher.clone(), self.equality.clone()));
        }
        let current = |id: ColumnId| enum_labels(types.get(&id.index())?);
        let matcher = self.matcher.with_labels(&current);
        let matcher = matcher.ok_or("an enum label that the filter uses was renamed")?;
        let equality = self.equality.as_ref().map(|equality| {
            let (Some(r#type), Some(current)) =
                (types.get(&equality.id.index()), current(equality.id))
            else {
                return equality.clone();
            };
            let mut pins = matcher.required_values().iter();
            let pin =
                pins.find(|pin| pin.column == equality.id && pin.keys.len() == equality.keys.len());
            Arc::new(Equality {
                keys: pin.map_or_else(|| equality.keys.clone(), |pin| pin.keys.clone()),
                reader: equality.reader.with_labels(current),
                r#type: r#type.clone(),
                ..Equality::clone(equality)
            })
        });
        Ok((Arc::new(matcher), equality))
    }
}

/// Compares two different types. Returns `None` if they are not two states of the same enum.
/// Returns `false` if `current` has fewer labels than `before`, because `current` is then the older
/// state. Otherwise returns `true`: the labels of `current` have to replace those of `before`.
fn labels_changed(before: &Type, current: &Type) -> Option<bool> {
    match (before.kind(), current.kind()) {
        (TypeKind::Enum(known), TypeKind::Enum(labels)) if before.oid() == current.oid() => {
            Some(labels.len() >= known.len())
        }
        _ => None,
    }
}

/// A filter bound to one schema.
#[derive(Clone, Debug)]
pub(crate) struct BoundPredicate {
    matcher: Arc<Matcher>,
    equality: Option<Arc<Equality>>,
    /// For each column of the relation, the index of the column in the schema; `usize::MAX` if the
    /// filter does not use the column.
    positions: Box<[usize]>,
}

impl BoundPredicate {
    pub(crate) fn equality(&self) -> Option<&Arc<Equality>> {
        self.equality.as_ref()
    }

    /// Whether a row passes the filter. `None` if the result depends on a value that the change log
    /// does not contain, or on a malformed value.
    pub(crate) fn passes(&self, row: Row<'_>) -> Option<bool> {
        let value = |id: ColumnId| {
            let at = self
                .positions
                .get(id.index())
                .copied()
                .unwrap_or(usize::MAX);
            filter_value(row.value(at))
        };
        match self.matcher.evaluate(value) {
            Ok(Truth::True) => Some(true),
            Ok(Truth::False | Truth::Unknown) => Some(false),
            Ok(Truth::Undecided) | Err(_) => None,
        }
    }
}

/// Converts a value to the type that filters take.
pub(crate) fn filter_value(value: ColumnValue<'_>) -> RowValue<'_> {
    match value {
        ColumnValue::Null => RowValue::Null,
        ColumnValue::Text(text) => RowValue::Text(text),
        ColumnValue::Absent => RowValue::Missing,
    }
}
