-- Users who may neither sign in nor send requests until they are enabled again.
-- A statement ends with a semicolon at the end of a line.

alter table tidegate.users
    add column disabled boolean not null default false,
    add check (not (disabled and (default_user or name = database)));
