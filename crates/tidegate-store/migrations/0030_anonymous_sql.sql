-- Whether a tenant's default user may run SQL of its own. Existing tenants do not allow it, like
-- new ones. A statement ends with a semicolon at the end of a line.

alter table tidegate.tenants
    add column anonymous_sql text not null default 'off'
    check (anonymous_sql in ('off', 'read', 'on'));
