-- Selects the objects that others could use to run code with the privileges of a new owner ($2).
-- If $3 is false, the objects of the roles $1 are searched. If $3 is true, these were reassigned,
-- and the objects that this transaction has given to the new owner are searched. Each row describes
-- an object and the reason.
WITH RECURSIVE leaving AS (
    SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = ANY ($1::text[])
), heir AS (
    SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = $2::text
), relations AS (
    SELECT c.* FROM pg_catalog.pg_class c
    WHERE CASE WHEN $3 THEN c.relowner = (SELECT oid FROM heir)
                            AND c.xmin = pg_catalog.pg_current_xact_id_if_assigned()::pg_catalog.xid
               ELSE c.relowner IN (SELECT oid FROM leaving) END
), routines AS (
    SELECT p.* FROM pg_catalog.pg_proc p
    WHERE CASE WHEN $3 THEN p.proowner = (SELECT oid FROM heir)
                            AND p.xmin = pg_catalog.pg_current_xact_id_if_assigned()::pg_catalog.xid
               ELSE p.proowner IN (SELECT oid FROM leaving) END
), untrusted AS (
    SELECT p.oid FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_roles r ON r.oid = p.proowner
    WHERE NOT r.rolsuper AND r.oid NOT IN (SELECT oid FROM heir)
    UNION SELECT oid FROM routines
), shared_views AS (
    SELECT c.oid FROM relations c WHERE c.relkind IN ('v', 'm')
      AND NOT (c.relkind = 'v' AND EXISTS (
          SELECT FROM pg_catalog.pg_options_to_table(c.reloptions) o
          WHERE o.option_name = 'security_invoker' AND o.option_value::bool))
      AND EXISTS (
          SELECT FROM (SELECT c.relacl AS acl UNION ALL
                       SELECT a.attacl FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid) s
          CROSS JOIN LATERAL pg_catalog.aclexplode(s.acl) g
          WHERE g.grantee NOT IN (SELECT oid FROM heir UNION SELECT oid FROM leaving))
), linked AS (
    -- Foreign keys are checked as the owner of the referenced table.
    SELECT c.oid FROM relations c WHERE EXISTS (
        SELECT FROM pg_catalog.pg_constraint f
        WHERE f.contype = 'f' AND c.oid IN (f.conrelid, f.confrelid))
), cascading (oid) AS (
    -- The actions of foreign keys change rows, and fire triggers, as the owner of the referencing
    -- table.
    SELECT c.oid FROM relations c WHERE EXISTS (
        SELECT FROM pg_catalog.pg_constraint f WHERE f.contype = 'f' AND f.conrelid = c.oid
          AND (f.confupdtype IN ('c', 'n', 'd') OR f.confdeltype IN ('c', 'n', 'd')))
    UNION SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN cascading c ON c.oid = i.inhparent
), starts (class, object, why) AS (
    -- ANALYZE, VACUUM, REINDEX and autovacuum compute the expressions of indexes and statistics as
    -- the table's owner.
    SELECT 'pg_catalog.pg_class'::pg_catalog.regclass::oid, i.indexrelid, 'maintenance'
    FROM pg_catalog.pg_index i JOIN relations c ON c.oid = i.indrelid
    UNION ALL
    SELECT 'pg_catalog.pg_statistic_ext'::pg_catalog.regclass, s.oid, 'maintenance'
    FROM pg_catalog.pg_statistic_ext s JOIN relations c ON c.oid = s.stxrelid
    UNION ALL
    -- ANALYZE calls functions of a range type.
    SELECT 'pg_catalog.pg_type'::pg_catalog.regclass, a.atttypid, 'maintenance'
    FROM pg_catalog.pg_attribute a JOIN relations c ON c.oid = a.attrelid AND c.relkind IN ('r', 'p', 'm')
    WHERE a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    -- The partition key, which an UPDATE by a foreign key computes.
    SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, c.oid, 'a foreign key'
    FROM relations c WHERE c.relkind = 'p'
    UNION ALL
    SELECT 'pg_catalog.pg_rewrite'::pg_catalog.regclass, r.oid, 'a refresh'
    FROM pg_catalog.pg_rewrite r JOIN relations c ON c.oid = r.ev_class AND c.relkind = 'm'
    UNION ALL
    SELECT 'pg_catalog.pg_trigger'::pg_catalog.regclass, t.oid, 'a foreign key'
    FROM pg_catalog.pg_trigger t JOIN cascading c ON c.oid = t.tgrelid WHERE NOT t.tgisinternal
    UNION ALL
    SELECT 'pg_catalog.pg_constraint'::pg_catalog.regclass, k.oid, 'a foreign key'
    FROM pg_catalog.pg_constraint k JOIN cascading c ON c.oid = k.conrelid WHERE k.contype = 'c'
    UNION ALL
    SELECT 'pg_catalog.pg_attrdef'::pg_catalog.regclass, d.oid, 'a foreign key'
    FROM pg_catalog.pg_attrdef d JOIN cascading c ON c.oid = d.adrelid
    UNION ALL
    SELECT 'pg_catalog.pg_type'::pg_catalog.regclass, a.atttypid, 'a foreign key'
    FROM pg_catalog.pg_attribute a
    WHERE a.attrelid IN (SELECT oid FROM linked UNION SELECT oid FROM cascading)
      AND a.attnum > 0 AND NOT a.attisdropped
), edges (class, object, to_class, to_object) AS (
    SELECT d.classid, d.objid, d.refclassid, d.refobjid FROM pg_catalog.pg_depend d
    WHERE d.deptype IN ('n', 'a')
    UNION ALL
    SELECT 'pg_catalog.pg_type'::pg_catalog.regclass, k.contypid,
           'pg_catalog.pg_constraint'::pg_catalog.regclass, k.oid
    FROM pg_catalog.pg_constraint k WHERE k.contypid <> 0
    UNION ALL
    SELECT 'pg_catalog.pg_type'::pg_catalog.regclass, t.oid,
           'pg_catalog.pg_cast'::pg_catalog.regclass, k.oid
    FROM pg_catalog.pg_cast k JOIN pg_catalog.pg_type t ON t.oid IN (k.castsource, k.casttarget)
    WHERE k.castfunc IN (SELECT oid FROM untrusted)
    UNION ALL
    SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, r.ev_class,
           'pg_catalog.pg_rewrite'::pg_catalog.regclass, r.oid
    FROM pg_catalog.pg_rewrite r WHERE r.ev_type = '1'
), reached (class, object, why) AS (
    SELECT class, object, why FROM starts
    UNION
    SELECT e.to_class, e.to_object, r.why
    FROM reached r JOIN edges e ON (e.class, e.object) = (r.class, r.object)
), trees (class, object, tree) AS (
    -- Built-in functions are not in pg_depend, so the expressions themselves are searched.
    SELECT 'pg_catalog.pg_constraint'::pg_catalog.regclass::oid, k.oid, k.conbin::text
    FROM pg_catalog.pg_constraint k
    UNION ALL
    SELECT 'pg_catalog.pg_attrdef'::pg_catalog.regclass, d.oid, d.adbin::text
    FROM pg_catalog.pg_attrdef d
    UNION ALL
    SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, i.indexrelid,
           pg_catalog.concat(i.indexprs::text, i.indpred::text)
    FROM pg_catalog.pg_index i
    UNION ALL
    SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, t.partrelid, t.partexprs::text
    FROM pg_catalog.pg_partitioned_table t
    UNION ALL
    -- The column `stxexprs` exists since PostgreSQL 14.
    SELECT 'pg_catalog.pg_statistic_ext'::pg_catalog.regclass, s.oid,
           pg_catalog.to_jsonb(s) ->> 'stxexprs'
    FROM pg_catalog.pg_statistic_ext s
    UNION ALL
    SELECT 'pg_catalog.pg_trigger'::pg_catalog.regclass, t.oid, t.tgqual::text
    FROM pg_catalog.pg_trigger t
    UNION ALL
    SELECT 'pg_catalog.pg_rewrite'::pg_catalog.regclass, r.oid,
           pg_catalog.concat(r.ev_action::text, r.ev_qual::text)
    FROM pg_catalog.pg_rewrite r
), calls (class, object, why, function) AS (
    SELECT DISTINCT r.class, r.object, r.why, (called.match)[1]::oid
    FROM reached r JOIN trees t ON (t.class, t.object) = (r.class, r.object)
    CROSS JOIN LATERAL pg_catalog.regexp_matches(
        t.tree, ':(?:funcid|aggfnoid|winfnoid) (\d+)', 'g') called (match)
)
-- Code is never handed over. Others can reach it in more ways than can be listed, and an object
-- that calls it may be handed over later.
SELECT pg_catalog.pg_describe_object('pg_catalog.pg_proc'::pg_catalog.regclass, p.oid, 0)
       || CASE WHEN p.prosecdef THEN ' is SECURITY DEFINER' ELSE ' is code of the former owner' END
