//! Parses the bodies of backend messages.

/// A column as `RowDescription` describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldDescription {
    /// The name of the column in the result.
    pub name: String,
    /// The OID of the column's table; 0 for an expression.
    pub table: u32,
    /// The number of the column in its table; 0 for an expression.
    pub attribute: i16,
    /// The OID of the column's type.
    pub type_oid: u32,
}

/// Reads big-endian numbers and zero-terminated text from the front of a body.
#[derive(Clone, Copy)]
struct BodyReader<'a>(&'a [u8]);

impl<'a> BodyReader<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.0.split_first_chunk::<N>()?;
        self.0 = tail;
        Some(*head)
    }

    fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    /// Reads bytes up to a zero byte, which is skipped.
    fn bytes(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|byte| *byte == 0)?;
        let (bytes, tail) = self.0.split_at(end);
        self.0 = tail.get(1..)?;
        Some(bytes)
    }
}

/// Reads a `RowDescription`. Returns `None` if the body is malformed.
pub fn row_description(body: &[u8]) -> Option<Vec<FieldDescription>> {
    let mut reader = BodyReader(body);
    let count = u16::from_be_bytes(reader.take()?);
    let mut fields = Vec::with_capacity(count.into());
    for _ in 0..count {
        let name = reader.text()?.to_owned();
        let table = u32::from_be_bytes(reader.take()?);
        let attribute = i16::from_be_bytes(reader.take()?);
        let type_oid = u32::from_be_bytes(reader.take()?);
        // Skips the size and the modifier of the type, and the format code. Before Bind, the format
        // code is always 0.
        reader.take::<8>()?;
        fields.push(FieldDescription {
            name,
            table,
            attribute,
            type_oid,
        });
    }
    Some(fields)
}

/// Reads a `ParameterDescription`: the OID of each parameter's type. Returns `None` if the body is
/// malformed.
pub fn parameter_description(body: &[u8]) -> Option<Vec<u32>> {
    let mut reader = BodyReader(body);
    let count = u16::from_be_bytes(reader.take()?);
    (0..count)
        .map(|_| Some(u32::from_be_bytes(reader.take()?)))
        .collect()
}

/// The setting with which PostgreSQL 14 and later report whether the server is in recovery.
pub const IN_HOT_STANDBY: &str = "in_hot_standby";

/// Whether a `ParameterStatus` reports `is_superuser`. Before version 14, PostgreSQL sends this
/// report after every role switch, even if the value has not changed.
pub fn is_role_status(body: &[u8]) -> bool {
    parameter_status(body).is_some_and(|(name, _)| name == "is_superuser")
}

/// Reads a `ParameterStatus`: the name and the value of a setting. Returns `None` if the body is
/// malformed.
pub fn parameter_status(body: &[u8]) -> Option<(&str, &str)> {
    let mut reader = BodyReader(body);
    Some((reader.text()?, reader.text()?))
}

/// Whether an `ErrorResponse` or a `NoticeResponse` has this SQLSTATE.
pub fn has_sqlstate(body: &[u8], sqlstate: &str) -> bool {
    let mut reader = BodyReader(body);
    while let Some([field]) = reader.take()
        && field != 0
    {
        let Some(value) = reader.bytes() else {
            return false;
        };
        if field == b'C' {
            return value == sqlstate.as_bytes();
        }
    }
    false
}

/// Reads a `CommandComplete`: the first word of the command tag, and the number of rows if the tag
/// has one.
pub fn command_tag(body: &[u8]) -> (&str, Option<u64>) {
    let tag = BodyReader(body).text().unwrap_or_default();
    let command = tag.split(' ').next().unwrap_or_default();
    (
        command,
        tag.rsplit(' ').next().and_then(|count| count.parse().ok()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_description_gives_names_and_types() {
        let body = b"\0\x01id\0\0\0\x40\0\0\x02\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0";
        let field = FieldDescription {
            name: "id".to_owned(),
            table: 0x4000,
            attribute: 2,
            type_oid: 23,
        };
        assert_eq!(row_description(body), Some(vec![field]));
        assert_eq!(row_description(&body[..10]), None);
    }

    #[test]
    fn a_command_tag_ends_in_the_count_of_rows() {
        assert_eq!(command_tag(b"INSERT 0 5\0"), ("INSERT", Some(5)));
        assert_eq!(command_tag(b"SELECT 12\0"), ("SELECT", Some(12)));
        assert_eq!(command_tag(b"CREATE TABLE\0"), ("CREATE", None));
    }
}
