//! The health query, which reports whether tables still have their triggers.

/// See [`tidegate_changelog::ChangeLog::health_query`]. The last column, whether writes succeed, is
/// always true, because triggers never make a write fail.
pub(super) const HEALTH_QUERY: &str = "\
    WITH RECURSIVE noted AS (\
        SELECT t.tgrelid AS oid, t.tgenabled = 'A' AS fires, t.tgtype & 24 = 24 AS changes, \
               p.proname = 'note' AS rows, t.tgenabled IN ('D', 'R') AS disabled \
        FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid \
        JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace \
        WHERE n.nspname = 'tidegate_outbox'), \
    tree AS (\
        SELECT c.oid AS root, c.oid, c.relkind FROM pg_catalog.pg_class c \
        WHERE c.relkind IN ('r', 'p') AND c.oid = ANY (:tables::oid[]) \
        UNION ALL SELECT t.root, c.oid, c.relkind FROM tree t \
        JOIN pg_catalog.pg_inherits i ON i.inhparent = t.oid \
        JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid WHERE t.relkind = 'p'), \
    table_of AS (\
        SELECT t.root, \
            EXISTS (SELECT FROM noted n WHERE n.oid = t.root AND n.fires AND n.rows) \
            AND EXISTS (SELECT FROM noted n WHERE n.oid = t.root AND n.fires AND NOT n.rows) \
            AND NOT EXISTS (SELECT FROM noted n JOIN tree leaf ON leaf.oid = n.oid \
                            WHERE leaf.root = t.root AND n.rows AND n.disabled) AS fires, \
            EXISTS (SELECT FROM noted n WHERE n.oid = t.root AND n.rows AND n.changes) AS changes \
        FROM tree t WHERE t.oid = t.root) \
    SELECT root::text, CASE WHEN fires THEN '1' END, CASE WHEN fires AND changes THEN '1' END, \
           'true' \
    FROM table_of";
