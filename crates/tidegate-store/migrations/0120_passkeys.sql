-- Passkeys with which users sign in.
-- A statement ends with a semicolon at the end of a line.

create table tidegate.passkeys (
    id text primary key,
    database text not null,
    user_name text not null,
    name text not null,
    record text not null,
    created_at timestamptz not null,
    used_at timestamptz,
    foreign key (database, user_name) references tidegate.users (database, name) on delete cascade
);

create index passkeys_user on tidegate.passkeys (database, user_name);
