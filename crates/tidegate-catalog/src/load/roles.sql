-- As fingerprint.sql, of what all databases of a cluster share: roles and memberships.
select pg_catalog.concat_ws(' ',
    (select pg_catalog.concat_ws(',', pg_catalog.count(*), pg_catalog.sum(m.xmin::pg_catalog.text::pg_catalog.int8))
     from pg_catalog.pg_auth_members m),
    (select pg_catalog.concat_ws(',', pg_catalog.count(*), pg_catalog.sum(pg_catalog.hashtextextended(pg_catalog.concat_ws(',',
                r.oid, r.rolname, r.rolsuper, r.rolinherit, r.rolbypassrls), 0)))
     from pg_catalog.pg_roles r))
