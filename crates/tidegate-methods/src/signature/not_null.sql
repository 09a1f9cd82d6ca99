select pg_catalog.concat(a.attrelid, ' ', a.attnum)
from pg_catalog.pg_attribute a
join pg_catalog.pg_class c on c.oid operator(pg_catalog.=) a.attrelid
where a.attrelid operator(pg_catalog.=) any (:tables::pg_catalog.oid[])
  and a.attnum operator(pg_catalog.>) 0
  and a.attnotnull
  and not c.relhasrules
  and (
    c.relkind operator(pg_catalog.=) 'r' and not c.relhassubclass
    or c.relkind operator(pg_catalog.=) 'p' and not exists (
      select from pg_catalog.pg_partition_tree(c.oid::pg_catalog.regclass) t
      join pg_catalog.pg_class f on f.oid operator(pg_catalog.=) t.relid::pg_catalog.oid
      where f.relkind operator(pg_catalog.=) 'f'
    )
  )
  and not exists (
    select from pg_catalog.pg_constraint k
    where k.conrelid operator(pg_catalog.=) a.attrelid
      and k.contype operator(pg_catalog.=) 'n'
      and not k.convalidated
      and a.attnum operator(pg_catalog.=) any (k.conkey)
  )
