-- One document for every schema that the role may use (no schema given) or for one of them (its name given):
-- an array of objects with their tables, columns and constraints (PostgreSQL, "System Catalogs").
-- row_to_json and array_to_json write compact JSON and pass nested json through as it is;
-- json_strip_nulls drops the members that only some objects have (comment, referenced_table).
with shown_schema as materialized (
    select n.oid, n.nspname
    from pg_catalog.pg_namespace n
    where n.nspname operator(pg_catalog.!~) '^pg_'
      and n.nspname operator(pg_catalog.<>) 'information_schema'
      and (:schema::pg_catalog.text is null or n.nspname operator(pg_catalog.=) :schema::pg_catalog.text)
      and pg_catalog.has_schema_privilege(n.oid, 'USAGE')
), shown_table as materialized (
    select c.oid, c.relnamespace, c.relname
    from pg_catalog.pg_class c
    join shown_schema s on s.oid operator(pg_catalog.=) c.relnamespace
    where c.relkind operator(pg_catalog.=) any (array['r', 'p', 'f', 'v', 'm']::pg_catalog."char"[])
      and not c.relispartition
      and (pg_catalog.has_table_privilege(c.oid, 'SELECT, INSERT, UPDATE, DELETE')
           or pg_catalog.has_any_column_privilege(c.oid, 'SELECT, INSERT, UPDATE'))
), table_columns as materialized (
    select a.attrelid,
           pg_catalog.array_to_json(pg_catalog.array_agg(pg_catalog.row_to_json(d) order by a.attnum)) as document
    from shown_table t
    join pg_catalog.pg_attribute a
      on a.attrelid operator(pg_catalog.=) t.oid
     and a.attnum operator(pg_catalog.>) 0 and not a.attisdropped
    join pg_catalog.pg_type y on y.oid operator(pg_catalog.=) a.atttypid
    left join pg_catalog.pg_type e
      on e.oid operator(pg_catalog.=) y.typelem and y.typcategory operator(pg_catalog.=) 'A'
    cross join lateral (
        select a.attname as name,
               coalesce(e.typname, y.typname) as "_typname",
               e.oid is not null as "_is_array",
               not (a.attnotnull or y.typnotnull) as is_nullable,
               pg_catalog.col_description(a.attrelid, a.attnum) as comment
    ) d
    where pg_catalog.has_column_privilege(t.oid, a.attnum, 'SELECT, INSERT, UPDATE')
    group by a.attrelid
), table_constraints as materialized (
    select k.conrelid,
           pg_catalog.array_to_json(pg_catalog.array_agg(pg_catalog.row_to_json(d) order by k.conname)) as document
    from shown_table t
    join pg_catalog.pg_constraint k on k.conrelid operator(pg_catalog.=) t.oid
    left join pg_catalog.pg_class r on r.oid operator(pg_catalog.=) k.confrelid
    left join pg_catalog.pg_namespace rn on rn.oid operator(pg_catalog.=) r.relnamespace
    cross join lateral (
        select k.conname as name,
               case k.contype when 'p' then 'primary' when 'f' then 'foreign'
                              when 'u' then 'unique' when 'c' then 'check'
                              else 'exclude' end as "constraint",
               (select coalesce(pg_catalog.array_to_json(pg_catalog.array_agg(a.attname order by u.place)), '[]')
                from pg_catalog.unnest(k.conkey) with ordinality u(attnum, place)
                join pg_catalog.pg_attribute a
                  on a.attrelid operator(pg_catalog.=) k.conrelid
                 and a.attnum operator(pg_catalog.=) u.attnum) as columns,
               case when r.relnamespace operator(pg_catalog.=) t.relnamespace then r.relname::pg_catalog.text
                    else rn.nspname operator(pg_catalog.||) '.' operator(pg_catalog.||) r.relname end as referenced_table,
               (select pg_catalog.array_to_json(pg_catalog.array_agg(a.attname order by u.place))
                from pg_catalog.unnest(k.confkey) with ordinality u(attnum, place)
                join pg_catalog.pg_attribute a
                  on a.attrelid operator(pg_catalog.=) k.confrelid
                 and a.attnum operator(pg_catalog.=) u.attnum) as referenced_columns
    ) d
    where k.contype operator(pg_catalog.=) any (array['p', 'f', 'u', 'c', 'x']::pg_catalog."char"[])
    group by k.conrelid
), schema_tables as materialized (
    select t.relnamespace,
           pg_catalog.array_to_json(pg_catalog.array_agg(pg_catalog.row_to_json(d) order by t.relname)) as document
    from shown_table t
    left join table_columns c on c.attrelid operator(pg_catalog.=) t.oid
    left join table_constraints k on k.conrelid operator(pg_catalog.=) t.oid
    cross join lateral (
        select t.relname as name,
               coalesce(c.document, '[]') as columns,
               coalesce(k.document, '[]') as "constraints",
               pg_catalog.obj_description(t.oid, 'pg_class') as comment
    ) d
    group by t.relnamespace
)
select coalesce(
           pg_catalog.json_strip_nulls(pg_catalog.array_to_json(
               pg_catalog.array_agg(pg_catalog.row_to_json(d) order by s.nspname))),
           '[]')::pg_catalog.text
from shown_schema s
left join schema_tables t on t.relnamespace operator(pg_catalog.=) s.oid
cross join lateral (select s.nspname as name, coalesce(t.document, '[]') as tables) d
