//! Which columns an event shows, and how.

use bytes::{Bytes, BytesMut};
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
    /// As GraphQL shows it: numbers that a double cannot hold exactly are strings.
    Exact,
    /// As a GraphQL `ID`: a number is a string.
    Quoted,
    /// Always this text, whatever the row is; the column is not looked at.
    Text(Box<str>),
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
    writer: ValueWriter,
    /// Whether the text of the value stands in a string.
    plain: bool,
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
            let writer = ValueWriter::new(&wire);
            members.push(Member {
                prefix: text.split().freeze(),
                column,
                writer: match selected.form {
                    ValueForm::Exact => writer.exact(),
                    ValueForm::Quoted => writer.quoted(),
                    _ => writer,
                },
                plain: selected.form == ValueForm::String,
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
        if !self.plain {
            return self.writer.json(raw, out).map_err(malformed);
        }
        let mut plain = BytesMut::new();
        self.writer.plain(raw, &mut plain).map_err(malformed)?;
        json_string(&plain, out);
        Ok(())
    }
}
