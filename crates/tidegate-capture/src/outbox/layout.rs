//! What the rows of a table look like.

use std::collections::HashMap;
use std::sync::Arc;

use tidegate_changelog::LogResult;

use super::session::Reader;

/// The columns of a table at the time of a change.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// The table that is subscribed to: this one, or that of which it is a partition.
    pub(super) root: u32,
    pub(super) schema: String,
    pub(super) name: String,
    pub(super) columns: Vec<LayoutColumn>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct LayoutColumn {
    pub(super) name: String,
    pub(super) r#type: u32,
    /// Computed by PostgreSQL; the log does not tell these either.
    pub(super) generated: bool,
}

impl Layout {
    /// The columns that are told.
    pub(super) fn told(&self) -> impl Iterator<Item = &LayoutColumn> {
        self.columns.iter().filter(|column| !column.generated)
    }

    /// For each column that `described` tells, where its value stands in a row of this layout;
    /// nothing where the two tell different columns.
    fn order(&self, described: &Self) -> Option<Arc<[usize]>> {
        if self.told().count() != described.told().count() {
            return None;
        }
        let at = |wanted: &LayoutColumn| self.columns.iter().position(|column| column == wanted);
        described.told().map(at).collect()
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

/// What a stream knows of tables.
#[derive(Debug, Default)]
pub(super) struct Layouts {
    /// By table and the number of its layout.
    known: HashMap<(u32, i64), Known>,
    /// As which the stream has described each table.
    described: HashMap<u32, Arc<Layout>>,
}

/// A layout.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) layout: Arc<Layout>,
    /// Where the values stand that are told, in the order in which the stream has described the
    /// table; nothing when this layout has other columns.
    pub(super) order: Option<Arc<[usize]>>,
}

impl Layouts {
    pub(super) fn known(&self, table: u32, number: i64) -> Option<Known> {
        self.known.get(&(table, number)).cloned()
    }

    /// Whether a table has been described.
    pub(super) fn is_described(&self, root: u32) -> bool {
        self.described.contains_key(&root)
    }

    /// A table is described like this from here on. Returns where its values stand.
    pub(super) fn describe(&mut self, layout: &Arc<Layout>) -> Arc<[usize]> {
        for known in self.known.values_mut() {
            if known.layout.root == layout.root {
                known.order = known.layout.order(layout);
            }
        }
        self.described.insert(layout.root, layout.clone());
        layout.order(layout).unwrap_or_default()
    }

    /// Every table is looked up and described again, with its next change.
    pub(super) fn describe_again(&mut self) {
        self.described.clear();
        self.known.clear();
    }

    /// Looks up what a writer has written down.
    pub(super) async fn learn(
        &mut self,
        reader: &Reader,
        table: u32,
        number: i64,
    ) -> LogResult<Known> {
        let rows = reader.rows(LAYOUT, &[&table, &number]).await?;
        let row = rows.first();
        let row = row.ok_or_else(|| super::unreadable("a change without a layout"))?;
        let layout = Arc::new(Layout::read(row));
        let described = self.described.get(&layout.root);
        let order = described.and_then(|described| layout.order(described));
        let known = Known { layout, order };
        self.known.insert((table, number), known.clone());
        Ok(known)
    }
}

/// What a table is like now; nothing when it is gone.
pub(super) async fn current(reader: &Reader, table: u32) -> LogResult<Option<Layout>> {
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
    fn a_partition_with_its_columns_elsewhere_is_told_as_its_root() {
        let root = layout(&[("a", false), ("b", true), ("c", false)]);
        let leaf = layout(&[("c", false), ("a", false), ("b", true)]);
        assert_eq!(leaf.order(&root), Some([1, 0].into()));
        assert_eq!(root.order(&root), Some([0, 2].into()));
        let other = layout(&[("c", false), ("d", false)]);
        assert_eq!(other.order(&root), None);
        assert_eq!(root.order(&other), None);
    }
}
