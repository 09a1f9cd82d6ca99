-- The users of this database who may use an authenticator, with its name and the seconds for which
-- they may log in. Whatever PostgreSQL would do to a user when it logs in, such as refusing it or
-- applying settings of its own, it does not do when the role is switched: such users log in.
WITH granted (oid) AS (
    SELECT DISTINCT a.grantee
    FROM pg_catalog.pg_database d
    CROSS JOIN LATERAL pg_catalog.aclexplode(
        -- The || copies the array out of its TOAST table: aclexplode would for each of its rows.
        coalesce(d.datacl, pg_catalog.acldefault('d', d.datdba)) || '{}') a
    WHERE d.datname = pg_catalog.current_database() AND a.privilege_type = 'CONNECT'
), login AS NOT MATERIALIZED (
    SELECT r.* FROM pg_catalog.pg_roles r
    WHERE pg_catalog.starts_with(r.rolname::text, pg_catalog.current_database() || '/')
      AND r.rolcanlogin AND r.rolconnlimit <> 0
      AND NOT (r.rolsuper OR r.rolcreaterole OR r.rolcreatedb OR r.rolreplication OR r.rolbypassrls)
      AND (r.oid IN (SELECT g.oid FROM granted g)
           OR EXISTS (SELECT FROM granted g WHERE g.oid = 0))
      AND NOT EXISTS (
          SELECT FROM pg_catalog.pg_db_role_setting s
          JOIN pg_catalog.pg_database d ON s.setdatabase IN (0, d.oid)
          WHERE s.setrole = r.oid AND d.datname = pg_catalog.current_database())
), place AS (
    SELECT pg_catalog.to_regnamespace('tidegate_catalog')::pg_catalog.oid AS schema,
           pg_catalog.to_regclass('tidegate_catalog.objections')::pg_catalog.oid AS objections
)
SELECT u.rolname::text, a.rolname::text,
       coalesce(pg_catalog.date_part('epoch', CASE WHEN pg_catalog.isfinite(u.rolvaliduntil)
           THEN u.rolvaliduntil - pg_catalog.now() END)::text, '')
FROM login a
JOIN pg_catalog.pg_auth_members m ON m.member = a.oid
-- One look-up by key for each member. Of a join PostgreSQL expects few rows, and compares each user
-- with each.
CROSS JOIN LATERAL (SELECT l.* FROM login l WHERE l.oid = m.roleid OFFSET 0) u
CROSS JOIN place p
WHERE pg_catalog.starts_with(a.rolname::text, pg_catalog.current_database() || '/$authenticator')
  AND pg_catalog.strpos(u.rolname::text, '/$') = 0
  AND NOT a.rolinherit AND a.rolvaliduntil IS NULL
  AND pg_catalog.starts_with(pg_catalog.shobj_description(a.oid, 'pg_authid'), :mark::pg_catalog.text)
  AND pg_catalog.has_schema_privilege(a.oid, p.schema, 'USAGE')
  AND pg_catalog.has_table_privilege(a.oid, p.objections, 'SELECT')
  -- Since PostgreSQL 16 a membership may be without this right.
  AND coalesce((pg_catalog.to_jsonb(m) ->> 'set_option')::pg_catalog.bool, true)
  AND (u.rolvaliduntil IS NULL OR u.rolvaliduntil > pg_catalog.now())
