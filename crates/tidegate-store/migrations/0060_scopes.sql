-- What tokens may be used for, who made personal access tokens, what people allowed applications.
-- A statement ends with a semicolon at the end of a line.

alter table tidegate.sessions
    -- Empty: all rights of the user.
    add column scope text not null default '',
    -- A personal access token: its name, and the SHA-256 of it.
    add column token_name text,
    add column token_hash bytea,
    add check ((token_name is null) = (token_hash is null));

create unique index sessions_token on tidegate.sessions (token_hash) where token_hash is not null;

create index sessions_tokens on tidegate.sessions (database, user_name)
    where token_hash is not null;

alter table tidegate.authorization_codes
    add column scope text not null default '';

alter table tidegate.device_codes
    add column scope text not null default '';

-- The user that the client acts as by its own credentials. Statements that delete users clear it.
alter table tidegate.clients
    add column service_user text;

create table tidegate.consents (
    database text not null,
    user_name text not null,
    -- Built-in clients have no row, so this is no reference.
    client_id text not null,
    scope text not null,
    given_at timestamptz not null,
    primary key (database, user_name, client_id),
    foreign key (database, user_name) references tidegate.users (database, name) on delete cascade
);

create index consents_client on tidegate.consents (client_id);
