-- Issuers outside of this service whose tokens tenants accept.
-- A statement ends with a semicolon at the end of a line.

-- Grows with every change of an issuer, so that nodes notice changes although a notification was lost.
create sequence tidegate.issuer_versions;

create table tidegate.issuers (
    database text not null,
    name text not null,
    -- The members of the API; keys are never stored.
    settings json not null,
    version bigint not null default pg_catalog.nextval('tidegate.issuer_versions'),
    created_at timestamptz not null,
    primary key (database, name)
);
