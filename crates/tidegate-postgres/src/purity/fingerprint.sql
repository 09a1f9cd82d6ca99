-- Selects a text that changes whenever a catalog row changes from which untrusted names are
-- derived. As in tidegate-catalog, the text contains for each catalog the number of rows and the
-- sum of the transactions that wrote them. The server's own objects, with OIDs below 16384, are
-- left out (PostgreSQL, "System Catalogs").
select pg_catalog.concat_ws(' ',
    (select pg_catalog.concat_ws(',', pg_catalog.count(*), pg_catalog.sum(n.xmin::pg_catalog.text::pg_catalog.int8))
     from pg_catalog.pg_namespace n where n.nspname operator(pg_catalog.!~) '^pg_'),
    (select pg_catalog.concat_ws(',', pg_catalog.count(*), pg_catalog.sum(c.xmin::pg_catalog.text::pg_catalog.int8))
     from pg_catalog.pg_class c
     where c.oid operator(pg_catalog.>=) 16384::pg_catalog.oid
       and c.relpersistence operator(pg_catalog.<>) 't'),
    (select pg_catalog.concat_ws(',', pg_catalog.count(*), pg_catalog.sum(r.xmin::pg_catalog.text::pg_catalog.int8))
     from pg_catalog.pg_rewrite r where r.oid operator(pg_catalog.>=) 16384::pg_catalog.oid),
    (select pg_catalog.concat_ws(',', pg_catalog.count(*), pg_catalog.sum(p.xmin::pg_catalog.text::pg_catalog.int8))
     from pg_catalog.pg_policy p),
    (select pg_catalog.concat_ws(',', pg_catalog.count(*), pg_catalog.sum(i.xmin::pg_catalog.text::pg_catalog.int8))
     from pg_catalog.pg_inherits i),
    (select pg_catalog.concat_ws(',', pg_catalog.count(*), pg_catalog.sum(k.xmin::pg_catalog.text::pg_catalog.int8))
     from pg_catalog.pg_constraint k where k.oid operator(pg_catalog.>=) 16384::pg_catalog.oid),
    (select pg_catalog.concat_ws(',', pg_catalog.count(*), pg_catalog.sum(s.xmin::pg_catalog.text::pg_catalog.int8))
     from pg_catalog.pg_statistic_ext s),
    (select pg_catalog.concat_ws(',', pg_catalog.count(*), pg_catalog.sum(f.xmin::pg_catalog.text::pg_catalog.int8))
     from pg_catalog.pg_proc f where f.oid operator(pg_catalog.>=) 16384::pg_catalog.oid),
    (select pg_catalog.concat_ws(',', pg_catalog.count(*), pg_catalog.sum(o.xmin::pg_catalog.text::pg_catalog.int8))
     from pg_catalog.pg_operator o where o.oid operator(pg_catalog.>=) 16384::pg_catalog.oid),
    (select pg_catalog.concat_ws(',', pg_catalog.count(*), pg_catalog.sum(a.xmin::pg_catalog.text::pg_catalog.int8))
     from pg_catalog.pg_cast a where a.oid operator(pg_catalog.>=) 16384::pg_catalog.oid),
    (select pg_catalog.concat_ws(',', pg_catalog.count(*), pg_catalog.sum(t.xmin::pg_catalog.text::pg_catalog.int8))
     from pg_catalog.pg_trigger t),
    (select pg_catalog.concat_ws(',', pg_catalog.count(*), pg_catalog.sum(d.xmin::pg_catalog.text::pg_catalog.int8))
     from pg_catalog.pg_attrdef d),
    (select pg_catalog.concat_ws(',', pg_catalog.count(*), pg_catalog.sum(y.xmin::pg_catalog.text::pg_catalog.int8))
     from pg_catalog.pg_type y
     where y.oid operator(pg_catalog.>=) 16384::pg_catalog.oid
       and y.typtype operator(pg_catalog.=) any (array['d', 'r']::pg_catalog."char"[])))
