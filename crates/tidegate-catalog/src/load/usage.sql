-- The privileges on the schemas of the database. As in roles.sql, a fingerprint for PUBLIC and the
-- roles with an oid up to `newest`, and a fingerprint for all roles.
--
-- Concatenation copies an ACL that is stored out of line. Otherwise aclexplode would read it again
-- for each of its entries.
select pg_catalog.concat_ws(',', pg_catalog.count(*) filter (where e.known),
            pg_catalog.sum(e.digest) filter (where e.known)) as known,
       pg_catalog.concat_ws(',', pg_catalog.count(*), pg_catalog.sum(e.digest)) as whole
from (
    select a.grantee::pg_catalog.int8 operator(pg_catalog.<=) :newest::pg_catalog.int8 as known,
           pg_catalog.hashoidextended(a.grantee, n.oid::pg_catalog.int8) as digest
    from pg_catalog.pg_namespace n
    cross join lateral pg_catalog.aclexplode(
        n.nspacl operator(pg_catalog.||) pg_catalog.acldefault('n', n.nspowner)) a
    where a.privilege_type operator(pg_catalog.=) 'USAGE'
      and n.nspname operator(pg_catalog.!~) '^pg_(toast_)?temp_'
    union all
    -- A missing ACL stands for the default privileges of the owner. An empty ACL grants nothing.
    select n.nspowner::pg_catalog.int8 operator(pg_catalog.<=) :newest::pg_catalog.int8,
           pg_catalog.hashoidextended(n.nspowner, n.oid::pg_catalog.int8
               operator(pg_catalog.*) case when n.nspacl is null then 2 else 1 end)
    from pg_catalog.pg_namespace n
    where n.nspname operator(pg_catalog.!~) '^pg_(toast_)?temp_'
) e
