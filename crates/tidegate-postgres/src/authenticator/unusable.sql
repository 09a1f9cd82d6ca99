-- Selects a reason and an empty remedy for each unusable authenticator of this database, and one
-- such row if authenticators are missing. Authenticators are numbered from 1 without gaps, and each
-- tenant has at least one. The conditions are those of members.sql.
WITH authenticator AS (
    SELECT r.oid, r.rolname,
           NOT r.rolcanlogin OR r.rolconnlimit = 0
                   OR coalesce(r.rolvaliduntil, 'infinity') <> 'infinity'
                   OR r.rolinherit OR r.rolsuper OR r.rolcreaterole OR r.rolcreatedb
                   OR r.rolreplication OR r.rolbypassrls
                   OR NOT pg_catalog.has_database_privilege(
                       r.oid, pg_catalog.current_database(), 'CONNECT')
                   OR NOT coalesce(pg_catalog.has_schema_privilege(
                       r.oid, pg_catalog.to_regnamespace('tidegate_catalog')::pg_catalog.oid, 'USAGE'), false)
                   OR NOT coalesce(pg_catalog.has_table_privilege(
                       r.oid, pg_catalog.to_regclass('tidegate_catalog.objections')::pg_catalog.oid,
                       'SELECT'), false)
                   OR EXISTS (
                       SELECT FROM pg_catalog.pg_db_role_setting s
                       JOIN pg_catalog.pg_database d ON s.setdatabase IN (0, d.oid)
                       WHERE s.setrole = r.oid AND d.datname = pg_catalog.current_database())
           AS is_unusable
    FROM pg_catalog.pg_roles r
    WHERE pg_catalog.starts_with(
              r.rolname::text, pg_catalog.current_database() || '/$authenticator')
      AND pg_catalog.starts_with(
              pg_catalog.shobj_description(r.oid, 'pg_authid'), :mark::pg_catalog.text)
), numbered AS (
    SELECT pg_catalog.count(*) AS there, pg_catalog.max(pg_catalog.substring(
               a.rolname::text, '[$]authenticator([0-9]{1,9})$')::pg_catalog.int4) AS last
    FROM authenticator a
)
SELECT pg_catalog.format('the authenticator %I is locked or limited, inherits, has settings of its '
           'own, or lacks a right; tidegate doctor prints what sets it right', a.rolname), ''
FROM authenticator a WHERE a.is_unusable
UNION ALL
SELECT 'an authenticator is missing; tidegate user repair, with --all, makes it', ''
FROM numbered n WHERE n.there < greatest(n.last, 1)
