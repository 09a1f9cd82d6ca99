-- Methods, which are statements with names. A statement ends with a semicolon at the end of a line.

-- Version numbers are never used twice. Therefore a method that was dropped and created again has
-- another version.
create sequence tidegate.method_versions as bigint;

create table tidegate.methods (
    -- The name of the tenant, as in users and clients.
    database text not null,
    name text collate "C" not null,
    q text not null,
    -- Arrays of pairs of texts, in the order of the definition.
    type_hints json not null,
    type_formats json not null,
    output_format text,
    creator text not null,
    -- The signature that a dry run inferred, in the program's own format.
    signature text,
    version bigint not null default nextval('tidegate.method_versions'),
    primary key (database, name)
);
