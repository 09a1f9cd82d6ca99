-- The data of users that clients see: ids that are never assigned to another user, and confirmed
-- email addresses. A statement ends with a semicolon at the end of a line.

-- The last address that the user confirmed; null for none. It may differ from `email`.
alter table tidegate.users add column confirmed_email text;

-- Ids of dropped users that could be names. tidegate.user_id() returns the name of a user with a
-- role, so a person who signs up must not choose such a name.
create table tidegate.dropped_ids (
    database text not null,
    id text not null,
    primary key (database, id)
);
