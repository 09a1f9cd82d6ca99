//! The columns of captured tables, as they were when a change was written.

use std::collections::HashMap;
use std::sync::Arc;

use tidegate_changelog::LogResult;

use super::session::ReaderSession;

/// The columns of a table at the time of a change.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// The OID of the root table, to which clients subscribe.
    pub(super) root: u32,
    pub(super) schema: String,
    pub(super) name: String,
    pub(super) columns: Vec<LayoutColumn>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct LayoutColumn {
    pub(super) name: String,
    pub(super) r#type: u32,
    /// Whether the column is generated. Streams omit generated columns, as PostgreSQL's log does.
    pub(super) generated: bool,
}

impl Layout {
    /// The columns whose values a stream contains.
    pub(super) fn columns_in_log(&self) -> impl Iterator<Item = &LayoutColumn> {
        self.columns.iter().filter(|column| !column.generated)
    }

    /// For each column of `described`, the index of the column's value in a row of this layout.
    /// `None` if the two layouts have different columns.
    fn order(&self, described: &Self) -> Option<Arc<[usize]>> {
        if self.columns_in_log().count() != described.columns_in_log().count() {
            return None;
        }
        let at = |wanted: &LayoutColumn| self.columns.iter().position(|column| column == wanted);
        described.columns_in_log().map(at).collect()
    }

    fn read(row: &tokio_postgres::Row) -> Self {
        let (names, types): (Vec<String>, Vec<u32>) = (row.get(3), row.get(4));
        let generated: Vec<bool> = row.get(5);
        let columns = names.into_iter().zip(types).zip(generated);
        Self {
            root: row.get(0),
            schema: row.get(1),
            name: row.get(2),
            columns: columns
                .map(|((name, r#type), generated)| LayoutColumn {
                    name,
                    r#type,
                    generated,
                })
                .collect(),
        }
    }
}

/// The layouts that a stream has read.
#[derive(Debug, Default)]
pub(super) struct Layouts {
    /// The layouts by the OID of the table and the number that a trigger gave to the layout.
    known: HashMap<(u32, i64), KnownLayout>,
    /// For each root table, by its OID, the layout in the table's most recent `Relation` message in
    /// the stream.
    described: HashMap<u32, Arc<Layout>>,
}

#[derive(Clone, Debug)]
pub(super) struct KnownLayout {
    pub(super) layout: Arc<Layout>,
    /// For each column of the table's description in the stream, the index of the column's value in
    /// a row of this layout. `None` if the stream has not described the table, or has described it
    /// with other columns.
    pub(super) order: Option<Arc<[usize]>>,
}

impl Layouts {
    pub(super) fn known(&self, table: u32, number: i64) -> Option<KnownLayout> {
        self.known.get(&(table, number)).cloned()
    }

    /// Whether the stream has described the table `root`.
    pub(super) fn is_described(&self, root: u32) -> bool {
        self.described.contains_key(&root)
    }

    /// Records that the stream describes a table by this layout, in a `Relation` message. Returns,
    /// for each described column, the index of the column's value in a row of the layout.
    pub(super) fn describe(&mut self, layout: &Arc<Layout>) -> Arc<[usize]> {
        for known in self.known.values_mut() {
            if known.layout.root == layout.root {
                known.order = known.layout.order(layout);
            }
        }
        self.described.insert(layout.root, layout.clone());
        layout.order(layout).unwrap_or_default()
    }

    /// Forgets all layouts, so that the stream describes each table again before its next change.
    pub(super) fn describe_again(&mut self) {
        self.described.clear();
        self.known.clear();
    }

    /// Reads the layout to which a trigger gave the number `number`. `table` is the table with the
    /// trigger.
    pub(super) async fn load(
        &mut self,
        reader: &ReaderSession,
        table: u32,
        number: i64,
    ) -> LogResult<KnownLayout> {
        let rows = reader.rows(LAYOUT, &[&table, &number]).await?;
        let row = rows.first();
        let row = row.ok_or_else(|| super::unreadable("a change without a layout"))?;
        let layout = Arc::new(Layout::read(row));
        let described = self.described.get(&layout.root);
        let order = described.and_then(|described| layout.order(described));
        let known = KnownLayout { layout, order };
        self.known.insert((table, number), known.clone());
        Ok(known)
    }
}

/// The current layout of a table; `None` if the table was dropped.
pub(super) async fn current(reader: &ReaderSession, table: u32) -> LogResult<Option<Layout>> {
    let rows = reader.rows(CURRENT, &[&table]).await?;
    Ok(rows.first().map(Layout::read))
}

const LAYOUT: &str = "\
    SELECT l.root, coalesce(n.nspname::text, l.schema), coalesce(c.relname::text, l.name), \
           l.columns, l.types, l.generated \
    FROM tidegate_outbox.layout l \
    LEFT JOIN pg_catalog.pg_class c ON c.oid = l.root \
    LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE l.relation = $1 AND l.layout = $2 LIMIT 1";

const CURRENT: &str = "\
    SELECT c.oid, n.nspname::text, c.relname::text, \
           pg_catalog.array_agg(a.attname::text ORDER BY a.attnum), \
           pg_catalog.array_agg(a.atttypid ORDER BY a.attnum), \
           pg_catalog.array_agg(a.attgenerated <> '' ORDER BY a.attnum) \
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped \
    WHERE c.oid = $1 GROUP BY c.oid, n.nspname, c.relname";

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(columns: &[(&str, bool)]) -> Layout {
        Layout {
            root: 1,
            schema: "public".to_owned(),
            name: "t".to_owned(),
            columns: columns
                .iter()
                .map(|(name, generated)| LayoutColumn {
                    name: (*name).to_owned(),
                    r#type: 23,
                    generated: *generated,
                })
                .collect(),
        }
    }

    #[test]
    fn a_partition_with_other_column_positions_is_described_as_its_root() {
        let root = layout(&[("a", false), ("b", true), ("c", false)]);
        let leaf = layout(&[("c", false), ("a", false), ("b", true)]);
        assert_eq!(leaf.order(&root), Some([1, 0].into()));
        assert_eq!(root.order(&root), Some([0, 2].into()));
        let other = layout(&[("c", false), ("d", false)]);
        assert_eq!(other.order(&root), None);
        assert_eq!(root.order(&other), None);
    }
}
