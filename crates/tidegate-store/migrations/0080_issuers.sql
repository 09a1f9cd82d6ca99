-- External issuers whose tokens tenants accept. A statement ends with a semicolon at the end of a
-- line.

-- Grows with every change of an issuer. Nodes compare it, so they also notice changes whose
-- notification was lost.
create sequence tidegate.issuer_versions;

create table tidegate.issuers (
    database text not null,
    name text not null,
    -- The fields of the API. Keys are never stored.
    settings json not null,
    version bigint not null default pg_catalog.nextval('tidegate.issuer_versions'),
    created_at timestamptz not null,
    primary key (database, name)
);
