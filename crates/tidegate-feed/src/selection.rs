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
    /// Whether events tell which columns the primary key has; they must be among those shown.
    pub key: bool,
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
    not_null: bool,
    writer: MakeWriter,
}

type MakeWriter = Arc<dyn Fn(Column) -> WriteShown + Send + Sync>;

/// Appends a value, given as PostgreSQL's text, as JSON; tells whether the form can show it, and
/// adds what it cannot show of it.
///
/// # Errors
/// The bytes are no value of the column's type.
pub type WriteShown =
    Box<dyn Fn(&[u8], &mut BytesMut, &mut Vec<Flaw>) -> tidegate_sql::Result<bool> + Send + Sync>;

/// Something that a form cannot show: null stands in its place, or in that of the row where the
/// value must not be null.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// The way to it: from the value on when a writer tells it, from the row on in an event.
    pub path: Vec<Step>,
    /// Why it cannot be shown.
    pub problem: &'static str,
}

/// A step of the way to a flaw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The member of an object.
    Key(Arc<str>),
    /// The element of a list, from 0.
    Index(usize),
}

/// A row as events show it.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    /// An object, or null.
    pub(crate) row: Bytes,
    /// What could not be shown.
    pub(crate) flaws: Option<Arc<[Flaw]>>,
    /// The columns of the primary key, where that is asked for and known.
    pub(crate) key: Option<Arc<[Box<str>]>>,
}

impl Shown {
    /// A form by its name, which is the same for forms that write alike, whether it must not be
    /// null, and what makes the writer for a column as the log tells it.
    pub fn new(
        name: impl Into<Arc<str>>,
        not_null: bool,
        writer: impl Fn(Column) -> WriteShown + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            not_null,
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
            key: false,
        }
    }

    /// The same with the columns of the primary key.
    #[must_use]
    pub fn with_key(self) -> Self {
        Self { key: true, ..self }
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
    /// The primary key has a column that is not shown.
    OtherKey,
}

/// A selection for one shape.
#[derive(Debug)]
pub(crate) struct Encoder {
    members: Box<[Member]>,
    /// What stands behind the last value.
    end: Bytes,
    key: Option<Arc<[Box<str>]>>,
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
    Shown(ShownWay),
}

/// Somebody else's way.
struct ShownWay {
    key: Arc<str>,
    not_null: bool,
    write: WriteShown,
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
                ValueForm::Shown(shown) => Way::Shown(ShownWay {
                    key: (&*selected.key).into(),
                    not_null: shown.not_null,
                    write: (shown.writer)(wire),
                }),
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
        let key = shape.primary().filter(|_| selection.key);
        let is_shown = |name: &str| selection.names().any(|shown| shown == name);
        if key.is_some_and(|key| !key.iter().all(|name| is_shown(name))) {
            return Err(Unshowable::OtherKey);
        }
        Ok(Self {
            members: members.into(),
            end: text.freeze(),
            key: key.cloned(),
        })
    }

    /// The row as an object; null where a value that must not be null cannot be shown.
    pub(crate) fn encode(&self, row: Row<'_>) -> Result<Image, Unshowable> {
        let mut out = BytesMut::with_capacity(64 + 24 * self.members.len());
        let mut flaws = Vec::new();
        for member in &self.members {
            out.extend_from_slice(&member.prefix);
            let shown = match row.value(member.column) {
                Value::Null => {
                    out.extend_from_slice(b"null");
                    true
                }
                Value::Absent => return Err(Unshowable::Absent),
                Value::Text(raw) => member.write(raw, &mut out, &mut flaws)?,
            };
            if !shown {
                return Ok(Image {
                    row: Bytes::from_static(b"null"),
                    flaws: Some(flaws.into()),
                    key: self.key.clone(),
                });
            }
        }
        out.extend_from_slice(&self.end);
        Ok(Image {
            row: out.freeze(),
            flaws: (!flaws.is_empty()).then(|| flaws.into()),
            key: self.key.clone(),
        })
    }
}

impl Member {
    /// Appends a value; says whether the row can be shown with it.
    fn write(
        &self,
        raw: &[u8],
        out: &mut BytesMut,
        flaws: &mut Vec<Flaw>,
    ) -> Result<bool, Unshowable> {
        match &self.way {
            Way::Json(writer) => writer.json(raw, out).map_err(|_| Unshowable::Malformed)?,
            Way::String(writer) => {
                let mut plain = BytesMut::new();
                writer
                    .plain(raw, &mut plain)
                    .map_err(|_| Unshowable::Malformed)?;
                json_string(&plain, out);
            }
            Way::Shown(shown) => {
                let shown = shown.write(raw, out, flaws);
                return shown.map_err(|_| Unshowable::Malformed);
            }
        }
        Ok(true)
    }
}

impl ShownWay {
    fn write(
        &self,
        raw: &[u8],
        out: &mut BytesMut,
        flaws: &mut Vec<Flaw>,
    ) -> tidegate_sql::Result<bool> {
        let (start, known) = (out.len(), flaws.len());
        let shown = (self.write)(raw, out, flaws)?;
        for flaw in &mut flaws[known..] {
            flaw.path.insert(0, Step::Key(self.key.clone()));
        }
        if !shown {
            out.truncate(start);
            out.extend_from_slice(b"null");
        }
        Ok(shown || !self.not_null)
    }
}
