-- The data of a linked account that pages show. Accounts that were linked before have none. A
-- statement ends with a semicolon at the end of a line.

alter table tidegate.identities add column provider text;

alter table tidegate.identities add column name text;

alter table tidegate.identities add column linked_at timestamptz;
