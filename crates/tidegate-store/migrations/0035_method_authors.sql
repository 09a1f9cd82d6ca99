-- Whether the tenant's owner wrote a method's text, which may then run on connections that the
-- tenant's users share. Who wrote those that are there is not known: `creator` is also the owner
-- where the methods of a dropped user were handed over. They count as not the owner's until the
-- owner saves `q` again.
-- A statement ends with a semicolon at the end of a line.

alter table tidegate.methods
    add column by_owner boolean not null default false;
