-- A text that changes with every catalog row from which documents are made, in any schema and for
-- any role (PostgreSQL, "System Columns": xmin is the transaction that wrote a row). The privileges
-- of roles on schemas and through memberships are not part of it; usage.sql and roles.sql compare
-- those.
--
-- For each catalog it contains the number of rows and the sum of the transactions that wrote them.
-- A row that replaces another is newer, so a change that keeps the number of rows increases the
-- sum. Temporary relations do not count.
select pg_catalog.concat_ws(' ',
    (select pg_catalog.concat_ws(',', pg_catalog.count(*), pg_catalog.sum(c.xmin::pg_catalog.text::pg_catalog.int8))
     from pg_catalog.pg_class c
     where c.relkind operator(pg_catalog.=) any (array['r', 'p', 'f', 'v', 'm', 'c']::pg_catalog."char"[])
       and c.relpersistence operator(pg_catalog.<>) 't'),
    (select pg_catalog.concat_ws(',', pg_catalog.count(*), pg_catalog.sum(a.xmin::pg_catalog.text::pg_catalog.int8))
     from pg_catalog.pg_attribute a
     join pg_catalog.pg_class c on c.oid operator(pg_catalog.=) a.attrelid
     where a.attnum operator(pg_catalog.>) 0
       and c.relkind operator(pg_catalog.=) any (array['r', 'p', 'f', 'v', 'm', 'c']::pg_catalog."char"[])
       and c.relpersistence operator(pg_catalog.<>) 't'
       and a.attrelid operator(pg_catalog.>=) 12000::pg_catalog.oid),
    (select pg_catalog.concat_ws(',', pg_catalog.count(*), pg_catalog.sum(k.xmin::pg_catalog.text::pg_catalog.int8))
     from pg_catalog.pg_constraint k
     where k.connamespace operator(pg_catalog.<>) all (
         select n.oid from pg_catalog.pg_namespace n where n.nspname operator(pg_catalog.~) '^pg_temp_')),
    -- The name is hashed instead of xmin, because each new user is granted USAGE, which writes the
    -- row of the schema.
    (select pg_catalog.concat_ws(',', pg_catalog.count(*), pg_catalog.sum(
                pg_catalog.hashtextextended(n.nspname::pg_catalog.text, n.oid::pg_catalog.int8)))
     from pg_catalog.pg_namespace n
     where n.nspname operator(pg_catalog.!~) '^pg_(toast_)?temp_'),
    (select pg_catalog.concat_ws(',', pg_catalog.count(*), pg_catalog.sum(t.xmin::pg_catalog.text::pg_catalog.int8))
     from pg_catalog.pg_type t
     where t.typtype operator(pg_catalog.<>) 'c' and t.typcategory operator(pg_catalog.<>) 'A'),
    (select pg_catalog.concat_ws(',', pg_catalog.count(*), pg_catalog.sum(e.xmin::pg_catalog.text::pg_catalog.int8))
     from pg_catalog.pg_enum e),
    (select pg_catalog.concat_ws(',', pg_catalog.count(*), pg_catalog.sum(w.xmin::pg_catalog.text::pg_catalog.int8))
     from pg_catalog.pg_rewrite w),
    (select pg_catalog.concat_ws(',', pg_catalog.count(*), pg_catalog.sum(g.xmin::pg_catalog.text::pg_catalog.int8))
     from pg_catalog.pg_trigger g where not g.tgisinternal),
    (select pg_catalog.concat_ws(',', pg_catalog.count(*), pg_catalog.sum(p.xmin::pg_catalog.text::pg_catalog.int8))
     from pg_catalog.pg_policy p),
    (select pg_catalog.concat_ws(',', pg_catalog.count(*), pg_catalog.sum(f.xmin::pg_catalog.text::pg_catalog.int8))
     from pg_catalog.pg_foreign_table f),
    (select pg_catalog.concat_ws(',', pg_catalog.count(*), pg_catalog.sum(d.xmin::pg_catalog.text::pg_catalog.int8))
     from pg_catalog.pg_description d
     where d.classoid operator(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
       and d.objoid operator(pg_catalog.>=) 12000::pg_catalog.oid)) as definitions
