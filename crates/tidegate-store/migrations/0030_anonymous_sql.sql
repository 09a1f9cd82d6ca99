-- What a tenant lets its default user do with SQL of its own. Tenants that were there before allow
-- none, like new ones.
-- A statement ends with a semicolon at the end of a line.

alter table tidegate.tenants
    add column anonymous_sql text not null default 'off'
    check (anonymous_sql in ('off', 'read', 'on'));
