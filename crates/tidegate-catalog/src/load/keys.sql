-- For each of the given roles: its name, its oid, and a key. Roles with the same key see the same
-- part of the database, as long as no definition changes. Roles that do not exist are left out.
--
-- The key contains whether the role is a superuser, whether it sees all rows, the schemas that it
-- may use, and a hash for each role whose privileges it has. The hash covers the objects that this
-- role owns and its entries in the ACLs of relations and columns. So all members of a group have
-- the same key, and so have users with equal grants. Grants to PUBLIC apply to all roles and are
-- left out. A predefined role that reads or writes all data counts like an entry in an ACL.
--
-- PostgreSQL decides which memberships count (pg_has_role). The recursion only finds the
-- candidates. The predefined roles are candidates for every role, because pg_auth_members has no
-- members of pg_database_owner.
with recursive asked as materialized (
    select r.oid, r.rolname, r.rolsuper, r.rolbypassrls
    from pg_catalog.pg_roles r
    where r.rolname operator(pg_catalog.=) any (:roles::pg_catalog.name[])
), membership(role, oid) as (
    select a.oid, a.oid from asked a where not a.rolsuper
    union
    select h.role, m.roleid
    from membership h
    join pg_catalog.pg_auth_members m on m.member operator(pg_catalog.=) h.oid
), predefined as materialized (
    select r.oid, r.rolname
    from pg_catalog.pg_roles r
    where r.rolname operator(pg_catalog.=) any (
        array['pg_database_owner', 'pg_read_all_data', 'pg_write_all_data']::pg_catalog.name[])
), held as materialized (
    select c.role, c.oid
    from (select m.role, m.oid from membership m
          union
          select a.oid, p.oid from asked a cross join predefined p where not a.rolsuper) c
    where pg_catalog.pg_has_role(c.role, c.oid, 'USAGE')
), grantee as materialized (
    select distinct h.oid from held h
), shown_schema as materialized (
    select n.oid
    from pg_catalog.pg_namespace n
    where n.nspname operator(pg_catalog.!~) '^pg_'
      and n.nspname operator(pg_catalog.<>) 'information_schema'
), shown_relation as materialized (
    select c.oid, c.relowner, c.relacl
    from shown_schema n
    join pg_catalog.pg_class c on c.relnamespace operator(pg_catalog.=) n.oid
    where c.relkind operator(pg_catalog.=) any (array['r', 'p', 'f', 'v', 'm']::pg_catalog."char"[])
      and not c.relispartition
), acl_group as materialized (
    -- Many relations have the same ACL, which is read once for all of them. The relations are the
    -- same for each grantee of the ACL, so equal privileges give equal keys.
    --
    -- The || copies an ACL that is stored out of line. Otherwise aclexplode would read it for each
    -- entry again.
    select l.acl operator(pg_catalog.||) '{}' as acl,
           (select pg_catalog.string_agg(m.oid::pg_catalog.text, ' ' order by m.oid)
            from pg_catalog.unnest(l.members) m(oid)) as relations
    from (
        -- An ACL can be hashed but not sorted, so the aggregate is not ordered.
        select r.relacl as acl, pg_catalog.array_agg(r.oid) as members
        from shown_relation r
        where r.relacl is not null
        group by r.relacl
    ) l
), granted(grantee, privilege) as (
    -- The privileges of owners are not read, because the key contains the owned relations.
    select r.relowner, pg_catalog.concat('OWNER ', pg_catalog.string_agg(r.oid::pg_catalog.text, ' ' order by r.oid))
    from shown_relation r
    join grantee g on g.oid operator(pg_catalog.=) r.relowner
    group by r.relowner
    union all
    select e.grantee, pg_catalog.concat_ws(' ', e.privileges, l.relations)
    from acl_group l
    cross join lateral (
        select a.grantee, pg_catalog.string_agg(distinct a.privilege_type, ',' order by a.privilege_type) as privileges
        from pg_catalog.aclexplode(l.acl) a
        join grantee g on g.oid operator(pg_catalog.=) a.grantee
        where a.privilege_type operator(pg_catalog.=) any (array['SELECT', 'INSERT', 'UPDATE', 'DELETE'])
        group by a.grantee
    ) e
    union all
    select a.grantee, pg_catalog.concat_ws(',', r.oid, c.attnum, a.privilege_type)
    from pg_catalog.pg_attribute c
    join shown_relation r on r.oid operator(pg_catalog.=) c.attrelid
    cross join lateral pg_catalog.aclexplode(c.attacl) a
    join grantee g on g.oid operator(pg_catalog.=) a.grantee
    where c.attacl is not null and not c.attisdropped
      and a.privilege_type operator(pg_catalog.=) any (array['SELECT', 'INSERT', 'UPDATE'])
    union all
    select p.oid, p.rolname::pg_catalog.text
    from predefined p
    where p.rolname operator(pg_catalog.<>) 'pg_database_owner'
), signature as materialized (
    select g.grantee as oid,
           pg_catalog.sha256(pg_catalog.convert_to(
               pg_catalog.string_agg(distinct g.privilege, ' ' order by g.privilege), 'UTF8')) as digest
    from granted g
    group by g.grantee
)
select a.rolname::pg_catalog.text, a.oid::pg_catalog.text,
       case when a.rolsuper then 'superuser' else pg_catalog.concat_ws(' ',
           case when a.rolbypassrls then 'bypassrls' else 'role' end,
           (select pg_catalog.encode(pg_catalog.sha256(
                       pg_catalog.string_agg(distinct s.digest, ''::pg_catalog.bytea order by s.digest)), 'hex')
            from held h
            join signature s on s.oid operator(pg_catalog.=) h.oid
            where h.role operator(pg_catalog.=) a.oid),
           (select pg_catalog.string_agg(n.oid::pg_catalog.text, ' ' order by n.oid)
            from shown_schema n
            where pg_catalog.has_schema_privilege(a.oid, n.oid, 'USAGE'))) end
from asked a
