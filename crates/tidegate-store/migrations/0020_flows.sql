-- Browser sessions, authorization codes, device codes and links.

-- The code in the redirect is the 256-bit preimage of the hash.
create table tidegate.authorization_codes (
    hash bytea primary key,
    client_id text not null,
    redirect_uri text not null,
    challenge text not null,
    database text not null,
    user_name text not null,
    expires_at timestamptz not null,
    -- The session that the code opened. A second use of the code ends it.
    session uuid
);

create index authorization_codes_expired on tidegate.authorization_codes (expires_at);

create table tidegate.device_codes (
    hash bytea primary key,
    user_code text not null unique,
    client_id text not null,
    state text not null check (state in ('pending', 'approved', 'denied', 'consumed')),
    database text,
    user_name text,
    -- The number of seconds that a device must wait between two polls.
    pause bigint not null,
    poll_at timestamptz,
    -- Whether the last poll came too early.
    early boolean not null default false,
    expires_at timestamptz not null,
    check (state <> 'approved' or user_name is not null)
);

create index device_codes_expired on tidegate.device_codes (expires_at);

create table tidegate.browser_sessions (
    id bytea primary key,
    database text not null,
    user_name text not null,
    stamp bytea not null,
    second_factor boolean not null,
    agent text not null,
    address inet,
    created_at timestamptz not null,
    seen_at timestamptz not null,
    expires_at timestamptz not null,
    foreign key (database, user_name) references tidegate.users (database, name) on delete cascade
);

create index browser_sessions_user on tidegate.browser_sessions (database, user_name);

create index browser_sessions_expired on tidegate.browser_sessions (expires_at);

create table tidegate.second_factors (
    database text not null,
    user_name text not null,
    sealed_secret bytea not null,
    used_step bigint not null,
    primary key (database, user_name),
    foreign key (database, user_name) references tidegate.users (database, name) on delete cascade
);

create table tidegate.recovery_codes (
    database text not null,
    user_name text not null,
    hash bytea not null,
    primary key (database, user_name, hash),
    foreign key (database, user_name) references tidegate.second_factors (database, user_name)
        on delete cascade
);
