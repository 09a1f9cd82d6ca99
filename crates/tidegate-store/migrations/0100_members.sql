-- Members: users without a PostgreSQL role, who share the role of a group.
-- A statement ends with a semicolon at the end of a line.

alter table tidegate.users
    add column kind text not null default 'role' check (kind in ('role', 'member')),
    -- The result of tidegate.user_id(). Null stands for the name.
    add column id text,
    alter column role drop not null,
    add check ((kind = 'role') = (role is not null)),
    add check (kind = 'role' or (user_group is not null and id is not null
        and pg_catalog.strpos(user_group, ',') = 0 and not default_user));

-- Policies compare ids. The id of a user without another id is the name.
create unique index users_user_id on tidegate.users (database, coalesce(id, name));

create index users_name_order on tidegate.users (database, kind, name collate "C");

create index users_group on tidegate.users (database, user_group, name collate "C")
    where kind = 'member';

alter table tidegate.clients
    add column signup_kind text not null default 'role' check (signup_kind in ('role', 'member')),
    -- The group of users that sign up.
    add column signup_group text,
    add check (signup_kind = 'role' or signup_group is not null);