FROM routines p
UNION
SELECT pg_catalog.pg_describe_object('pg_catalog.pg_class'::pg_catalog.regclass, v.oid, 0)
       || ' shows others what its owner may read'
FROM shared_views v
UNION
SELECT pg_catalog.pg_describe_object('pg_catalog.pg_rewrite'::pg_catalog.regclass, r.oid, 0)
       || ' acts with the rights of its owner'
FROM pg_catalog.pg_rewrite r JOIN relations c ON c.oid = r.ev_class WHERE r.ev_type <> '1'
UNION
SELECT pg_catalog.pg_describe_object(r.class, r.object, 0)
       || ' is called by ' || r.why || ' as the owner of a table'
FROM reached r JOIN untrusted u ON u.oid = r.object
WHERE r.class = 'pg_catalog.pg_proc'::pg_catalog.regclass
UNION
-- Functions that may run SQL text or read a view, such as query_to_xml and dblink. Immutable
-- functions cannot do so. Of the server's own stable functions, only those with `_to_xml` in their
-- names can. Of the volatile functions, only those that are listed below are known not to do so.
SELECT pg_catalog.pg_describe_object(c.class, c.object, 0) || ' calls '
       || c.function::pg_catalog.regprocedure || ' for ' || c.why || ' as the owner of a table'
FROM calls c JOIN pg_catalog.pg_proc p ON p.oid = c.function
WHERE NOT (p.provolatile = 'i'
           OR p.provolatile = 's' AND p.oid < 16384 AND p.proname !~ '_to_xml'
           OR p.proname IN ('nextval', 'random', 'clock_timestamp', 'timeofday', 'gen_random_uuid')
              AND p.oid < 16384
           OR p.proname ~ '^uuid_generate_|^gen_random_' AND p.oid >= 16384
              AND EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.deptype = 'e'
                          AND (d.classid, d.objid)
                            = ('pg_catalog.pg_proc'::pg_catalog.regclass, p.oid))
           OR p.oid IN (SELECT oid FROM untrusted))
ORDER BY 1
