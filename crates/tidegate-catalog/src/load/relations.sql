-- One row for each schema that a role may use, or only for the given schema: its name and, in the
-- last column, the types that its relations may need, in the form that src/document reads
-- (PostgreSQL, "System Catalogs"). Also one row for each relation: the name of its schema, the
-- version of the relation, the version of the types of its columns, and its document. The document
-- is left out if this version is in `known`.
--
-- A version changes when the document or the type of a column changes. It is a hash of the
-- transactions that wrote the catalog rows from which the document is made (PostgreSQL, "System
-- Columns": xmin), and of values that depend on other rows: the role's privileges, the updatability
-- of a view, the names that a foreign key references, and the types.
--
-- The role is a parameter of the privilege functions, so no connection of the role is needed.
-- Columns that not every version of PostgreSQL has are read from the row as JSON: the locale
-- provider of a database (15), multiranges (14). Only views and foreign tables are opened, because
-- pg_relation_is_updatable needs their definition. If that fails, the service repeats the query
-- with a false `ask_views`. Views and foreign tables then count as read only.
with caller as materialized (
    select r.oid, r.rolsuper or r.rolbypassrls as sees_all_rows
    from pg_catalog.pg_roles r
    where r.rolname operator(pg_catalog.=) :role::pg_catalog.text
), shown_schema as materialized (
    select n.oid, n.nspname, w.oid as caller, w.sees_all_rows
    from pg_catalog.pg_namespace n
    cross join caller w
    where n.nspname operator(pg_catalog.!~) '^pg_'
      -- The schema tidegate has the functions of claims and no relations.
      and n.nspname operator(pg_catalog.<>) all (array['information_schema', 'tidegate']::pg_catalog.name[])
      and (:schema::pg_catalog.text is null or n.nspname operator(pg_catalog.=) :schema::pg_catalog.text)
      and pg_catalog.has_schema_privilege(w.oid, n.oid, 'USAGE')
), granted as materialized (
    -- A privilege on the table counts for each column. `allowed` has the commands that the relation
    -- supports, as bits: 4 UPDATE, 8 INSERT, 16 DELETE. `allowed_by_itself` has those that it
    -- supports without INSTEAD OF triggers.
    select c.oid, c.relnamespace, s.nspname, c.relname, c.relkind, c.relpersistence, c.xmin as written,
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
        -- pg_relation_is_updatable fails for a foreign table without a handler.
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
), shown_column as materialized (
    -- Read once, because pg_attribute is the largest of the catalogs. The privileges on the
    -- relation hold for its columns too. A column can have further privileges only if it has an ACL
    -- of its own, and only the columns of a view or a foreign table can differ in updatability.
    select a.attrelid, a.atttypid,
           pg_catalog.hashtextextended(a.xmin::pg_catalog.text, a.attnum) as written,
           case when a.attacl is not null or r.allowed_by_itself operator(pg_catalog.&) 12 operator(pg_catalog.<>) 0 then
               pg_catalog.hashtextextended(pg_catalog.concat_ws(',',
                   pg_catalog.has_column_privilege(r.caller, r.oid, a.attnum, 'SELECT'),
                   pg_catalog.has_column_privilege(r.caller, r.oid, a.attnum, 'INSERT'),
                   pg_catalog.has_column_privilege(r.caller, r.oid, a.attnum, 'UPDATE'),
                   r.allowed_by_itself operator(pg_catalog.&) 12 operator(pg_catalog.<>) 0
                       and pg_catalog.pg_column_is_updatable(r.oid, a.attnum, false)), a.attnum) end as rights
    from shown_relation r
    join pg_catalog.pg_attribute a
      on a.attrelid operator(pg_catalog.=) r.oid
     and a.attnum operator(pg_catalog.>) 0 and not a.attisdropped
), text_order as not materialized (
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
), type_part(root, oid) as (
    -- The types of columns, each with the types that it consists of.
    with recursive tree(root, oid) as (
        (select distinct c.atttypid, c.atttypid from shown_column c)
        union
        select tree.root, below.oid
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
    select tree.root, tree.oid from tree
), least as materialized (
    -- The aggregate functions `min`. Of these, `has_min_max` counts only functions of the server,
    -- or of the extension to which the type belongs. Any other function could be a user's, and
    -- would then run in queries of other users.
    select f.oid, f.proargtypes[0] as type, f.pronamespace as namespace
    from pg_catalog.pg_proc f
    where f.proname operator(pg_catalog.=) 'min'
      and f.prokind operator(pg_catalog.=) 'a'
      and f.pronargs operator(pg_catalog.=) 1
), type_document as materialized (
    select t.oid, pg_catalog.json_strip_nulls(pg_catalog.row_to_json(d)) as document
    from (select distinct p.oid from type_part p) needed
    join pg_catalog.pg_type t on t.oid operator(pg_catalog.=) needed.oid
    join pg_catalog.pg_namespace n on n.oid operator(pg_catalog.=) t.typnamespace
    cross join lateral (
        select (select p.inner_type from part p where p.oid operator(pg_catalog.=) t.oid) as inner_type
    ) p
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
               case when exists (
                   select from least l
                   where l.type operator(pg_catalog.=) case t.oid
                         when 'pg_catalog.varchar'::pg_catalog.regtype then 'pg_catalog.text'::pg_catalog.regtype
                         when 'pg_catalog.cidr'::pg_catalog.regtype then 'pg_catalog.inet'::pg_catalog.regtype
                         else t.oid end
                     and l.namespace operator(pg_catalog.=) t.typnamespace
                     and (l.namespace operator(pg_catalog.=) 'pg_catalog'::pg_catalog.regnamespace
                          or exists (
                              select from pg_catalog.pg_depend a
                              join pg_catalog.pg_depend b
                                on b.refclassid operator(pg_catalog.=) a.refclassid
                               and b.refobjid operator(pg_catalog.=) a.refobjid
                              where a.classid operator(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass
                                and a.objid operator(pg_catalog.=) l.oid
                                and a.deptype operator(pg_catalog.=) 'e'
                                and b.classid operator(pg_catalog.=) 'pg_catalog.pg_type'::pg_catalog.regclass
                                and b.objid operator(pg_catalog.=) t.oid
                                and b.deptype operator(pg_catalog.=) 'e'))
               ) then true end as has_min_max,
               -- The operators that compare values of a type that is not built in. Operators of
               -- another owner than the type's are left out, because each filter on a column of the
               -- type would call them.
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
), type_version as materialized (
    select p.root as oid,
           pg_catalog.hashtextextended(pg_catalog.string_agg(t.document::pg_catalog.text, ',' order by t.oid), 0) as digest
    from type_part p
    join type_document t on t.oid operator(pg_catalog.=) p.oid
    group by p.root
), column_version as materialized (
    select c.attrelid as oid,
           pg_catalog.sum(t.digest) as types,
           pg_catalog.sum(c.written) as written,
           pg_catalog.sum(c.rights) as rights
    from shown_column c
    left join type_version t on t.oid operator(pg_catalog.=) c.atttypid
    group by c.attrelid
), constraint_version as materialized (
    -- The names that a foreign key references can change without a new row of the key. The key's
    -- oid is part of each term, because otherwise two keys that exchange their references would not
    -- change the sum.
    select k.conrelid as oid,
           pg_catalog.sum(pg_catalog.hashtextextended(pg_catalog.concat_ws(',', k.oid, k.xmin),
               case when k.confrelid operator(pg_catalog.=) 0::pg_catalog.oid then 0
                    else pg_catalog.hashtextextended(f.relname::pg_catalog.text,
                             pg_catalog.hashtextextended(coalesce(n.nspname::pg_catalog.text, ''), 0))
                         operator(pg_catalog.#)
                         case when k.confkey[2] is null
                              then (select pg_catalog.hashtextextended(a.attname::pg_catalog.text, 0)
                                    from pg_catalog.pg_attribute a
                                    where a.attrelid operator(pg_catalog.=) k.confrelid
                                      and a.attnum operator(pg_catalog.=) k.confkey[1])
                              else (select pg_catalog.hashtextextended(pg_catalog.jsonb_agg(a.attname order by a.attnum)::pg_catalog.text, 0)
                                    from pg_catalog.pg_attribute a
                                    where a.attrelid operator(pg_catalog.=) k.confrelid
                                      and a.attnum operator(pg_catalog.=) any (k.confkey)) end end)) as digest
    from shown_relation r
    join pg_catalog.pg_constraint k on k.conrelid operator(pg_catalog.=) r.oid
    left join pg_catalog.pg_class f on f.oid operator(pg_catalog.=) k.confrelid
    left join pg_catalog.pg_namespace n
      on n.oid operator(pg_catalog.=) f.relnamespace and n.oid operator(pg_catalog.<>) r.relnamespace
    group by k.conrelid
), comment_version as materialized (
    select m.objoid as oid,
           pg_catalog.sum(pg_catalog.hashtextextended(m.xmin::pg_catalog.text, m.objsubid)) as digest
    from pg_catalog.pg_description m
    where m.classoid operator(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
    group by m.objoid
), policy_version as materialized (
    select p.polrelid as oid, pg_catalog.sum(pg_catalog.hashtextextended(p.xmin::pg_catalog.text, 0)) as digest
    from pg_catalog.pg_policy p
    group by p.polrelid
), versioned as materialized (
    select r.*, c.types as type_version,
           pg_catalog.hashtextextended(v::pg_catalog.text, 0) as version
    from shown_relation r
    left join column_version c on c.oid operator(pg_catalog.=) r.oid
    left join constraint_version k on k.oid operator(pg_catalog.=) r.oid
    left join comment_version m on m.oid operator(pg_catalog.=) r.oid
    left join policy_version p on p.oid operator(pg_catalog.=) r.oid
    cross join lateral (
        select r.oid, r.written, r.row_security, r.can_select, r.can_insert, r.can_update, r.can_delete,
               r.allowed, r.allowed_by_itself, c.types, c.written as "columns", c.rights as column_rights,
               k.digest as "constraints", m.digest as comments, p.digest as policies
    ) v
), unknown as materialized (
    select v.*
    from versioned v
    where not exists (
        select from pg_catalog.unnest(:known::pg_catalog.int8[]) k(version)
        where k.version operator(pg_catalog.=) v.version)
), relation_document as materialized (
    select u.oid, pg_catalog.json_strip_nulls(pg_catalog.row_to_json(d)) as document
    from unknown u
    left join pg_catalog.pg_description m
      on m.objoid operator(pg_catalog.=) u.oid
     and m.classoid operator(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
     and m.objsubid operator(pg_catalog.=) 0
    cross join lateral (
        select pg_catalog.json_agg(pg_catalog.row_to_json(d) order by c.attnum) as document
        from (
            select a.*,
                   case when a.attacl is null and u.allowed_by_itself is null then pg_catalog.replace(u.rights, 'd', '')
                        else case when p.can_select then 's' else '' end operator(pg_catalog.||)
                             case when p.can_insert and u.allowed operator(pg_catalog.&) 8 operator(pg_catalog.<>) 0
                                       and (p.by_itself or u.allowed_by_itself operator(pg_catalog.&) 8 operator(pg_catalog.=) 0) then 'i' else '' end operator(pg_catalog.||)
                             case when p.can_update and u.allowed operator(pg_catalog.&) 4 operator(pg_catalog.<>) 0
                                       and (p.by_itself or u.allowed_by_itself operator(pg_catalog.&) 4 operator(pg_catalog.=) 0) then 'u' else '' end
                   end as rights
            from pg_catalog.pg_attribute a
            cross join lateral (
                select u.can_select or a.attacl is not null and pg_catalog.has_column_privilege(u.caller, u.oid, a.attnum, 'SELECT') as can_select,
                       u.can_insert or a.attacl is not null and pg_catalog.has_column_privilege(u.caller, u.oid, a.attnum, 'INSERT') as can_insert,
                       u.can_update or a.attacl is not null and pg_catalog.has_column_privilege(u.caller, u.oid, a.attnum, 'UPDATE') as can_update,
                       u.allowed_by_itself is null or pg_catalog.pg_column_is_updatable(u.oid, a.attnum, false) as by_itself
            ) p
            where a.attrelid operator(pg_catalog.=) u.oid
              and a.attnum operator(pg_catalog.>) 0 and not a.attisdropped
              and (p.can_select or p.can_insert or p.can_update)
        ) c
        left join text_order t on t.oid operator(pg_catalog.=) c.attcollation
        left join pg_catalog.pg_description m
          on m.objoid operator(pg_catalog.=) c.attrelid
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
                   case when c.rights operator(pg_catalog.<>) pg_catalog.replace(u.rights, 'd', '') then c.rights end as rights
        ) d
    ) c
    cross join lateral (
        select pg_catalog.json_agg(pg_catalog.row_to_json(d) order by k.conname) as document
        from pg_catalog.pg_constraint k
        left join pg_catalog.pg_class f on f.oid operator(pg_catalog.=) k.confrelid
        left join pg_catalog.pg_namespace n
          on n.oid operator(pg_catalog.=) f.relnamespace and n.oid operator(pg_catalog.<>) u.relnamespace
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
        where k.conrelid operator(pg_catalog.=) u.oid
          and k.contype operator(pg_catalog.=) any (array['p', 'f', 'u', 'c', 'x']::pg_catalog."char"[])
          -- A foreign key to a partitioned table has a copy for each partition. The copies are left
          -- out.
          and not (k.contype operator(pg_catalog.=) 'f'
                   and exists (select from pg_catalog.pg_constraint whole
                               where whole.oid operator(pg_catalog.=) k.conparentid
                                 and whole.conrelid operator(pg_catalog.=) k.conrelid))
    ) k
    cross join lateral (
        select u.oid::pg_catalog.int8 as oid,
               u.relname as name,
               case when u.relkind operator(pg_catalog.=) 'p' then 'partitioned'
                    when u.relkind operator(pg_catalog.=) 'f' then 'foreign'
                    when u.relkind operator(pg_catalog.=) 'v' then 'view'
                    when u.relkind operator(pg_catalog.=) 'm' then 'materialized_view'
                    else 'table' end as kind,
               case when u.relpersistence operator(pg_catalog.=) 'u' then 'unlogged'
                    when u.relpersistence operator(pg_catalog.=) 't' then 'temporary' end as persistence,
               case when u.row_security then true end as row_security,
               -- The expression tree of a policy contains the oids of the functions that it calls.
               -- A subquery on a relation, a domain, and a user-defined type may call further
               -- functions. The service's functions of claims only read.
               case when u.row_security and not exists (
                   select from pg_catalog.pg_policy p
                   cross join lateral (values (p.polqual::pg_catalog.text)) q(tree)
                   where p.polrelid operator(pg_catalog.=) u.oid
                     and (q.tree operator(pg_catalog.~) ':rtable \(|\{COERCETODOMAIN'
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
                                     or f.oid operator(pg_catalog.>=) 16384::pg_catalog.oid
                                        and not exists (
                                          select from pg_catalog.pg_namespace n
                                          join pg_catalog.pg_roles o on o.oid operator(pg_catalog.=) n.nspowner
                                          where n.oid operator(pg_catalog.=) f.pronamespace
                                            and n.nspname operator(pg_catalog.=) 'tidegate'
                                            and n.nspowner operator(pg_catalog.=) f.proowner
                                            and (o.rolsuper or o.rolname operator(pg_catalog.=) current_user)))))
               ) then true end as plain_policies,
               m.description as comment,
               u.rights,
               coalesce(c.document, '[]') as columns,
               k.document as "constraints"
    ) d
)
select s.nspname::pg_catalog.text, null, null,
       (select coalesce(pg_catalog.json_agg(t.document order by t.oid), '[]') from type_document t)::pg_catalog.text
from shown_schema s
union all
select v.nspname::pg_catalog.text, v.version::pg_catalog.text, v.type_version::pg_catalog.text,
       d.document::pg_catalog.text
from versioned v
left join relation_document d on d.oid operator(pg_catalog.=) v.oid
