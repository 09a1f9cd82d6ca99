//! Passes values to and from tokio-postgres without conversion.

use std::error::Error as StdError;

use bytes::BytesMut;
use postgres_types::{Format, FromSql, IsNull, ToSql, Type};
use tidegate_sql::{BoundStatement, Error, Result};
use tidegate_values::parameter::{self, IsNull as Null};
use tidegate_values::{Column, Parameter, WireFormat};

type Refused = Box<dyn StdError + Sync + Send>;

/// The text form of a parameter, or NULL.
#[derive(Debug)]
pub(super) struct TextParameter(Option<BytesMut>);

impl TextParameter {
    /// The values of the parameter set with index `set`, for placeholders of these types.
    pub(super) fn of(bound: &BoundStatement, set: usize, types: &[Type]) -> Result<Vec<Self>> {
        let values = bound.sets.get(set).map_or(&[][..], Vec::as_slice);
        if values.len() != types.len() {
            return Err(Error::internal("as many values as placeholders are needed"));
        }
        let values = values.iter().zip(types).enumerate();
        values
            .map(|(place, (value, r#type))| Self::one(bound, (set, place), value, r#type))
            .collect()
    }

    fn one(
        bound: &BoundStatement,
        (set, place): (usize, usize),
        value: &Parameter,
        r#type: &Type,
    ) -> Result<Self> {
        match value {
            Parameter::Null => Ok(Self(None)),
            Parameter::Text(text) => Ok(Self(Some(text.as_bytes().into()))),
            Parameter::Json(_) => {
                let format = bound.formats.get(place).and_then(Option::as_ref);
                let mut text = BytesMut::new();
                let null = parameter::encode(
                    value,
                    r#type,
                    format,
                    &|| bound.place(set, place),
                    &mut text,
                )?;
                Ok(Self((null == Null::No).then_some(text)))
            }
        }
    }
}

impl ToSql for TextParameter {
    fn to_sql(&self, _type: &Type, out: &mut BytesMut) -> Result<IsNull, Refused> {
        let Some(text) = &self.0 else {
            return Ok(IsNull::Yes);
        };
        out.extend_from_slice(text);
        Ok(IsNull::No)
    }

    fn accepts(_type: &Type) -> bool {
        true
    }

    fn encode_format(&self, _type: &Type) -> Format {
        Format::Text
    }

    fn to_sql_checked(&self, r#type: &Type, out: &mut BytesMut) -> Result<IsNull, Refused> {
        self.to_sql(r#type, out)
    }
}

/// The bytes of a value as PostgreSQL sent them.
struct Raw<'a>(&'a [u8]);

impl<'a> FromSql<'a> for Raw<'a> {
    fn from_sql(_type: &Type, raw: &'a [u8]) -> Result<Self, Refused> {
        Ok(Self(raw))
    }

    fn accepts(_type: &Type) -> bool {
        true
    }
}

/// Replaces the content of `out` by a row in the form of a `DataRow` body without the column count.
pub(super) fn write_row(row: &tokio_postgres::Row, out: &mut Vec<u8>) -> Result<()> {
    out.clear();
    for place in 0..row.len() {
        let value: Option<Raw<'_>> = row.try_get(place).map_err(Error::internal)?;
        let Some(Raw(bytes)) = value else {
            out.extend_from_slice(&(-1_i32).to_be_bytes());
            continue;
        };
        let length = i32::try_from(bytes.len()).map_err(Error::internal)?;
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(bytes);
    }
    Ok(())
}

/// The columns of a prepared statement, all in binary format.
pub(super) fn columns(statement: &tokio_postgres::Statement) -> Vec<Column> {
    let columns = statement.columns().iter();
    columns
        .map(|column| Column {
            name: column.name().to_owned(),
            r#type: column.type_().clone(),
            format: WireFormat::Binary,
            origin: column.table_oid().zip(column.column_id()),
        })
        .collect()
}
