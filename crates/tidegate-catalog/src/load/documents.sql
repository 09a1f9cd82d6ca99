-- One document for each schema that a role may use (no schema given) or for one of them (its name
-- given), as src/document reads it (PostgreSQL, "System Catalogs").
--
-- The role is a parameter of the privilege functions, so no connection of the role is needed.
-- What differs between the versions of PostgreSQL is read out of the row as JSON: the locale
-- provider of a database (15), multiranges (14). No relation is opened but views and foreign
-- tables, of which pg_relation_is_updatable needs the definition; where that fails, they can be left
-- alone and count as read only (ask_views).
with caller as materialized (
    select r.oid, r.rolsuper or r.rolbypassrls as sees_all_rows
    from pg_catalog.pg_roles r
    where r.rolname operator(pg_catalog.=) :role::pg_catalog.text
), shown_schema as materialized (
    select n.oid, n.nspname, w.oid as caller, w.sees_all_rows
    from pg_catalog.pg_namespace n
    cross join caller w
    where n.nspname operator(pg_catalog.!~) '^pg_'
      and n.nspname operator(pg_catalog.<>) 'information_schema'
      and (:schema::pg_catalog.text is null or n.nspname operator(pg_catalog.=) :schema::pg_catalog.text)
      and pg_catalog.has_schema_privilege(w.oid, n.oid, 'USAGE')
), granted as materialized (
    -- A right on the table counts for each column. What the relation lets be done to it, with and
    -- without triggers, is bits: 4 UPDATE, 8 INSERT, 16 DELETE.
    select c.oid, c.relnamespace, c.relname, c.relkind, c.relpersistence, c.reltype,
           s.caller,
           c.relrowsecurity and not s.sees_all_rows
               and (c.relforcerowsecurity
                    or not pg_catalog.pg_has_role(s.caller, c.relowner, 'USAGE')) as row_security,
           pg_catalog.has_table_privilege(s.caller, c.oid, 'SELECT') as can_select,
           pg_catalog.has_table_privilege(s.caller, c.oid, 'INSERT') as can_insert,
           pg_catalog.has_table_privilege(s.caller, c.oid, 'UPDATE') as can_update,
           pg_catalog.has_table_privilege(s.caller, c.oid, 'DELETE') as can_delete,
           case when k.tells then pg_catalog.pg_relation_is_updatable(c.oid, true)
                when c.relkind operator(pg_catalog.=) any (array['v', 'f', 'm']::pg_catalog."char"[]) then 0
                else 28 end as allowed,
           case when k.tells then pg_catalog.pg_relation_is_updatable(c.oid, false) end as allowed_by_itself
    from shown_schema s
    join pg_catalog.pg_class c on c.relnamespace operator(pg_catalog.=) s.oid
    cross join lateral (
        -- A foreign table without a handler cannot even be asked.
        select :ask_views::pg_catalog.bool
               and (c.relkind operator(pg_catalog.=) 'v'
                    or c.relkind operator(pg_catalog.=) 'f'
                       and exists (select from pg_catalog.pg_foreign_table t
                                   join pg_catalog.pg_foreign_server v on v.oid operator(pg_catalog.=) t.ftserver
                                   join pg_catalog.pg_foreign_data_wrapper w on w.oid operator(pg_catalog.=) v.srvfdw
                                   where t.ftrelid operator(pg_catalog.=) c.oid
                                     and w.fdwhandler operator(pg_catalog.<>) 0::pg_catalog.oid)) as tells
    ) k
    where c.relkind operator(pg_catalog.=) any (array['r', 'p', 'f', 'v', 'm']::pg_catalog."char"[])
      and not c.relispartition
), shown_relation as materialized (
    select g.*,
           case when g.can_select then 's' else '' end operator(pg_catalog.||)
           case when g.can_insert and g.allowed operator(pg_catalog.&) 8 operator(pg_catalog.<>) 0 then 'i' else '' end operator(pg_catalog.||)
           case when g.can_update and g.allowed operator(pg_catalog.&) 4 operator(pg_catalog.<>) 0 then 'u' else '' end operator(pg_catalog.||)
           case when g.can_delete and g.allowed operator(pg_catalog.&) 16 operator(pg_catalog.<>) 0 then 'd' else '' end as rights
    from granted g
    where g.can_select or g.can_insert or g.can_update or g.can_delete
       or pg_catalog.has_any_column_privilege(g.caller, g.oid, 'SELECT, INSERT, UPDATE')
), text_order as materialized (
    select c.oid,
           case when not c.collisdeterministic then 'non_deterministic'
                when pg_catalog.getdatabaseencoding() operator(pg_catalog.<>) 'UTF8' then 'deterministic'
                when c.collprovider operator(pg_catalog.=) 'b' then 'bytes'
                when c.collprovider operator(pg_catalog.=) 'c'
                     and c.collcollate::pg_catalog.text operator(pg_catalog.=) any (array['C', 'POSIX']) then 'bytes'
                when c.collprovider operator(pg_catalog.=) 'd' and d.provider operator(pg_catalog.=) 'b' then 'bytes'
                when c.collprovider operator(pg_catalog.=) 'd' and d.provider operator(pg_catalog.=) 'c'
                     and d.datcollate operator(pg_catalog.=) any (array['C', 'POSIX']) then 'bytes'
                else 'deterministic' end as kind
    from pg_catalog.pg_collation c
    cross join (
        select b.datcollate::pg_catalog.text as datcollate,
               coalesce(pg_catalog.to_jsonb(b) operator(pg_catalog.->>) 'datlocprovider', 'c') as provider
        from pg_catalog.pg_database b
        where b.datname operator(pg_catalog.=) pg_catalog.current_database()
    ) d
), shown_column as materialized (
    select r.oid as relation, r.relnamespace, a.attnum, a.attname, a.atttypid, a.atttypmod, a.attnotnull, a.atthasdef,
           a.attidentity, a.attgenerated, a.attcollation, r.rights as all_rights,
           case when a.attacl is null and r.allowed_by_itself is null then pg_catalog.replace(r.rights, 'd', '')
                else case when p.can_select then 's' else '' end operator(pg_catalog.||)
                     case when p.can_insert and r.allowed operator(pg_catalog.&) 8 operator(pg_catalog.<>) 0
                               and (p.by_itself or r.allowed_by_itself operator(pg_catalog.&) 8 operator(pg_catalog.=) 0) then 'i' else '' end operator(pg_catalog.||)
                     case when p.can_update and r.allowed operator(pg_catalog.&) 4 operator(pg_catalog.<>) 0
                               and (p.by_itself or r.allowed_by_itself operator(pg_catalog.&) 4 operator(pg_catalog.=) 0) then 'u' else '' end
           end as rights
    from shown_relation r
    join pg_catalog.pg_attribute a
      on a.attrelid operator(pg_catalog.=) r.oid
     and a.attnum operator(pg_catalog.>) 0 and not a.attisdropped
    cross join lateral (
        select r.can_select or a.attacl is not null and pg_catalog.has_column_privilege(r.caller, r.oid, a.attnum, 'SELECT') as can_select,
               r.can_insert or a.attacl is not null and pg_catalog.has_column_privilege(r.caller, r.oid, a.attnum, 'INSERT') as can_insert,
               r.can_update or a.attacl is not null and pg_catalog.has_column_privilege(r.caller, r.oid, a.attnum, 'UPDATE') as can_update,
               r.allowed_by_itself is null or pg_catalog.pg_column_is_updatable(r.oid, a.attnum, false) as by_itself
    ) p
    where p.can_select or p.can_insert or p.can_update
), relation_columns as materialized (
    select c.relation,
           pg_catalog.json_agg(pg_catalog.row_to_json(d) order by c.attnum) as document
    from shown_column c
    left join text_order t on t.oid operator(pg_catalog.=) c.attcollation
    left join pg_catalog.pg_description m
      on m.objoid operator(pg_catalog.=) c.relation
     and m.classoid operator(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
     and m.objsubid operator(pg_catalog.=) c.attnum
    cross join lateral (
        select c.attname as name,
               c.attnum as number,
               c.atttypid::pg_catalog.int8 as type,
               case when c.atttypmod operator(pg_catalog.>=) 0 then c.atttypmod end as modifier,
               case when c.attnotnull then true end as not_null,
               case when c.atthasdef then true end as has_default,
               case when c.attgenerated operator(pg_catalog.=) 's' then 'stored'
                    when c.attgenerated operator(pg_catalog.=) 'v' then 'virtual' end as generated,
               case when c.attidentity operator(pg_catalog.=) 'a' then 'always'
                    when c.attidentity operator(pg_catalog.=) 'd' then 'by_default' end as identity,
               t.kind as "collation",
               m.description as comment,
               case when c.rights operator(pg_catalog.<>) pg_catalog.replace(c.all_rights, 'd', '') then c.rights end as rights
    ) d
    group by c.relation
), relation_constraints as materialized (
    select k.conrelid,
           pg_catalog.json_agg(pg_catalog.row_to_json(d) order by k.conname) as document
    from shown_relation r
    join pg_catalog.pg_constraint k on k.conrelid operator(pg_catalog.=) r.oid
    left join pg_catalog.pg_class f on f.oid operator(pg_catalog.=) k.confrelid
    left join pg_catalog.pg_namespace n
      on n.oid operator(pg_catalog.=) f.relnamespace and n.oid operator(pg_catalog.<>) r.relnamespace
    left join pg_catalog.pg_index x on x.indexrelid operator(pg_catalog.=) k.conindid and k.contype operator(pg_catalog.=) 'f'
    cross join lateral (
        select k.conname as name,
               case when k.contype operator(pg_catalog.=) 'p' then 'primary'
                    when k.contype operator(pg_catalog.=) 'f' then 'foreign'
                    when k.contype operator(pg_catalog.=) 'u' then 'unique'
                    when k.contype operator(pg_catalog.=) 'c' then 'check'
                    else 'exclude' end as kind,
               (select coalesce(pg_catalog.json_agg(a.attname order by u.place), '[]')
                from pg_catalog.unnest(k.conkey) with ordinality u(attnum, place)
                join pg_catalog.pg_attribute a
                  on a.attrelid operator(pg_catalog.=) k.conrelid
                 and a.attnum operator(pg_catalog.=) u.attnum) as columns,
               case when f.oid is not null then pg_catalog.json_build_object(
                   'schema', n.nspname,
                   'relation', f.relname,
                   'columns', (select pg_catalog.json_agg(a.attname order by u.place)
                               from pg_catalog.unnest(k.confkey) with ordinality u(attnum, place)
                               join pg_catalog.pg_attribute a
                                 on a.attrelid operator(pg_catalog.=) k.confrelid
                                and a.attnum operator(pg_catalog.=) u.attnum)) end as "references",
               case when not k.convalidated then true end as not_valid,
               case when x.indisexclusion then true end as period
    ) d
    where k.contype operator(pg_catalog.=) any (array['p', 'f', 'u', 'c', 'x']::pg_catalog."char"[])
    -- A key to a partitioned table has a copy to each of its partitions, which nobody made.
    and not (k.contype operator(pg_catalog.=) 'f'
             and exists (select from pg_catalog.pg_constraint whole
                         where whole.oid operator(pg_catalog.=) k.conparentid
                         and whole.conrelid operator(pg_catalog.=) k.conrelid))
    group by k.conrelid
), schema_relations as materialized (
    select r.relnamespace,
           pg_catalog.json_agg(pg_catalog.row_to_json(d) order by r.relname) as document
    from shown_relation r
    left join relation_columns c on c.relation operator(pg_catalog.=) r.oid
    left join relation_constraints k on k.conrelid operator(pg_catalog.=) r.oid
    left join pg_catalog.pg_description m
      on m.objoid operator(pg_catalog.=) r.oid
     and m.classoid operator(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
     and m.objsubid operator(pg_catalog.=) 0
    cross join lateral (
        select r.oid::pg_catalog.int8 as oid,
               r.relname as name,
               case when r.relkind operator(pg_catalog.=) 'p' then 'partitioned'
                    when r.relkind operator(pg_catalog.=) 'f' then 'foreign'
                    when r.relkind operator(pg_catalog.=) 'v' then 'view'
                    when r.relkind operator(pg_catalog.=) 'm' then 'materialized_view'
                    else 'table' end as kind,
               case when r.relpersistence operator(pg_catalog.=) 'u' then 'unlogged'
                    when r.relpersistence operator(pg_catalog.=) 't' then 'temporary' end as persistence,
               case when r.row_security then true end as row_security,
               -- What a policy calls stands in its tree, by the numbers of functions. A subquery, a
               -- domain and a type of the database's own may lead to others.
               case when r.row_security and not exists (
                   select from pg_catalog.pg_policy p
                   cross join lateral (values (p.polqual::pg_catalog.text)) q(tree)
                   where p.polrelid operator(pg_catalog.=) r.oid
                     and (q.tree operator(pg_catalog.~) '\{(SUBLINK|COERCETODOMAIN)'
                          or exists (
                              select from pg_catalog.regexp_matches(q.tree, ':resulttype ([0-9]+)', 'g') m(number)
                              where m.number[1]::pg_catalog.oid operator(pg_catalog.>=) 16384::pg_catalog.oid)
                          or exists (
                              select from pg_catalog.regexp_matches(q.tree, 'funcid ([0-9]+)', 'g') m(number)
                              left join pg_catalog.pg_proc f
                                on f.oid operator(pg_catalog.=) m.number[1]::pg_catalog.oid
                              where m.number[1] operator(pg_catalog.<>) '0'
                                and (f.provolatile is null
                                     or f.provolatile operator(pg_catalog.=) 'v'
                                     or f.oid operator(pg_catalog.>=) 16384::pg_catalog.oid)))
               ) then true end as plain_policies,
               m.description as comment,
               r.rights,
               coalesce(c.document, '[]') as columns,
               k.document as "constraints"
    ) d
    group by r.relnamespace
), range_part as materialized (
    select g.rngtypid, g.rngsubtype,
           (pg_catalog.to_jsonb(g) operator(pg_catalog.->>) 'rngmultitypid')::pg_catalog.oid as multirange
    from pg_catalog.pg_range g
), part as not materialized (
    select t.oid, t.typelem as inner_type from pg_catalog.pg_type t
    where t.typtype operator(pg_catalog.=) 'b' and t.typcategory operator(pg_catalog.=) 'A'
      and t.typelem operator(pg_catalog.<>) 0::pg_catalog.oid
    union all
    select t.oid, t.typbasetype from pg_catalog.pg_type t where t.typtype operator(pg_catalog.=) 'd'
    union all
    select g.rngtypid, g.rngsubtype from range_part g
    union all
    select g.multirange, g.rngsubtype from range_part g where g.multirange is not null
), needed(relnamespace, oid) as (
    with recursive tree(relnamespace, oid) as (
        select c.relnamespace, c.atttypid from shown_column c
        union
        select tree.relnamespace, below.oid
        from tree
        cross join lateral (
            select p.inner_type from part p where p.oid operator(pg_catalog.=) tree.oid
            union all
            select a.atttypid
            from pg_catalog.pg_type t
            join pg_catalog.pg_attribute a on a.attrelid operator(pg_catalog.=) t.typrelid
            where t.oid operator(pg_catalog.=) tree.oid and t.typtype operator(pg_catalog.=) 'c'
              and a.attnum operator(pg_catalog.>) 0 and not a.attisdropped
        ) below(oid)
    )
    select tree.relnamespace, tree.oid from tree
), schema_types as materialized (
    select needed.relnamespace,
           pg_catalog.json_agg(pg_catalog.row_to_json(d) order by t.oid) as document
    from needed
    join pg_catalog.pg_type t on t.oid operator(pg_catalog.=) needed.oid
    join pg_catalog.pg_namespace n on n.oid operator(pg_catalog.=) t.typnamespace
    left join part p on p.oid operator(pg_catalog.=) t.oid
    cross join lateral (
        select coalesce(pg_catalog.bool_or(m.amname operator(pg_catalog.=) 'btree'), false) as sorts,
               coalesce(pg_catalog.bool_or(m.amname operator(pg_catalog.=) any (array['btree', 'hash']::pg_catalog.name[])), false) as groups
        from pg_catalog.pg_opclass o
        join pg_catalog.pg_am m on m.oid operator(pg_catalog.=) o.opcmethod
        where t.typtype operator(pg_catalog.=) 'b' and t.oid operator(pg_catalog.>=) 16384::pg_catalog.oid
          and o.opcintype operator(pg_catalog.=) t.oid and o.opcdefault
    ) k
    cross join lateral (
        select t.oid::pg_catalog.int8 as oid,
               t.typname as name,
               n.nspname as schema,
               case when t.typtype operator(pg_catalog.=) 'e' then 'enum'
                    when t.typtype operator(pg_catalog.=) 'p' then 'pseudo'
                    when t.typtype operator(pg_catalog.=) 'c' then 'composite'
                    when t.typtype operator(pg_catalog.=) 'd' then 'domain'
                    when t.typtype operator(pg_catalog.=) 'r' then 'range'
                    when t.typtype operator(pg_catalog.=) 'm' then 'multirange'
                    when p.inner_type is not null then 'array'
                    else 'simple' end as kind,
               p.inner_type::pg_catalog.int8 as "inner",
               case when t.typtype operator(pg_catalog.=) 'e' then
                   (select pg_catalog.json_agg(e.enumlabel order by e.enumsortorder)
                    from pg_catalog.pg_enum e where e.enumtypid operator(pg_catalog.=) t.oid) end as labels,
               case when t.typtype operator(pg_catalog.=) 'c' then
                   (select pg_catalog.json_agg(
                               pg_catalog.json_build_object('name', a.attname, 'type', a.atttypid::pg_catalog.int8)
                               order by a.attnum)
                    from pg_catalog.pg_attribute a
                    where a.attrelid operator(pg_catalog.=) t.typrelid
                      and a.attnum operator(pg_catalog.>) 0 and not a.attisdropped) end as attributes,
               case when t.typtypmod operator(pg_catalog.>=) 0 then t.typtypmod end as modifier,
               case when t.typnotnull then true end as not_null,
               case when t.typdefault is not null then true end as has_default,
               -- Nobody but the server or the extension that the type is of makes an aggregate
               -- function that others call unawares.
               case when exists (
                   select from pg_catalog.pg_proc f
                   where f.proname operator(pg_catalog.=) 'min'
                     and f.prokind operator(pg_catalog.=) 'a'
                     and f.pronargs operator(pg_catalog.=) 1
                     and f.proargtypes[0] operator(pg_catalog.=) case t.oid
                         when 'pg_catalog.varchar'::pg_catalog.regtype then 'pg_catalog.text'::pg_catalog.regtype
                         when 'pg_catalog.cidr'::pg_catalog.regtype then 'pg_catalog.inet'::pg_catalog.regtype
                         else t.oid end
                     and f.pronamespace operator(pg_catalog.=) t.typnamespace
                     and (f.pronamespace operator(pg_catalog.=) 'pg_catalog'::pg_catalog.regnamespace
                          or exists (
                              select from pg_catalog.pg_depend a
                              join pg_catalog.pg_depend b
                                on b.refclassid operator(pg_catalog.=) a.refclassid
                               and b.refobjid operator(pg_catalog.=) a.refobjid
                              where a.classid operator(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass
                                and a.objid operator(pg_catalog.=) f.oid
                                and a.deptype operator(pg_catalog.=) 'e'
                                and b.classid operator(pg_catalog.=) 'pg_catalog.pg_type'::pg_catalog.regclass
                                and b.objid operator(pg_catalog.=) t.oid
                                and b.deptype operator(pg_catalog.=) 'e'))
               ) then true end as has_least,
               -- By what values of a type that is not built in can be compared. An operator that
               -- somebody else than the type's owner has made is left out: it would be called by
               -- everybody who filters by a column of the type.
               case when t.oid operator(pg_catalog.>=) 16384::pg_catalog.oid
                         and t.typtype operator(pg_catalog.=) 'b' and p.inner_type is null
               then pg_catalog.json_build_object(
                   'operators', (
                       select coalesce(pg_catalog.json_agg(o.oprname order by o.oprname), '[]')
                       from pg_catalog.pg_operator o
                       where o.oprname operator(pg_catalog.=) any (array['=', '<>', '<', '<=', '>', '>=']::pg_catalog.name[])
                         and o.oprleft operator(pg_catalog.=) t.oid
                         and o.oprright operator(pg_catalog.=) t.oid
                         and o.oprresult operator(pg_catalog.=) 'pg_catalog.bool'::pg_catalog.regtype
                         and o.oprnamespace operator(pg_catalog.=) t.typnamespace
                         and o.oprowner operator(pg_catalog.=) t.typowner),
                   'sorts', k.sorts, 'groups', k.groups) end as comparisons
    ) d
    group by needed.relnamespace
)
select s.nspname::pg_catalog.text, pg_catalog.json_strip_nulls(pg_catalog.row_to_json(d))::pg_catalog.text
from shown_schema s
left join schema_relations r on r.relnamespace operator(pg_catalog.=) s.oid
left join schema_types t on t.relnamespace operator(pg_catalog.=) s.oid
cross join lateral (
    select s.nspname as name,
           coalesce(t.document, '[]') as types,
           coalesce(r.document, '[]') as relations
) d
order by s.nspname
