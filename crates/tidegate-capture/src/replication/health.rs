//! The health query, which reports whether tables are still captured.

/// See [`tidegate_changelog::ChangeLog::health_query`]. A mark is the OID of the table's entry in a
/// publication. The OID changes if the table is removed from the publication and added again. The
/// query also returns tables that operators or other programs added to the publication `tidegate`,
/// because PostgreSQL may refuse writes to these tables.
pub(super) const HEALTH_QUERY: &str = "\
    WITH RECURSIVE published AS (\
        SELECT r.prrelid AS oid, r.oid AS row, p.pubname = 'tidegate' AS everything, \
               pg_catalog.to_jsonb(r) ->> 'prqual' IS NULL \
               AND pg_catalog.to_jsonb(r) ->> 'prattrs' IS NULL \
               AND p.pubinsert AND p.pubtruncate AND p.pubviaroot \
               AND (p.pubupdate AND p.pubdelete OR p.pubname <> 'tidegate') AS whole \
        FROM pg_catalog.pg_publication p JOIN pg_catalog.pg_publication_rel r ON r.prpubid = p.oid \
        WHERE p.pubname IN ('tidegate', 'tidegate_inserts')), \
    tree AS (\
        SELECT c.oid AS root, c.oid, c.relkind FROM pg_catalog.pg_class c \
        WHERE c.relkind IN ('r', 'p') AND (c.oid = ANY (:tables::oid[]) \
            OR c.oid IN (SELECT p.oid FROM published p WHERE p.everything)) \
        UNION ALL SELECT t.root, c.oid, c.relkind FROM tree t \
        JOIN pg_catalog.pg_inherits i ON i.inhparent = t.oid \
        JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid WHERE t.relkind = 'p'), \
    leaf AS (\
        SELECT t.root, \
               CASE c.relreplident \
                   WHEN 'f' THEN NOT EXISTS (\
                       SELECT FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid \
                       AND a.attgenerated = 'v' AND NOT a.attisdropped) \
                   WHEN 'd' THEN EXISTS (\
                       SELECT FROM pg_catalog.pg_index k WHERE k.indrelid = c.oid \
                       AND k.indisprimary AND k.indisvalid AND k.indimmediate) \
                   WHEN 'i' THEN EXISTS (\
                       SELECT FROM pg_catalog.pg_index k WHERE k.indrelid = c.oid \
                       AND k.indisreplident) \
                   ELSE false END AS identifies \
        FROM tree t JOIN pg_catalog.pg_class c ON c.oid = t.oid \
        WHERE c.relkind = 'r' OR c.oid = t.root) \
    SELECT l.root::text, \
           (SELECT pg_catalog.string_agg(p.row::text, ',' ORDER BY p.row) FROM published p \
            WHERE p.oid = l.root AND p.whole), \
           (SELECT p.row::text FROM published p \
            WHERE p.oid = l.root AND p.whole AND p.everything), \
           (pg_catalog.bool_and(l.identifies) OR NOT EXISTS (\
               SELECT FROM published p WHERE p.oid = l.root AND p.everything))::text \
    FROM leaf l GROUP BY l.root";
