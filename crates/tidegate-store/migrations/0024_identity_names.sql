-- What a page shows of an account elsewhere. Links that were made before have none of it.
-- A statement ends with a semicolon at the end of a line.

alter table tidegate.identities add column provider text;

alter table tidegate.identities add column name text;

alter table tidegate.identities add column linked_at timestamptz;
