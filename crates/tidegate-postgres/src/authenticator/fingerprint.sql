-- Fingerprints of the cluster's own rows on which the decision about shared connections depends,
-- one for each tenant. A tenant's row covers the database and its users with their memberships and
-- settings; `place` is its name up to the slash. All other roles are in a row with an empty name.
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
    -- A member of an authenticator concerns the authenticator's tenant too.
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
