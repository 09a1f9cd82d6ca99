-- Selects the code that a statement can run in addition to the code in its text, as (kind, oid,
-- name, text). Left out are the server's own objects (OIDs below 16384), objects of an extension
-- that a superuser created, and the service's functions of claims, which only read.
--
--   relation   `text` is code that a read of the relation may run; empty if it is unknown
--   child      `text` is the OID of a relation that a read of this relation reads too; no name
--   function   `text` says whether the function can be called with one argument
--   operator   no text
--   cast       neither a name nor a text
--   write      `text` is code that a write of the relation may run; empty if it is unknown
--   cascade    `text` is the OID of a relation that a write of this relation writes too; no name
--   type       `text` is code that PostgreSQL may run where a value of the type is read
--   restricted the relation is under row level security; no text
--   claims     one row if all functions of the schema tidegate are those of the service
--   call       `text` is the definition of a function that a statement can call. It is empty for an
--              aggregate, and for a function that is not SQL or PL/pgSQL. It is also empty if
--              PostgreSQL may check a privilege only for the first user of a prepared statement:
--              USAGE of the schema, when it parses the statement, or EXECUTE, when it inlines the
--              function. Left out are trigger functions, SECURITY DEFINER functions, which cannot
--              change the role, and functions in C of extensions that run no text.
--
-- The code of relations includes index expressions, predicates, statistics, checks and partition
-- keys, because the planner evaluates calls in them that have constant arguments.
with installed as (
    select d.classid, d.objid from pg_catalog.pg_depend d
    where d.deptype operator(pg_catalog.=) 'e'
), trusted as (
    select r.oid from pg_catalog.pg_roles r where r.rolsuper
), claims as (
    select f.oid from pg_catalog.pg_proc f
    join pg_catalog.pg_namespace n on n.oid operator(pg_catalog.=) f.pronamespace
        and n.nspowner operator(pg_catalog.=) f.proowner
    join pg_catalog.pg_roles o on o.oid operator(pg_catalog.=) f.proowner
    where n.nspname operator(pg_catalog.=) any (array['tidegate', 'tidegate_private']::pg_catalog.name[])
      and (o.rolsuper or o.rolname operator(pg_catalog.=) current_user)
), expression as (
    select i.indrelid as relation, pg_catalog.pg_get_expr(e.tree, i.indrelid) as text
    from pg_catalog.pg_index i
    cross join lateral (values (i.indexprs), (i.indpred)) e(tree)
    where i.indrelid operator(pg_catalog.>=) 16384::pg_catalog.oid
    union all
    select p.polrelid, pg_catalog.pg_get_expr(p.polqual, p.polrelid) from pg_catalog.pg_policy p
    union all
    select k.conrelid, pg_catalog.pg_get_expr(k.conbin, k.conrelid)
    from pg_catalog.pg_constraint k
    where k.contype operator(pg_catalog.=) 'c'
      and k.conrelid operator(pg_catalog.>=) 16384::pg_catalog.oid
    union all
    select t.partrelid, pg_catalog.pg_get_expr(t.partexprs, t.partrelid)
    from pg_catalog.pg_partitioned_table t
    union all
    -- Statistics on expressions. No function returns their text in all versions of PostgreSQL. The
    -- text here is a single quote: it cannot be parsed, so the relation counts as untrusted.
    select s.stxrelid, ''''
    from pg_catalog.pg_statistic_ext s
    where 'e'::pg_catalog."char" operator(pg_catalog.=) any (s.stxkind)
)
select 'relation' as kind, c.oid::pg_catalog.text as oid, c.relname::pg_catalog.text as name,
    case when c.relkind operator(pg_catalog.=) 'v' then pg_catalog.pg_get_viewdef(c.oid) end as text
from pg_catalog.pg_class c
where c.relkind operator(pg_catalog.=) any (array['v', 'f']::pg_catalog."char"[])
  and c.oid operator(pg_catalog.>=) 16384::pg_catalog.oid
union all
select 'relation', c.oid::pg_catalog.text, c.relname::pg_catalog.text, pg_catalog.concat('select ', e.text)
from expression e join pg_catalog.pg_class c on c.oid operator(pg_catalog.=) e.relation
where e.text is not null
union all
select 'relation', c.oid::pg_catalog.text, c.relname::pg_catalog.text, 'select'
from pg_catalog.pg_class c
where c.oid operator(pg_catalog.=) any (select i.inhparent from pg_catalog.pg_inherits i)
union all
select 'child', i.inhparent::pg_catalog.text, '', i.inhrelid::pg_catalog.text
from pg_catalog.pg_inherits i
union all
select 'function', f.oid::pg_catalog.text, f.proname::pg_catalog.text,
    (f.pronargs operator(pg_catalog.>) 0
     and f.pronargs operator(pg_catalog.-) f.pronargdefaults operator(pg_catalog.<=) 1)::pg_catalog.text
from pg_catalog.pg_proc f
where f.oid operator(pg_catalog.>=) 16384::pg_catalog.oid
  and f.prokind operator(pg_catalog.<>) 'p'
  and f.oid operator(pg_catalog.<>) all (select s.oid from claims s)
  and not (f.proowner operator(pg_catalog.=) any (select t.oid from trusted t)
           and (1255::pg_catalog.oid, f.oid) operator(pg_catalog.=) any (select n.classid, n.objid from installed n))
union all
select 'operator', o.oid::pg_catalog.text, o.oprname::pg_catalog.text, ''
from pg_catalog.pg_operator o
where o.oid operator(pg_catalog.>=) 16384::pg_catalog.oid
  and not (o.oprowner operator(pg_catalog.=) any (select t.oid from trusted t)
           and (2617::pg_catalog.oid, o.oid) operator(pg_catalog.=) any (select n.classid, n.objid from installed n))
union all
select 'cast', a.oid::pg_catalog.text, '', ''
from pg_catalog.pg_cast a
join pg_catalog.pg_proc f on f.oid operator(pg_catalog.=) a.castfunc
where a.oid operator(pg_catalog.>=) 16384::pg_catalog.oid
  and not (f.proowner operator(pg_catalog.=) any (select t.oid from trusted t)
           and (2605::pg_catalog.oid, a.oid) operator(pg_catalog.=) any (select n.classid, n.objid from installed n))
union all
-- Tables with triggers or rules. Internal triggers, such as those of foreign keys, are the server's
-- own and left out.
select 'write', c.oid::pg_catalog.text, c.relname::pg_catalog.text, ''
from pg_catalog.pg_class c
where c.oid operator(pg_catalog.=) any (
        select t.tgrelid from pg_catalog.pg_trigger t
        where not t.tgisinternal
          and (t.tgfoid operator(pg_catalog.>=) 16384::pg_catalog.oid or t.tgqual is not null))
   or c.oid operator(pg_catalog.=) any (
        select w.ev_class from pg_catalog.pg_rewrite w
        where w.ev_type operator(pg_catalog.<>) '1'::pg_catalog."char"
          and w.oid operator(pg_catalog.>=) 16384::pg_catalog.oid)
union all
-- Views on pg_settings. An UPDATE of pg_settings sets a parameter, because the view has a rule.
select 'write', c.oid::pg_catalog.text, c.relname::pg_catalog.text, ''
from pg_catalog.pg_class c
where c.oid operator(pg_catalog.>=) 16384::pg_catalog.oid
  and c.oid operator(pg_catalog.=) any (
    with recursive settings (oid) as (
        select 'pg_catalog.pg_settings'::pg_catalog.regclass::pg_catalog.oid
        union
        select w.ev_class
        from settings s
        join pg_catalog.pg_depend d on d.refclassid operator(pg_catalog.=) 1259::pg_catalog.oid
            and d.refobjid operator(pg_catalog.=) s.oid
            and d.classid operator(pg_catalog.=) 2618::pg_catalog.oid
        join pg_catalog.pg_rewrite w on w.oid operator(pg_catalog.=) d.objid
    )
    select s.oid from settings s)
union all
-- Defaults, and policies for writes. A default that takes the next value of a sequence is left out,
-- because only text of callers can read what it leaves in the session. Constant defaults are left
-- out, because they call nothing. They are the most frequent, so reading them would cost the most.
select 'write', c.oid::pg_catalog.text, c.relname::pg_catalog.text,
    pg_catalog.concat('select ', e.text)
from (
    select a.adrelid as relation, pg_catalog.pg_get_expr(a.adbin, a.adrelid) as text
    from pg_catalog.pg_attrdef a
    where not pg_catalog.starts_with(a.adbin::pg_catalog.text, '{CONST ')
    union all
    select p.polrelid, pg_catalog.pg_get_expr(p.polwithcheck, p.polrelid) from pg_catalog.pg_policy p
) e join pg_catalog.pg_class c on c.oid operator(pg_catalog.=) e.relation
where not (pg_catalog.starts_with(e.text, 'nextval(')
           and e.text operator(pg_catalog.~) '^nextval\(''[^'']*''::regclass\)$')
union all
select 'write', c.oid::pg_catalog.text, c.relname::pg_catalog.text, 'select'
from pg_catalog.pg_class c
where c.oid operator(pg_catalog.=) any (
    select k.confrelid from pg_catalog.pg_constraint k
    where k.contype operator(pg_catalog.=) 'f'
      and (k.confdeltype operator(pg_catalog.=) any (array['c', 'n', 'd']::pg_catalog."char"[])
           or k.confupdtype operator(pg_catalog.=) any (array['c', 'n', 'd']::pg_catalog."char"[])))
union all
select 'cascade', k.confrelid::pg_catalog.text, '', k.conrelid::pg_catalog.text
from pg_catalog.pg_constraint k
where k.contype operator(pg_catalog.=) 'f'
  and (k.confdeltype operator(pg_catalog.=) any (array['c', 'n', 'd']::pg_catalog."char"[])
       or k.confupdtype operator(pg_catalog.=) any (array['c', 'n', 'd']::pg_catalog."char"[]))
union all
select 'type', y.oid::pg_catalog.text, y.typname::pg_catalog.text,
    pg_catalog.concat('select ', e.text)
from pg_catalog.pg_type y
cross join lateral (
    -- The text after the word CHECK.
    select pg_catalog.substr(pg_catalog.pg_get_constraintdef(k.oid), 6) as text
    from pg_catalog.pg_constraint k
    where k.contypid operator(pg_catalog.=) y.oid and k.contype operator(pg_catalog.=) 'c'
    union all
    select y.typdefault
) e
where y.oid operator(pg_catalog.>=) 16384::pg_catalog.oid and e.text is not null
  -- Row types of tables and arrays have neither a check nor a default. A domain over an array has
  -- the category of arrays.
  and y.typtype operator(pg_catalog.<>) 'c'
  and (y.typtype operator(pg_catalog.=) 'd' or y.typcategory operator(pg_catalog.<>) 'A')
union all
select 'type', r.rngtypid::pg_catalog.text, '', ''
from pg_catalog.pg_range r
where r.rngcanonical::pg_catalog.oid operator(pg_catalog.>=) 16384::pg_catalog.oid
   or r.rngsubdiff::pg_catalog.oid operator(pg_catalog.>=) 16384::pg_catalog.oid
union all
select 'restricted', c.oid::pg_catalog.text, c.relname::pg_catalog.text, ''
from pg_catalog.pg_class c
where c.relrowsecurity and c.oid operator(pg_catalog.>=) 16384::pg_catalog.oid
union all
select 'claims', '', '', ''
from pg_catalog.pg_proc f
join pg_catalog.pg_namespace n on n.oid operator(pg_catalog.=) f.pronamespace
where n.nspname operator(pg_catalog.=) 'tidegate'
having pg_catalog.bool_and(f.oid operator(pg_catalog.=) any (select s.oid from claims s))
union all
select 'call', f.oid::pg_catalog.text, f.proname::pg_catalog.text,
    case
        when f.prokind operator(pg_catalog.=) 'a' then null
        when not pg_catalog.has_schema_privilege('public', f.pronamespace, 'usage') then null
        when l.lanname operator(pg_catalog.=) 'plpgsql' then pg_catalog.pg_get_functiondef(f.oid)
        when l.lanname operator(pg_catalog.=) 'sql'
            and pg_catalog.has_function_privilege('public', f.oid, 'execute')
            then pg_catalog.pg_get_functiondef(f.oid)
    end
from pg_catalog.pg_proc f
join pg_catalog.pg_language l on l.oid operator(pg_catalog.=) f.prolang
join pg_catalog.pg_namespace n on n.oid operator(pg_catalog.=) f.pronamespace
where f.oid operator(pg_catalog.>=) 16384::pg_catalog.oid
  and f.oid operator(pg_catalog.<>) all (select s.oid from claims s)
  and not (f.prosecdef and pg_catalog.has_schema_privilege('public', f.pronamespace, 'usage'))
  and f.prorettype operator(pg_catalog.<>) all (array['pg_catalog.trigger'::pg_catalog.regtype, 'pg_catalog.event_trigger'::pg_catalog.regtype]::pg_catalog.oid[])
  and n.nspname operator(pg_catalog.!~) '^pg_temp_'
  and not exists (
      select from pg_catalog.pg_depend d
      join pg_catalog.pg_extension e on e.oid operator(pg_catalog.=) d.refobjid
      where l.lanname operator(pg_catalog.=) 'c'
        and f.proowner operator(pg_catalog.=) any (select t.oid from trusted t)
        and d.classid operator(pg_catalog.=) 1255::pg_catalog.oid
        and d.objid operator(pg_catalog.=) f.oid
        and d.deptype operator(pg_catalog.=) 'e'
        and d.refclassid operator(pg_catalog.=) 3079::pg_catalog.oid
        and e.extname operator(pg_catalog.=) any (array['address_standardizer', 'btree_gin',
            'btree_gist', 'citext', 'cube', 'earthdistance', 'fuzzystrmatch', 'hstore', 'intarray',
            'isn', 'ltree', 'pg_trgm', 'pgcrypto', 'postgis', 'seg', 'unaccent', 'uuid-ossp',
            'vector']::pg_catalog.name[]))
