-- Statements by name.
-- A statement ends with a semicolon at the end of a line.

-- Numbers that no method had before, so that one that was dropped and made anew is another one.
create sequence tidegate.method_versions as bigint;

create table tidegate.methods (
    -- Names its tenant, as users and clients do.
    database text not null,
    name text collate "C" not null,
    q text not null,
    -- Arrays of pairs of texts, in the order in which they were given.
    type_hints json not null,
    type_formats json not null,
    output_format text,
    creator text not null,
    -- What a dry run inferred, as the program that made it writes it.
    signature text,
    version bigint not null default nextval('tidegate.method_versions'),
    primary key (database, name)
);
