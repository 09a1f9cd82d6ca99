//! Columns and rows in the form in which PostgreSQL would send them.

use tidegate_values::{Column, Type, WireFormat};

/// A result column that does not come from a table.
pub(crate) fn column(name: &str, r#type: Type, format: WireFormat) -> Column {
    Column {
        name: name.to_owned(),
        r#type,
        format,
        origin: None,
    }
}

/// The body of a `DataRow` message after its column count.
pub(crate) fn body<V: AsRef<[u8]>>(values: &[Option<V>]) -> Vec<u8> {
    let mut body = Vec::new();
    for value in values {
        match value {
            Some(value) => {
                let value = value.as_ref();
                body.extend(i32::try_from(value.len()).unwrap().to_be_bytes());
                body.extend(value);
            }
            None => body.extend((-1_i32).to_be_bytes()),
        }
    }
    body
}
