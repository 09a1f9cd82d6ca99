-- For the check at sign-up of names that differ in case only.
create index users_name_fold on tidegate.users (database, pg_catalog.lower(name collate "C"));
