-- Tenants, users, clients, sessions, signing keys and the audit log. A statement ends with a
-- semicolon at the end of a line.

-- The command line creates tenants. Users, clients and sessions contain the name of their tenant
-- without a foreign key, because sessions must outlive their tenant. Otherwise nodes would not
-- notice that the sessions have ended.
create table tidegate.tenants (
    name text primary key,
    owner_role text not null unique,
    adopted boolean not null,
    -- The grants and revokes of the adoption, which dropping the tenant reverts.
    grants json,
    created_at timestamptz not null
);

create table tidegate.users (
    database text not null,
    name text not null,
    role text not null constraint users_role unique,
    password_hash text,
    email text,
    -- json instead of jsonb, because the text is copied into tokens unchanged.
    properties json,
    user_group text,
    default_user boolean not null,
    created_at timestamptz not null,
    primary key (database, name)
);

create unique index users_default on tidegate.users (database) where default_user;

create table tidegate.clients (
    id text primary key,
    database text not null,
    name text not null,
    redirect_uris json not null,
    homepage text,
    description text,
    -- SHA-256 of secrets with 256 bits; a public client has none.
    secret_hash bytea,
    previous_secret_hash bytea,
    previous_secret_expires_at timestamptz,
    confirm boolean not null,
    two_factor boolean not null,
    allow_signup boolean not null,
    social_signup boolean not null,
    -- Null allows all grants.
    grants json,
    created_at timestamptz not null
);

create index clients_database on tidegate.clients (database);

-- No index covers the columns that a refresh changes, and the pages have free space. Therefore a
-- refresh updates no index.
create table tidegate.sessions (
    id uuid primary key,
    database text not null,
    user_name text not null,
    client_id text not null,
    grant_kind text not null,
    presented bigint not null,
    created_at timestamptz not null,
    refreshed_at timestamptz not null,
    expires_at timestamptz not null,
    closes_at timestamptz not null,
    ended_at timestamptz,
    end_reason text,
    check ((ended_at is null) = (end_reason is null))
) with (fillfactor = 80);

create index sessions_user on tidegate.sessions (database, user_name) where ended_at is null;

create index sessions_client on tidegate.sessions (client_id) where ended_at is null;

create index sessions_ended on tidegate.sessions (ended_at) where ended_at is not null;

create table tidegate.signing_keys (
    id text primary key,
    state text not null check (state in ('next', 'active', 'retired')),
    -- When the key entered its state. A new key is in the state `next`.
    since timestamptz,
    public_key bytea not null,
    sealed_private_key bytea not null,
    created_at timestamptz not null,
    check ((since is null) = (state = 'next'))
);

create unique index signing_keys_state on tidegate.signing_keys (state)
    where state in ('next', 'active');

-- One row, for the master key that encrypted the secrets in this schema.
create table tidegate.master_key (
    only_row boolean primary key default true check (only_row),
    fingerprint text not null
);

create table tidegate.attempts (
    scope text not null,
    subject text not null,
    count integer not null,
    open_at timestamptz,
    expires_at timestamptz not null,
    primary key (scope, subject)
) with (fillfactor = 80);

create table tidegate.audit_events (
    number bigint generated always as identity primary key,
    at timestamptz not null,
    kind text not null,
    detail text,
    database text,
    user_name text,
    client_id text,
    session uuid,
    address inet
);

create index audit_events_database on tidegate.audit_events (database, at);

create index audit_events_at on tidegate.audit_events (at);
