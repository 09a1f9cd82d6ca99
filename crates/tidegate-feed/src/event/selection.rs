//! The columns that events contain, and their forms.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use bytes::BytesMut;
use tidegate_values::Column;

/// The selected contents of events. Subscriptions with equal selections share encoded rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Selection {
    /// The members of the JSON object, in this order.
    pub columns: Box<[SelectedColumn]>,
    /// Whether events list the names of the primary key's columns. If they do, these columns must
    /// be among `columns`.
    pub key: bool,
}

/// A member of an event's JSON object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SelectedColumn {
    /// The name of the member.
    pub key: Box<str>,
    /// The column whose value is written. It is ignored for [`ValueForm::Text`].
    pub column: Box<str>,
    /// The form of the value.
    pub form: ValueForm,
}

/// The form of a value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum ValueForm {
    /// JSON in the same form as in responses of the SQL endpoint.
    #[default]
    Json,
    /// A JSON string, regardless of the type.
    String,
    /// A form with its own writer.
    Custom(CustomForm),
    /// A constant text. The column is not read.
    Text(Box<str>),
}

/// A form with its own writer, such as the form of a GraphQL field. Two forms are equal if their
/// names are equal.
#[derive(Clone)]
pub struct CustomForm {
    name: Arc<str>,
    /// Whether the value must not be null.
    pub(crate) not_null: bool,
    /// Creates the writer for a column.
    pub(crate) writer: MakeCustomWriter,
}

type MakeCustomWriter = Arc<dyn Fn(Column) -> CustomWriter + Send + Sync>;

/// Appends a value, given in PostgreSQL's text form, to the buffer as JSON. Adds an
/// error to the list for each part of the value that JSON of this form cannot represent; such a
/// part becomes null. Returns `false` if this makes the whole value null; the caller then discards
/// the appended text.
///
/// # Errors
///
/// If the bytes are not a value of the column's type.
pub type CustomWriter = Box<
    dyn Fn(&[u8], &mut BytesMut, &mut Vec<FieldError>) -> tidegate_sql::Result<bool> + Send + Sync,
>;

/// An error for a value that a form cannot represent. The event contains null in place of the
/// value. If the value must not be null, the whole row is null.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The path to the value. In errors that a [`CustomWriter`] adds, the path starts at the
    /// column's value. In an event it starts at the row.
    pub path: Vec<PathSegment>,
    /// Why the value cannot be represented.
    pub problem: &'static str,
}

/// A segment of [`FieldError::path`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathSegment {
    /// The name of a member of an object.
    Key(Arc<str>),
    /// The index of an element of a list, from 0.
    Index(usize),
}

impl CustomForm {
    /// Creates a form. Forms with equal names must write values in the same way. `not_null` says
    /// that the value must not be null. `writer` creates the writer for a column of the change log.
    pub fn new(
        name: impl Into<Arc<str>>,
        not_null: bool,
        writer: impl Fn(Column) -> CustomWriter + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            not_null,
            writer: Arc::new(writer),
        }
    }
}

impl PartialEq for CustomForm {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for CustomForm {}

impl Hash for CustomForm {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl fmt::Debug for CustomForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CustomForm").field(&self.name).finish()
    }
}

impl Selection {
    /// Selects columns under their own names, in the form [`ValueForm::Json`].
    pub fn of<'a>(columns: impl IntoIterator<Item = &'a str>) -> Self {
        let selected = |column: &str| SelectedColumn {
            key: column.into(),
            column: column.into(),
            form: ValueForm::Json,
        };
        Self {
            columns: columns.into_iter().map(selected).collect(),
            key: false,
        }
    }

    /// The same selection, but with the names of the primary key's columns in events.
    #[must_use]
    pub fn with_key(self) -> Self {
        Self { key: true, ..self }
    }

    /// The names of the columns whose values are read.
    pub fn column_names(&self) -> impl Iterator<Item = &str> {
        let is_read = |column: &&SelectedColumn| !matches!(column.form, ValueForm::Text(_));
        self.columns
            .iter()
            .filter(is_read)
            .map(|column| &*column.column)
    }
}
