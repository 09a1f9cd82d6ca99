-- The owner reads its events page by page, in the order of their numbers, and sees who did them.
-- A statement ends with a semicolon at the end of a line.

create index audit_events_pages on tidegate.audit_events (database, number);

-- Who changed a record: a user of the tenant, or nobody for the operator's command line.
alter table tidegate.audit_events add column actor text;

-- Who forgot a password may say the address of e-mail instead of the name.
create index users_email on tidegate.users (database, pg_catalog.lower(email));
