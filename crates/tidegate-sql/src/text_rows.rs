//! Collects the rows of internal statements.

use tidegate_values::{Column, RawRow};

use crate::error::{Error, Result};
use crate::executor::{Flow, RowSink};

/// A sink that collects rows whose columns are of type `text`. NULL becomes an empty string.
#[derive(Debug, Default)]
pub struct TextRows(pub Vec<Vec<String>>);

impl RowSink for TextRows {
    fn columns(&mut self, _: &[Column]) -> Result<()> {
        Ok(())
    }

    fn row(&mut self, row: RawRow<'_>) -> Result<Flow> {
        // A text value has the same bytes in both wire formats.
        let text = |value: Option<&[u8]>| {
            let text = str::from_utf8(value.unwrap_or_default());
            text.map(str::to_owned).map_err(Error::internal)
        };
        self.0.push(row.values().map(text).collect::<Result<_>>()?);
        Ok(Flow::Continue)
    }
}
