-- The scopes of tokens, personal access tokens, and the consents of users. A statement ends with a
-- semicolon at the end of a line.

alter table tidegate.sessions
    -- Empty for all rights of the user.
    add column scope text not null default '',
    -- The name of a personal access token, and the SHA-256 of the token.
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

-- The user as which the client acts with its own credentials. Statements that delete users set it
-- to null.
alter table tidegate.clients
    add column service_user text;

create table tidegate.consents (
    database text not null,
    user_name text not null,
    -- Not a foreign key, because built-in clients have no row.
    client_id text not null,
    scope text not null,
    given_at timestamptz not null,
    primary key (database, user_name, client_id),
    foreign key (database, user_name) references tidegate.users (database, name) on delete cascade
);

create index consents_client on tidegate.consents (client_id);
