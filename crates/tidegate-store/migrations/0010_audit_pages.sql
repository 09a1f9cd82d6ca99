-- The owner reads audit events in pages, in the order of their numbers, with the user that caused
-- each event. A statement ends with a semicolon at the end of a line.

create index audit_events_pages on tidegate.audit_events (database, number);

-- The user of the tenant that changed a record; null for the operator's command line.
alter table tidegate.audit_events add column actor text;

-- A user that has forgotten the password may give the email address instead of the name.
create index users_email on tidegate.users (database, pg_catalog.lower(email));
