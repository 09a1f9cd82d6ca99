-- Selects the rows of the shared catalogs that were written since `:bound`: the oldest transaction
-- that ran during the previous query. If `:bound` is empty, no such rows are selected. Unchanged
-- rows cost only the scan, so a new user costs about the same among ten thousand users as among a
-- hundred.
--
-- The first row has the values for the next query: the bound, the total number of rows in the
-- catalogs, and the OID of the newest role. The total shows whether rows were deleted. After it,
-- there is one row for each row that was written: its identity, the tenant, and the column `plain`.
-- A plain new user needs no new decision for the tenant (decide.sql). In the row of such a user's
-- role, `plain` is the OID of the role. In the rows of memberships of this role and in this role,
-- `plain` is `member`. In all other rows it is empty.
--
-- A plain user has no attribute that decide.sql objects to. It is a member only of groups that have
-- older users of the tenant as members, and its only members are authenticators. Its objects and
-- grants are definitions in the tenant's database, which the event trigger there reports.
WITH bound (age) AS (
    SELECT pg_catalog.age(NULLIF(:bound::pg_catalog.text, '')::pg_catalog.xid)
), known (newest) AS (
    SELECT :newest::pg_catalog.text::pg_catalog.int8
), fresh_role AS MATERIALIZED (
    SELECT r.*, r.xmin AS written
    FROM pg_catalog.pg_authid r, bound b WHERE pg_catalog.age(r.xmin) <= b.age
), fresh_member AS MATERIALIZED (
    SELECT m.roleid, m.member, m.xmin AS written, r.rolname::text AS role, u.rolname::text AS user,
           u.rolinherit, m.member::pg_catalog.int8 > k.newest AS is_new_member,
           m.roleid::pg_catalog.int8 > k.newest AS is_new_role
    FROM bound b, known k, pg_catalog.pg_auth_members m
    JOIN pg_catalog.pg_authid r ON r.oid = m.roleid
    JOIN pg_catalog.pg_authid u ON u.oid = m.member
    WHERE pg_catalog.age(m.xmin) <= b.age
)
SELECT 'state' AS kind, pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot())::pg_catalog.xid::text AS id,
       ((SELECT pg_catalog.count(*) FROM pg_catalog.pg_authid)
        + (SELECT pg_catalog.count(*) FROM pg_catalog.pg_auth_members)
        + (SELECT pg_catalog.count(*) FROM pg_catalog.pg_db_role_setting)
        + (SELECT pg_catalog.count(*) FROM pg_catalog.pg_database))::text AS tenant,
       (SELECT pg_catalog.max(r.oid)::text FROM pg_catalog.pg_authid r) AS plain
UNION ALL
SELECT 'role', pg_catalog.concat(r.oid, ' ', r.written), pg_catalog.split_part(r.rolname::text, '/', 1),
       CASE WHEN r.oid::pg_catalog.int8 > k.newest AND pg_catalog.strpos(r.rolname::text, '/') > 0
                 AND pg_catalog.strpos(r.rolname::text, '/$') = 0 AND pg_catalog.split_part(r.rolname::text, '/', 3) = ''
                 AND NOT (r.rolsuper OR r.rolcreaterole OR r.rolcreatedb OR r.rolreplication OR r.rolbypassrls)
            THEN r.oid::text END
FROM fresh_role r, known k
UNION ALL
SELECT 'member', pg_catalog.concat(m.roleid, ' ', m.member, ' ', m.written),
       pg_catalog.split_part(CASE WHEN m.is_new_member THEN m.user ELSE m.role END, '/', 1),
       CASE
           WHEN m.is_new_member AND NOT m.is_new_role AND EXISTS (
               SELECT FROM pg_catalog.pg_auth_members o
               JOIN pg_catalog.pg_authid a ON a.oid = o.member, known k
               WHERE o.roleid = m.roleid AND o.member::pg_catalog.int8 <= k.newest
                 AND pg_catalog.starts_with(a.rolname::text, pg_catalog.split_part(m.user, '/', 1) || '/'))
               THEN 'member'
           WHEN m.is_new_role AND NOT m.is_new_member AND NOT m.rolinherit
               AND pg_catalog.starts_with(m.user, pg_catalog.split_part(m.role, '/', 1) || '/$authenticator')
               THEN 'member'
       END
FROM fresh_member m
UNION ALL
SELECT 'setting', pg_catalog.concat(s.setdatabase, ' ', s.setrole, ' ', s.xmin), '', ''
FROM pg_catalog.pg_db_role_setting s, bound b WHERE pg_catalog.age(s.xmin) <= b.age
UNION ALL
SELECT 'database', pg_catalog.concat(d.oid, ' ', d.xmin), '', ''
FROM pg_catalog.pg_database d, bound b WHERE pg_catalog.age(d.xmin) <= b.age
