-- Whether the tenant's owner wrote the text of a method. Such a method may run on shared
-- connections. The author of existing methods is unknown, because `creator` is also the owner if a
-- dropped user's methods were handed over. They count as methods of others until the owner saves
-- `q` again. A statement ends with a semicolon at the end of a line.

alter table tidegate.methods
    add column by_owner boolean not null default false;
