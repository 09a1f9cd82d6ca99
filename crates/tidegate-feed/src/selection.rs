//! Which columns an event shows, and how.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tidegate_sql::Column;
use tidegate_sql::codec::{ValueWriter, json_string};

use crate::change::Row;
use crate::pgoutput::Value;
use crate::shape::Shape;

/// What an event shows of a row. Equal selections are encoded once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Selection {
    /// The members of the object, in order.
    pub columns: Box<[SelectedColumn]>,
}

/// A member of an event's object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SelectedColumn {
    /// The member's name.
    pub key: Box<str>,
    /// The column.
    pub column: Box<str>,
    /// How its value is written.
    pub form: ValueForm,
}

/// How a value is written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum ValueForm {
    /// As the SQL endpoint writes it.
    #[default]
    Json,
    /// As a JSON string, whatever it is.
    String,
    /// As somebody else writes it.
    Shown(Shown),
    /// Always this text, whatever the row is; the column is not looked at.
    Text(Box<str>),
}

/// A form that is not known here.
#[derive(Clone)]
pub struct Shown {
    name: Arc<str>,
    writer: MakeWriter,
}

type MakeWriter = Arc<dyn Fn(Column) -> WriteShown + Send + Sync>;

/// Appends a value, given as PostgreSQL's text, as JSON; tells whether the form can show it.
///
/// # Errors
/// The bytes are no value of the column's type.
pub type WriteShown = Box<dyn Fn(&[u8], &mut BytesMut) -> tidegate_sql::Result<bool> + Send + Sync>;

impl Shown {
    /// A form by its name, which is the same for forms that write alike, and what makes the writer
    /// for a column as the log tells it.
    pub fn new(
        name: impl Into<Arc<str>>,
        writer: impl Fn(Column) -> WriteShown + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            writer: Arc::new(writer),
        }
    }
}

impl PartialEq for Shown {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Shown {}

impl Hash for Shown {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Shown").field(&self.name).finish()
    }
}

impl Selection {
    /// Columns by their own names, as the SQL endpoint writes them.
    pub fn of<'a>(columns: impl IntoIterator<Item = &'a str>) -> Self {
        let selected = |column: &str| SelectedColumn {
            key: column.into(),
            column: column.into(),
            form: ValueForm::Json,
        };
        Self {
            columns: columns.into_iter().map(selected).collect(),
        }
    }

    /// The columns that are shown.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let looked = |column: &&SelectedColumn| !matches!(column.form, ValueForm::Text(_));
        self.columns
            .iter()
            .filter(looked)
            .map(|column| &*column.column)
    }
}

/// Why an event cannot be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unshowable {
    /// The table has no such column any more.
    NoColumn(Box<str>),
    /// The log does not tell a value that is to be shown.
    Absent,
    /// A value is not of its type.
    Malformed,
    /// The form has no way to show a value.
    Formless,
}

/// A selection for one shape.
#[derive(Debug)]
pub(crate) struct Encoder {
    members: Box<[Member]>,
    /// What stands behind the last value.
    end: Bytes,
}

#[derive(Debug)]
struct Member {
    /// What stands before the value: `{"key":` or `,"key":`.
    prefix: Bytes,
    column: usize,
    way: Way,
}

/// How a value is written.
enum Way {
    Json(ValueWriter),
    /// Its text stands in a string.
    String(ValueWriter),
    Shown(WriteShown),
}

impl fmt::Debug for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Json(_) => "Json",
            Self::String(_) => "String",
            Self::Shown(_) => "Shown",
        })
    }
}

impl Encoder {
    pub(crate) fn new(selection: &Selection, shape: &Shape) -> Result<Self, Unshowable> {
        let mut text = BytesMut::from(&b"{"[..]);
        let mut members = Vec::with_capacity(selection.columns.len());
        for (at, selected) in selection.columns.iter().enumerate() {
            if at > 0 {
                text.extend_from_slice(b",");
            }
            json_string(selected.key.as_bytes(), &mut text);
            text.extend_from_slice(b":");
            if let ValueForm::Text(always) = &selected.form {
                json_string(always.as_bytes(), &mut text);
                continue;
            }
            let gone = || Unshowable::NoColumn(selected.column.clone());
            let column = shape.find(&selected.column).ok_or_else(gone)?;
            let wire = shape.wire_column(column).ok_or_else(gone)?;
            let way = match &selected.form {
                ValueForm::Shown(shown) => Way::Shown((shown.writer)(wire)),
                ValueForm::String => Way::String(ValueWriter::new(&wire)),
                ValueForm::Json | ValueForm::Text(_) => Way::Json(ValueWriter::new(&wire)),
            };
            let prefix = text.split().freeze();
            members.push(Member {
                prefix,
                column,
                way,
            });
        }
        text.extend_from_slice(b"}");
        Ok(Self {
            members: members.into(),
            end: text.freeze(),
        })
    }

    /// The row as an object.
    pub(crate) fn encode(&self, row: Row<'_>) -> Result<Bytes, Unshowable> {
        let mut out = BytesMut::with_capacity(64 + 24 * self.members.len());
        for member in &self.members {
            out.extend_from_slice(&member.prefix);
            match row.value(member.column) {
                Value::Null => out.extend_from_slice(b"null"),
                Value::Absent => return Err(Unshowable::Absent),
                Value::Text(raw) => member.write(raw, &mut out)?,
            }
        }
        out.extend_from_slice(&self.end);
        Ok(out.freeze())
    }
}

impl Member {
    fn write(&self, raw: &[u8], out: &mut BytesMut) -> Result<(), Unshowable> {
        let malformed = |_| Unshowable::Malformed;
        match &self.way {
            Way::Json(writer) => writer.json(raw, out).map_err(malformed),
            Way::String(writer) => {
                let mut plain = BytesMut::new();
                writer.plain(raw, &mut plain).map_err(malformed)?;
                json_string(&plain, out);
                Ok(())
            }
            Way::Shown(write) => {
                if write(raw, out).map_err(malformed)? {
                    Ok(())
                } else {
                    Err(Unshowable::Formless)
                }
            }
        }
    }
}
