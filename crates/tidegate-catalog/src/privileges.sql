with relation as (
  select c.oid, c.relacl, c.relowner, n.oid as namespace, n.nspname, n.nspowner, c.relname
  from pg_catalog.pg_class c
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where n.nspname = :schema and c.relname = :table and c.relkind in ('r', 'p', 'v', 'm', 'f')
), role as (
  select r.oid, r.rolname::text as name, wanted.place
  from pg_catalog.json_array_elements_text(:roles::json) with ordinality as wanted (name, place)
  join pg_catalog.pg_roles r on r.rolname = wanted.name
), privilege (name) as (
  values ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE'), ('TRUNCATE'), ('REFERENCES'), ('TRIGGER')
), entry as (
  select a.grantor, a.grantee, a.privilege_type, null::text as column_name
  from relation, pg_catalog.aclexplode(relation.relacl) a
  union all
  select a.grantor, a.grantee, a.privilege_type, t.attname::text
  from relation
  join pg_catalog.pg_attribute t on t.attrelid = relation.oid and not t.attisdropped,
    pg_catalog.aclexplode(t.attacl) a
)
select pg_catalog.json_build_object(
  'relation', pg_catalog.format('%I.%I', relation.nspname, relation.relname),
  'schema', pg_catalog.format('%I', relation.nspname),
  'owner', pg_catalog.pg_get_userbyid(relation.relowner),
  'schema_owner', pg_catalog.pg_get_userbyid(relation.nspowner),
  'sequences', (
    select coalesce(pg_catalog.json_agg(pg_catalog.json_build_object(
      'name', pg_catalog.format('%I.%I', n.nspname, s.relname),
      'owner', pg_catalog.pg_get_userbyid(s.relowner)) order by s.oid), '[]')
    from pg_catalog.pg_class s
    join pg_catalog.pg_namespace n on n.oid = s.relnamespace
    where s.relkind = 'S' and s.oid in (
      select d.objid from pg_catalog.pg_depend d
      where d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass
        and d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
        and d.refobjid = relation.oid and d.refobjsubid > 0 and d.deptype = 'a'
      union
      select d.refobjid from pg_catalog.pg_attrdef f
      join pg_catalog.pg_depend d on d.classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass
        and d.objid = f.oid and d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
      where f.adrelid = relation.oid)
  ),
  'roles', (
    select coalesce(pg_catalog.json_agg(pg_catalog.json_build_object(
      'role', role.name,
      'quoted', pg_catalog.format('%I', role.name),
      'usage', pg_catalog.has_schema_privilege(role.oid, relation.namespace, 'USAGE'),
      'gives_usage',
        pg_catalog.has_schema_privilege(role.oid, relation.namespace, 'USAGE WITH GRANT OPTION'),
      'privileges', (
        select coalesce(pg_catalog.json_agg(p.name), '[]') from privilege p
        where pg_catalog.has_table_privilege(role.oid, relation.oid, p.name)),
      'gives', (
        select coalesce(pg_catalog.json_agg(p.name), '[]') from privilege p
        where pg_catalog.has_table_privilege(role.oid, relation.oid,
          p.name || ' WITH GRANT OPTION')),
      'columns', (
        select coalesce(pg_catalog.json_agg(pg_catalog.json_build_object(
          'privilege', e.privilege_type, 'column', e.column_name)
          order by e.privilege_type, e.column_name), '[]')
        from (select distinct e.privilege_type, e.column_name from entry e
          where e.column_name is not null
            and (e.grantee = 0 or pg_catalog.pg_has_role(role.oid, e.grantee, 'USAGE'))) e
        where not pg_catalog.has_table_privilege(role.oid, relation.oid, e.privilege_type)),
      'grants', (
        select coalesce(pg_catalog.json_agg(distinct pg_catalog.jsonb_build_object(
          'grantor', pg_catalog.pg_get_userbyid(e.grantor),
          'through', case when e.grantee = 0 then 'PUBLIC'
            when e.grantee <> role.oid then pg_catalog.pg_get_userbyid(e.grantee)::text end,
          'privilege', e.privilege_type)), '[]')
        from entry e
        where e.grantor <> role.oid
          and (e.grantee = 0 or pg_catalog.pg_has_role(role.oid, e.grantee, 'USAGE')))
      ) order by role.place), '[]')
    from role
  )
)::text
from relation
