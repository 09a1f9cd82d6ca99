-- Change markers, which cost little to read: first of the whole cluster and of its roles, then of
-- each of the databases `databases`.
--
-- The snapshot stays the same until a transaction of the cluster has written something. The numbers
-- of rows that were written show what it has written: to the catalogs of roles, which all databases
-- share, or to any table of a database, its catalogs included (PostgreSQL, "The Cumulative
-- Statistics System"). A session may report them late, up to ten seconds after its transaction.
select '' as database, pg_catalog.pg_current_snapshot()::pg_catalog.text as snapshot,
       pg_catalog.string_agg(pg_catalog.concat_ws(',',
           pg_catalog.pg_stat_get_tuples_inserted(c.oid), pg_catalog.pg_stat_get_tuples_updated(c.oid),
           pg_catalog.pg_stat_get_tuples_deleted(c.oid)), ' ' order by c.oid) as counts
from pg_catalog.unnest(array[
    'pg_catalog.pg_authid', 'pg_catalog.pg_auth_members', 'pg_catalog.pg_database',
    'pg_catalog.pg_db_role_setting']::pg_catalog.regclass[]) c (oid)
union all
select d.datname::pg_catalog.text, '', pg_catalog.concat_ws(',',
           pg_catalog.pg_stat_get_db_tuples_inserted(d.oid),
           pg_catalog.pg_stat_get_db_tuples_updated(d.oid),
           pg_catalog.pg_stat_get_db_tuples_deleted(d.oid))
from pg_catalog.pg_database d
where d.datname operator(pg_catalog.=) any (:databases::pg_catalog.name[])
