-- Selects one fingerprint for each tenant, of the rows in shared catalogs on which the decision
-- about shared connections depends. It covers the tenant's database, and the tenant's users with
-- their memberships and settings. `place` is the tenant's name: the part of the user's name before
-- the slash. One more fingerprint, with an empty name, covers the roles without a slash.
SELECT f.place, pg_catalog.concat(pg_catalog.count(*), ' ',
           pg_catalog.sum(pg_catalog.hashtextextended(f.version, 0)))
FROM (
    SELECT CASE WHEN pg_catalog.strpos(r.rolname::text, '/') > 0
                THEN pg_catalog.split_part(r.rolname::text, '/', 1) ELSE '' END AS place,
           pg_catalog.concat('r', r.oid, ' ', r.xmin) AS version
    FROM pg_catalog.pg_authid r
    UNION ALL
    SELECT CASE WHEN pg_catalog.strpos(r.rolname::text, '/') > 0
                THEN pg_catalog.split_part(r.rolname::text, '/', 1) ELSE '' END,
           pg_catalog.concat('m', m.roleid, ' ', m.member, ' ', m.xmin)
    FROM pg_catalog.pg_auth_members m JOIN pg_catalog.pg_authid r ON r.oid = m.member
    UNION ALL
    -- A membership in an authenticator also counts for the authenticator's tenant.
    SELECT pg_catalog.split_part(r.rolname::text, '/', 1),
           pg_catalog.concat('a', m.roleid, ' ', m.member, ' ', m.xmin)
    FROM pg_catalog.pg_auth_members m JOIN pg_catalog.pg_authid r ON r.oid = m.roleid
    WHERE pg_catalog.strpos(r.rolname::text, '/$authenticator') > 0
    UNION ALL
    SELECT CASE WHEN pg_catalog.strpos(r.rolname::text, '/') > 0
                THEN pg_catalog.split_part(r.rolname::text, '/', 1) ELSE '' END,
           pg_catalog.concat('s', s.setdatabase, ' ', s.xmin)
    FROM pg_catalog.pg_db_role_setting s JOIN pg_catalog.pg_authid r ON r.oid = s.setrole
    UNION ALL
    SELECT pg_catalog.split_part(d.datname::text, '/', 1),
           pg_catalog.concat('d', d.oid, ' ', d.xmin)
    FROM pg_catalog.pg_database d
) f GROUP BY f.place
