-- The roles and inherited memberships of the cluster: a fingerprint for the roles with an oid up to
-- `newest`, a fingerprint for all roles, and the oid of the newest role. New roles have higher
-- oids. So if only new roles were added, the first fingerprint equals the second one of the
-- previous query. (When oids wrap around, a new role looks like a change.)
--
-- A membership without inheritance gives no privileges. Since PostgreSQL 16 the membership has this
-- option; before, the member has it. If pg_auth_members has no column `inherit_option`, this name
-- refers to the column of `fallback`. An authenticator is a member of the role of each of its
-- users, but inherits nothing. So a new user does not change the first fingerprint.
select pg_catalog.concat_ws(' ', m.known, r.known) as known,
       pg_catalog.concat_ws(' ', m.whole, r.whole) as whole,
       r.newest
from (
    select pg_catalog.concat_ws(',', pg_catalog.count(*) filter (where e.known),
                pg_catalog.sum(e.written) filter (where e.known)) as known,
           pg_catalog.concat_ws(',', pg_catalog.count(*), pg_catalog.sum(e.written)) as whole
    from (
        select m.written, m.member::pg_catalog.int8 operator(pg_catalog.<=) :newest::pg_catalog.int8 as known
        from (select null::pg_catalog.bool) fallback(inherit_option)
        cross join lateral (
            select m.member, m.xmin::pg_catalog.text::pg_catalog.int8 as written, inherit_option as inherits
            from pg_catalog.pg_auth_members m
        ) m
        join pg_catalog.pg_roles r on r.oid operator(pg_catalog.=) m.member
        where coalesce(m.inherits, r.rolinherit)
    ) e
) m
cross join (
    select pg_catalog.concat_ws(',', pg_catalog.count(*) filter (where e.known),
                pg_catalog.sum(e.digest) filter (where e.known)) as known,
           pg_catalog.concat_ws(',', pg_catalog.count(*), pg_catalog.sum(e.digest)) as whole,
           pg_catalog.max(e.number) as newest
    from (
        -- pg_roles is a view without xmin, so the columns are hashed that affect privileges.
        select r.oid::pg_catalog.int8 as number,
               r.oid::pg_catalog.int8 operator(pg_catalog.<=) :newest::pg_catalog.int8 as known,
               pg_catalog.hashtextextended(pg_catalog.concat_ws(',',
                   r.oid, r.rolname, r.rolsuper, r.rolinherit, r.rolbypassrls), 0) as digest
        from pg_catalog.pg_roles r
    ) e
) r
